"""The question `history`: its parameters, and which services a caller may see.

Every caller may see queues and clusters. A service has the name of its workload, so only callers
that may list workloads in its namespace see it; for others it does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairway.api.errors import BadRequest
from fairway.server.questions.parameters import whole_number
from fairway.server.wire.exchange import Request

SERIES = ("queues", "clusters", "services")
NAMES_MOST = 100
POINTS_MOST = 1_000
SINCE_MOST = 7 * 86_400
_POINTS = 120
_SINCE = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """Which series, since when, and with how many points at most."""

    series: str
    names: tuple[str, ...]  # an empty name is the whole fleet
    since: int  # seconds
    points: int


def history_request(request: Request, may_look: Callable[[str], bool]) -> HistoryRequest:
    """The parameters of a request, without services in namespaces the caller may not see."""
    series = request.parameter("series")
    if series not in SERIES:
        raise BadRequest(f"series: expected one of {', '.join(SERIES)}, got {series!r}")
    wanted_names = [
        part for value in request.parameters("name") for part in value.split(",") if part
    ]
    names = tuple(dict.fromkeys(wanted_names)) or ("",)
    if len(names) > NAMES_MOST:
        raise BadRequest(f"name: at most {NAMES_MOST} can be asked for at once, got {len(names)}")
    if series == "services":
        if names == ("",):
            raise BadRequest("name: services are asked for by namespace/name")
        names = tuple(name for name in names if may_look(name.partition("/")[0]))
    return HistoryRequest(
        series=series,
        names=names,
        since=whole_number(request, "since", least=60, most=SINCE_MOST) or _SINCE,
        points=whole_number(request, "points", least=2, most=POINTS_MOST) or _POINTS,
    )
