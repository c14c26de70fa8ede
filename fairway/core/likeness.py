"""Keys by which equal values are found again, without comparing them field by field."""

from __future__ import annotations

from collections.abc import Hashable


class Likeness:
    """A lookup key that is hashed once: its value is large and looked up often."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Likeness) and self.value == other.value

    def __reduce__(self) -> tuple[type[Likeness], tuple[Hashable]]:
        """Pickles the value only: hashes differ between processes."""
        return (Likeness, (self.value,))


class Remembers:
    """A slot for a cached property of a frozen value; no field, so neither compared nor copied."""

    __slots__ = ("_likeness",)
    _likeness: Likeness
