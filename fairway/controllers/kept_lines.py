"""Where controllers keep lines for the next hub: ended spans, and decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class LineKeeper(Protocol):
    """Keeps lines, as many as it has room for."""

    def read(self) -> Iterable[bytes]:
        """The kept lines, the oldest first."""
        ...

    def keep(self, line: bytes) -> None: ...


class NoLineKeeper:
    """Keeps nothing: lines are lost when the hub ends."""

    def read(self) -> Iterable[bytes]:
        return ()

    def keep(self, line: bytes) -> None:
        del line
