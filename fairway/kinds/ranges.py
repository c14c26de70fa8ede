"""Numbers as ranges in text, such as `0-41,43`, used for completed indexes and tasks.

Kept as pairs of first and last, so that memory grows with the gaps, not with the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]

_NUMBER_MOST = 10_000_000


def parse(text: str) -> Ranges:
    """Parses ranges, sorted and merged; ValueError if the text is invalid."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is not a number or a range such as 3-7")
        low, high = int(first), int(last or first)
        if low > high or high > _NUMBER_MOST:
            raise ValueError(f"{part!r} is not a range up to {_NUMBER_MOST}")
        pairs.append((low, high))
    return _merge(pairs)


def of(numbers: Iterable[int]) -> Ranges:
    return _merge([(number, number) for number in numbers])


def union(several: Iterable[Ranges]) -> Ranges:
    return _merge([pair for ranges in several for pair in ranges])


def _merge(pairs: list[tuple[int, int]]) -> Ranges:
    result: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return tuple(result)


def text(ranges: Ranges) -> str:
    """Formats ranges as Kubernetes does: two neighbours are a list, three a range."""
    parts = []
    for first, last in ranges:
        gap = last - first
        parts.append(str(first) if not gap else f"{first}{',' if gap == 1 else '-'}{last}")
    return ",".join(parts)


def size(ranges: Ranges) -> int:
    return sum(last - first + 1 for first, last in ranges)


def numbers(ranges: Ranges) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)


def shift(ranges: Ranges, by: int) -> Ranges:
    return tuple((first + by, last + by) for first, last in ranges)


def minus(ranges: Ranges, others: Ranges) -> Ranges:
    """The numbers in `ranges` that are not in `others`."""
    left: list[tuple[int, int]] = []
    for first, last in ranges:
        begin = first
        for low, high in _merge(list(others)):
            if begin <= high and low <= last:
                left.append((begin, low - 1))
                begin = high + 1
        left.append((begin, last))
    return tuple((first, last) for first, last in left if first <= last)


def within(ranges: Ranges, bounds: tuple[int, int]) -> Ranges:
    """The numbers from the first to the last of two bounds, inclusive."""
    cut = ((max(first, bounds[0]), min(last, bounds[1])) for first, last in ranges)
    return tuple((first, last) for first, last in cut if first <= last)


def overlap(ranges: Ranges, others: Ranges) -> bool:
    """Whether they have a number in common."""
    return minus(ranges, others) != ranges


def cut(ranges: Ranges, length: int, *, start: int = 0) -> Iterator[tuple[int, int]]:
    """Ranges split at every multiple of a length, counted from `start`."""
    for first, last in ranges:
        begin = first
        while begin <= last:
            end = min(last, begin + length - 1 - (begin - start) % length)
            yield (begin, end)
            begin = end + 1
