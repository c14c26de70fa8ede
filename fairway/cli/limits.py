"""The limits of `fairway up`: what one caller may use of a hub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from fairway.server.access.fairness import Shares
    from fairway.server.wire.connections import ConnectionLimits

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Limits(TypedDict):
    """The options as they were given."""

    connections: int
    connections_per_address: int
    user_rate: int
    user_requests: int
    user_watches: int


def _option(name: str, default: int, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        name,
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


_OPTIONS = (
    _option("--connections", 8192, "Connections at once, as far as the limit of files allows."),
    _option("--connections-per-address", 2048, "Connections of one address; more for a proxy."),
    _option("--user-rate", 100, "Requests of one user per second, after ten times as many."),
    _option("--user-requests", 16, "Requests of one user at once."),
    _option("--user-watches", 256, "Watches and other streams of one user."),
)


def limit_options(command: _Command) -> _Command:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def connection_limits(given: Limits) -> ConnectionLimits:
    from fairway.server.wire.connections import ConnectionLimits  # noqa: PLC0415 - see `up`

    of_address = given["connections_per_address"]
    return ConnectionLimits(
        most=given["connections"],
        by_address=of_address,
        idle_by_address=max(1, of_address // 4),
    )


def shares(given: Limits) -> Shares:
    from fairway.server.access.fairness import Shares  # noqa: PLC0415 - see `up`

    rate, default = given["user_rate"], Shares()
    users = replace(
        default.users,
        at_once=given["user_requests"],
        streams=given["user_watches"],
        per_second=rate,
        burst=10 * rate,
    )
    return replace(default, users=users)
