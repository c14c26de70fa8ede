"""What a collector of traces promises, and how it may fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CollectorFault(Exception):
    """A collector did not take spans."""


class Later(CollectorFault):
    """It does not take them now; the same request may succeed later."""

    def __init__(self, why: str, *, after_seconds: float | None = None) -> None:
        """`after_seconds` is how long the collector itself asks to be left alone."""
        super().__init__(why)
        self.after_seconds = after_seconds


class Refused(CollectorFault):
    """It does not take them, and will not if they are sent again."""


class Collector(Protocol):
    """Where trace spans are sent."""

    @property
    def address(self) -> str:
        """Where it is, for people."""
        ...

    async def send(self, spans: Sequence[bytes]) -> None:
        """Sends encoded spans in one request; CollectorFault if they are not taken."""
        ...
