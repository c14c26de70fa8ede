"""What may be asked of an agent by a talk, and how a talk ends.

Newer hubs may ask with more fields than an older agent knows, and it heeds those that it knows.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import msgspec

PROTOCOL = "v1.stream.fairway.dev"  # between an agent and its hub


class Channel(IntEnum):
    """Which of the streams of a talk; the numbers are those of Kubernetes' own protocol."""

    INPUT = 0
    OUTPUT = 1
    ERRORS = 2
    STATUS = 3
    SIZE = 4  # of the terminal, as JSON: {"Width": 80, "Height": 24}


class Ask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to the agent of a cluster, and who asks it."""

    kind: str
    work: str
    cluster: str = ""  # named among replicas of a hub only: an agent has one
    pod: str = ""  # empty: the only one, or the first
    container: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    # Of output.
    follow: bool = False
    tail_lines: int | None = None
    since: float | None = None
    is_previous: bool = False
    # Of a command.
    command: tuple[str, ...] = ()
    has_input: bool = False
    has_terminal: bool = False
    # Of a port.
    port: int = 0
    # Of a list of pods: those after this one, and at most so many.
    after: str = ""
    most: int = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a talk ended: well, with a command's exit code, or for a reason as errors have it."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_well(self) -> bool:
        return not self.reason


WELL = Outcome()


class TalkEnded(Exception):
    """The talk is over, and how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message or outcome.reason or "the talk is over")
        self.outcome = outcome


class Exchange(Protocol):
    """A talk, for who answers it: bytes on channels, in both directions at once."""

    async def begin(self) -> None:
        """Says that what was asked for is there."""
        ...

    async def send(self, channel: int, content: bytes) -> None:
        """Returns once there is room for more; TalkEnded when the other side has gone."""
        ...

    async def end(self, channel: int) -> None:
        """Says that nothing more comes on a channel."""
        ...

    async def receive(self) -> tuple[int, bytes] | None:
        """The next bytes and their channel; no bytes: the end of the channel; None: of all."""
        ...
