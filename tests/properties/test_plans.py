"""Generated fleets: what must hold of every plan, whatever the fleet.

The five invariants of the design: nothing exceeds quota, limits or nodes; gangs are whole; nobody
is forgotten; the same facts give the same plan; left alone, a fleet comes to rest.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.checks import Peace, Tally, cases, check_same, planned
from tests.properties.fleets import fleet, noted_fleet, seeds

# The least share of cases that have each of these in them.
RICH = {
    "borrowing": 0.25,
    "preemption": 0.20,
    "two or more pod sets": 0.25,
    "topology": 0.25,
    "services": 0.25,
    "sweeps": 0.25,
    "fractions": 0.15,
    "places kept": 0.10,
    "leaving": 0.10,
    "moves": 0.03,
    "split gangs": 0.03,
}


def test_plans_keep_all_invariants_and_come_to_rest(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()

    @cases(500)
    @given(seeds())
    def check(seed: int) -> None:
        facts = noted_fleet(seed)
        peace = Peace(facts)
        peace.come_to_rest()
        tally.note(facts, peace)

    check()
    with capsys.disabled():
        print(f"\n{tally}")
    for name, least in RICH.items():
        assert tally.share(name) >= least, f"too few cases with {name}: {tally}"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(48354659, id="new nodes for a gang after others that can be packed otherwise"),
        pytest.param(22237, id="parts of devices that an order without room had taken"),
        pytest.param(3881881950, id="the same, with a part of a device that was lacking"),
    ],
)
def test_fleets_that_were_once_judged_wrongly_come_to_rest(seed: int) -> None:
    Peace(fleet(seed)).come_to_rest()


@cases(300)
@given(seeds())
def test_the_order_of_the_input_does_not_matter(seed: int) -> None:
    facts = noted_fleet(seed)
    check_same(facts, planned(facts))


@cases(300)
@given(seeds(), st.sampled_from([1, 3]))
def test_plans_in_parts_keep_all_invariants_and_come_to_rest(seed: int, budget: int) -> None:
    Peace(noted_fleet(seed)).come_to_rest(budget)
