"""What a history keeps of the fleet: fair shares that a person can follow, and GPUs by place."""

from __future__ import annotations

import pytest

from fairway.core.explain.samples import Wish, fair_shares


def wish(nominal: float, used: float, *, waits: bool = False, weight: float = 1.0) -> Wish:
    return Wish(weight=weight, nominal=nominal, wanted=float("inf") if waits else used)


@pytest.mark.parametrize(
    ("wishes", "pot", "fair"),
    [
        pytest.param([wish(8, 4), wish(8, 8)], 16, [4, 8], id="who wants no more has it all"),
        pytest.param(
            [wish(8, 8, waits=True), wish(8, 8, waits=True)], 16, [8, 8], id="own quota goes first"
        ),
        pytest.param(
            [wish(8, 16), wish(8, 0, waits=True)], 16, [8, 8], id="who lends is owed its own"
        ),
        pytest.param(
            [wish(4, 8, waits=True), wish(4, 4, waits=True), wish(8, 0)],
            16,
            [8, 8, 0],
            id="what nobody uses is divided among those who wait",
        ),
        pytest.param(
            [wish(0, 12, waits=True, weight=3), wish(0, 4, waits=True), wish(16, 0)],
            16,
            [12, 4, 0],
            id="by weight",
        ),
        pytest.param(
            [wish(0, 2), wish(0, 0, waits=True), wish(16, 0)],
            16,
            [2, 14, 0],
            id="what one does not want goes to the others",
        ),
        pytest.param(
            [wish(4, 4, waits=True, weight=0), wish(4, 8, waits=True)],
            12,
            [4, 8],
            id="without weight there is nothing beyond what is owned",
        ),
        pytest.param(
            [Wish(weight=1, nominal=0, wanted=6), wish(0, 12, waits=True)],
            12,
            [6, 6],
            id="nobody gets more than they want",
        ),
        pytest.param([], 16, [], id="nobody"),
    ],
)
def test_fair_shares(wishes: list[Wish], pot: float, fair: list[float]) -> None:
    assert fair_shares(wishes, pot) == pytest.approx(fair)
