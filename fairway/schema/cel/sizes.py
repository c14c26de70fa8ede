"""Upper bounds of the values of an expression, without evaluating it.

A `Size` bounds a value that an expression makes; a `Sample` has the values themselves that a part
of the input may be, and measures them only when asked. Weights count a value as 1 and a byte of
text as a tenth, which is about how their costs compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# Stands for no bound. Finite, so that no product of bounds is undefined.
UNBOUNDED = 1e30
BYTE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """A bound on one value; `items` are inside of it, and so is what is inside of `like`."""

    weight: float = 1.0
    count: float = 0.0  # items, if it is a list or a map
    text: float = 0.0  # bytes, if it is a string
    number: float = 0.0  # magnitude, if it is a number
    items: tuple[Shape, ...] = ()
    like: tuple[Shape, ...] = ()
    is_map: bool = False
    _part_by_key: dict[object, Shape] = field(default_factory=dict)

    def part(self, key: object) -> Shape:
        """What may be taken out of it. Computed once: sizes share parts, as values do."""
        if not self.items and not self.like:
            return self
        known = self._part_by_key.get(key)
        if known is None:
            known = any_of((*self.items, *(shape.part(key) for shape in self.like)))
            self._part_by_key[key] = known
        return known


class Whole:
    """A bound on an input and on all of its parts: of this many bytes as JSON."""

    __slots__ = ("count", "is_map", "number", "text", "weight")

    def __init__(self, length: float, *, number: float = UNBOUNDED) -> None:
        self.weight = self.count = self.text = length
        self.number = number
        self.is_map = False

    def part(self, key: object) -> Shape:
        return self


class Sample:
    """The values that a part of the input may be; each measure is taken once."""

    def __init__(self, values: Sequence[Any], scale: Scale) -> None:
        self.values = values
        self._scale = scale

    @cached_property
    def weight(self) -> float:
        self._scale.read(len(self.values))
        return max(map(self._scale.weigh, self.values), default=1.0)

    @cached_property
    def count(self) -> float:
        return max(map(len, self._of((dict, list))), default=0)

    @cached_property
    def text(self) -> float:
        return max(map(_bytes, self._of((str, bytes))), default=0)

    @cached_property
    def number(self) -> float:
        return min(max(map(abs, self._of((int, float))), default=0), UNBOUNDED)

    @cached_property
    def is_map(self) -> bool:
        return len(self._of((dict,))) == len(self.values)

    def _of(self, kinds: tuple[type, ...]) -> list[Any]:
        self._scale.read(len(self.values))
        return [value for value in self.values if isinstance(value, kinds)]

    def part(self, key: object) -> Shape:
        parts: list[Any] = []
        for value in self.values:
            if isinstance(value, dict) and isinstance(key, str):
                parts.extend([value[key]] if key in value else ())
            elif isinstance(value, dict):
                parts.extend((*value, *value.values()))
            elif isinstance(value, list) and isinstance(key, int):
                parts.extend(value[key : key + 1])
            elif isinstance(value, list):
                parts.extend(value)
        self._scale.read(len(parts))
        return Sample(parts, self._scale)


Shape = Size | Whole | Sample


@dataclass(slots=True)
class Scale:
    """Weighs values, each list and map once; `work` counts what was looked at."""

    work: int = 0
    _weights: dict[int, float] = field(default_factory=dict)

    def read(self, count: int) -> None:
        self.work += count

    def weigh(self, value: Any) -> float:
        if isinstance(value, str | bytes):
            return 1 + BYTE * _bytes(value)
        if not isinstance(value, dict | list):
            return 1
        known = self._weights.get(id(value))
        if known is None:
            parts = value if isinstance(value, list) else (*value, *value.values())
            self.read(len(parts))
            known = self._weights[id(value)] = 1 + sum(map(self.weigh, parts))
        return known


def any_of(shapes: Iterable[Shape]) -> Shape:
    """A bound on a value that is one of these."""
    known = tuple(dict.fromkeys(shapes))
    if len(known) == 1:
        return known[0]
    return Size(
        weight=max((shape.weight for shape in known), default=1),
        count=max((shape.count for shape in known), default=0),
        text=max((shape.text for shape in known), default=0),
        number=max((shape.number for shape in known), default=0),
        like=known,
        is_map=all(shape.is_map for shape in known),
    )


def text_of(length: float) -> Size:
    """A string of at most this many bytes."""
    length = min(length, UNBOUNDED)
    return Size(weight=1 + BYTE * length, text=length)


def number_of(magnitude: float) -> Size:
    return Size(number=min(magnitude, UNBOUNDED))


def list_of(count: float, item: Shape) -> Size:
    """A list of at most this many items."""
    count = min(count, UNBOUNDED)
    return Size(weight=min(1 + count * item.weight, UNBOUNDED), count=count, items=(item,))


def joined(shapes: Sequence[Shape]) -> Size:
    """A string, list or map put together from these, or the sum of these numbers."""
    return Size(
        weight=min(sum(shape.weight for shape in shapes), UNBOUNDED),
        count=min(sum(shape.count for shape in shapes), UNBOUNDED),
        text=min(sum(shape.text for shape in shapes), UNBOUNDED),
        number=min(sum(shape.number for shape in shapes), UNBOUNDED),
        like=tuple(shapes),
    )


def _bytes(value: str | bytes) -> int:
    return len(value) if isinstance(value, bytes) or value.isascii() else len(value.encode())
