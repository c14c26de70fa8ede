"""Reasons that are worked out when somebody reads them.

A plan refuses far more than anybody reads about: a workload that fits nowhere has a reason for each
cluster on each rung. What makes such reasons is kept as it was at the moment of the refusal, which
costs little, and the reasons are made from it when they are first looked at. They tell the truth of
that moment, whenever they are read, and are the same as if they had been made at once. Workloads
that were refused together share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

from fairway.api.reasons import Reason


class Unread(Protocol):
    """Reasons that nobody has looked at yet. Whatever it keeps must not change any more."""

    def reasons(self) -> Iterable[Reason]:
        """The reasons, in order; one at least."""


class Reasons(Sequence[Reason]):
    """Reasons in order, some of them unread. It grows until a verdict is given, never after."""

    __slots__ = ("_parts", "_read")

    def __init__(self, reasons: Iterable[Reason] = ()) -> None:
        self._parts: list[Reason | Unread | tuple[Reason, ...]] = list(reasons)
        self._read: tuple[Reason, ...] | None = None

    # Growing.

    def append(self, reason: Reason) -> None:
        self._parts.append(reason)
        self._read = None

    def extend(self, reasons: Iterable[Reason]) -> None:
        self._parts.append(tuple(reasons))
        self._read = None

    def later(self, unread: Unread) -> None:
        """Adds what is worked out when it is read."""
        self._parts.append(unread)
        self._read = None

    def clear(self) -> None:
        self._parts.clear()
        self._read = None

    def has_said(self, reason: Reason) -> bool:
        """Whether a reason was added by itself; what is unread stays so."""
        return any(isinstance(one, Reason) and one == reason for one in self._parts)

    # Reading.

    @property
    def told(self) -> tuple[Reason, ...]:
        """All of them, as plain values."""
        if self._read is None:
            self._read = tuple(_told(self._parts))
            self._parts = [self._read]
        return self._read

    def __bool__(self) -> bool:
        return any(one != () for one in self._parts)

    def __len__(self) -> int:
        return len(self.told)

    @overload
    def __getitem__(self, at: int) -> Reason: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Reason, ...]: ...
    def __getitem__(self, at: int | slice) -> Reason | tuple[Reason, ...]:
        if at == 0 and self._read is None and self._parts:
            return next(_told(self._parts))  # many ask for the code of the first and no more
        return self.told[at]

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.told)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Reasons | tuple | list):
            return self is other or self.told == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.told)

    def __repr__(self) -> str:
        return repr(self.told)

    def __reduce__(self) -> tuple[type[tuple[Reason, ...]], tuple[tuple[Reason, ...]]]:
        """What leaves the process is plain."""
        return (tuple, (self.told,))


def _told(parts: Iterable[Reason | Unread | tuple[Reason, ...]]) -> Iterator[Reason]:
    for part in parts:
        if isinstance(part, Reason):
            yield part
        elif isinstance(part, tuple):
            yield from part
        else:
            yield from part.reasons()
