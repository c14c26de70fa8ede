"""How traffic is shared, as a table; and what holds of every sharing."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.serving.traffic import WHOLE, Backend, differs, weights


def backend(cluster: str, ready: int, speed: str = "1") -> Backend:
    return Backend(cluster=cluster, ready=ready, speed=Fraction(speed))


TABLE: dict[str, tuple[list[Backend], dict[str, int]]] = {
    "nobody": ([], {}),
    "one has all": ([backend("a", 3)], {"a": 1000}),
    "by what is ready": ([backend("a", 3), backend("b", 1)], {"a": 750, "b": 250}),
    "by speed as well": (
        [backend("a", 1), backend("b", 1, "1.5")], {"a": 400, "b": 600}),
    "nothing ready gets nothing": ([backend("a", 3), backend("b", 0)], {"a": 1000, "b": 0}),
    "nothing ready anywhere": ([backend("a", 0), backend("b", 0)], {"a": 0, "b": 0}),
    "thirds add up": (
        [backend("a", 1), backend("b", 1), backend("c", 1)], {"a": 334, "b": 333, "c": 333}),
    "the least is one": ([backend("a", 5000), backend("b", 1)], {"a": 999, "b": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("backends", "expected"), TABLE.values(), ids=TABLE)
def test_weights(backends: list[Backend], expected: dict[str, int]) -> None:
    assert weights(backends) == expected


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=3),
        st.tuples(st.integers(0, 500), st.fractions(Fraction(1, 10), 10, max_denominator=20)),
        min_size=1,
        max_size=40,
    )
)
def test_all_of_it_is_shared_and_who_is_ready_gets_some(
    told: dict[str, tuple[int, Fraction]],
) -> None:
    backends = [
        Backend(cluster=name, ready=ready, speed=speed) for name, (ready, speed) in told.items()
    ]
    found = weights(backends)
    is_any = any(backend.ready for backend in backends)
    assert sum(found.values()) == (WHOLE if is_any else 0)
    assert all((found[backend.cluster] > 0) == (backend.ready > 0) for backend in backends)
    assert found == weights(backends[::-1])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 500, "b": 500}, {"a": 505, "b": 495}, False),
        ({"a": 500, "b": 500}, {"a": 510, "b": 490}, True),
        ({"a": 1000, "b": 0}, {"a": 999, "b": 1}, True),
        ({"a": 1000}, {"a": 1000, "b": 0}, True),
    ],
)
def test_small_changes_are_not_told(
    before: dict[str, int], after: dict[str, int], expected: bool
) -> None:
    assert differs(before, after, least=10) is expected
