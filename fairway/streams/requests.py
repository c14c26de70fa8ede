"""What a talk may request of an agent, and how a talk ends.

A newer hub may send fields that an older agent does not know; the agent ignores them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import msgspec

MEASURE = "measure"  # a request to measure for a scorer
PROTOCOL = "v1.stream.fairway.dev"  # between an agent and its hub


class Channel(IntEnum):
    """The streams of a talk; the numbers are those of the Kubernetes protocol."""

    INPUT = 0
    OUTPUT = 1
    ERRORS = 2
    STATUS = 3
    SIZE = 4  # of the terminal, as JSON: {"Width": 80, "Height": 24}


class Ask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request to the agent of a cluster, and the user who made it."""

    kind: str
    work: str
    cluster: str = ""  # set only between replicas of a hub: an agent has one cluster
    pod: str = ""  # empty: the only pod, or the first
    container: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    # For logs.
    follow: bool = False
    tail_lines: int | None = None
    since: float | None = None
    is_previous: bool = False
    # For a command.
    command: tuple[str, ...] = ()
    has_input: bool = False
    has_terminal: bool = False
    # For a port.
    port: int = 0
    # For a list of pods: those after this pod, and at most this number.
    after: str = ""
    most: int = 0
    # For a measurement: what to measure, as JSON.
    measurement: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a talk ended: well, with the exit code of a command, or with an API error reason."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_well(self) -> bool:
        return not self.reason


WELL = Outcome()


class TalkEnded(Exception):
    """The talk is over; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message or outcome.reason or "the talk is over")
        self.outcome = outcome


class Exchange(Protocol):
    """A talk, for the side that answers it: bytes on channels, in both directions at once."""

    async def begin(self) -> None:
        """Signals that the requested stream exists."""
        ...

    async def send(self, channel: int, content: bytes) -> None:
        """Returns once there is room for more; TalkEnded if the other side has gone."""
        ...

    async def end(self, channel: int) -> None:
        """Signals that nothing more comes on a channel."""
        ...

    async def receive(self) -> tuple[int, bytes] | None:
        """The channel and the next bytes; no bytes: the channel ended; None: the talk ended."""
        ...
