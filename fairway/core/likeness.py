"""Likeness: equal for values that are decided alike, and cheap to look up."""

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


class RemembersLikeness:
    """A frozen value that makes its likeness once; no field, so neither compared nor copied."""

    __slots__ = ("_likeness",)
    _likeness: Likeness

    @property
    def likeness(self) -> Likeness:
        """Values of equal likeness get equal answers at one moment, in whichever order."""
        try:
            return self._likeness
        except AttributeError:
            made = Likeness(self._alike())
            object.__setattr__(self, "_likeness", made)
            return made

    def _alike(self) -> Hashable:
        """All that decisions depend on."""
        raise NotImplementedError
