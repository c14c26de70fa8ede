"""Task numbers written as ranges: `0-41,43`.

A sweep may have a million tasks, so whatever can be computed from the ends of ranges is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as ranges."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def numbers_of(text: str) -> Iterator[int]:
    """The numbers in these ranges."""
    for low, high in _spans(text):
        yield from range(low, high + 1)


def count_of(text: str) -> int:
    """How many numbers are in these ranges."""
    return sum(high - low + 1 for low, high in _spans(text))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        yield int(low), int(high or low)
