"""What a look at an elastic pool says of its stock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.controllers.inventory.stock import (
    Ask,
    Look,
    Question,
    belief_of,
    learn,
    stored_as,
)
from fairway.core.provisioning.stock_outs import STEPS, Belief, after_failure

NOW = 1_800_000_000.0
OUT = after_failure(Belief(), NOW - 100)
EARLIER, LATER = (
    Ask(workload="default/a", decided_at=NOW - 200),
    Ask(workload="default/b", decided_at=NOW - 20),
)


def look(**told: int) -> Look:
    return Look(epoch=1, **told)


def after(
    before: Look | None, now: Look, *asks: Ask, belief: Belief = OUT, promised: float = 60.0
) -> Belief:
    return learn(
        Question(belief=belief, before=before, look=now, asks=asks, promised=promised, now=NOW)
    )


def test_a_failure_that_was_told_says_that_there_is_no_stock() -> None:
    found = after(look(), look(failures=1), LATER, belief=Belief())
    assert (found.out_since, found.tries) == (NOW, 1)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="a hub that has just begun to look"),
        pytest.param(Look(epoch=0, failures=0), id="an agent that began anew"),
        pytest.param(look(failures=1), id="a failure that was told before"),
    ],
)
def test_no_failure_is_made_up_of(before: Look | None) -> None:
    assert after(before, look(failures=1), belief=Belief()) == Belief()


def test_nodes_on_their_way_to_one_who_asked_since_say_that_there_is_stock_again() -> None:
    found = after(look(), look(provisioning=1), LATER)
    assert found.out_since is None
    assert sum(found.ended) == 1000


def test_nodes_for_one_who_asked_before_it_failed_say_nothing() -> None:
    assert after(look(), look(nodes=1), EARLIER, belief=OUT, promised=600.0) == OUT


def test_nodes_that_take_three_times_as_long_as_usual_do_not_come() -> None:
    found = after(look(), look(), EARLIER, belief=Belief())
    assert (found.out_since, found.tries) == (NOW, 1)
    assert after(look(), look(), LATER, belief=Belief()) == Belief()
    answered = replace(EARLIER, answered_at=NOW - 10)
    assert after(look(), look(), answered, belief=Belief()) == Belief()


def test_while_one_tries_nobody_else_does() -> None:
    belief = after_failure(Belief(), NOW - 1000)
    assert not belief.is_out(NOW - 20)
    found = after(look(), look(), LATER, belief=belief)
    assert found.is_out(NOW)
    assert found.try_at == LATER.decided_at + 180


def test_how_long_nodes_took_is_learned_from_who_asked_first_since_the_last_came() -> None:
    before = replace(look(nodes=1), came_at=NOW - 150)
    found = after(before, look(nodes=2), EARLIER, LATER, belief=Belief())
    assert found.provision_seconds == 20.0
    answered = replace(LATER, answered_at=NOW - 5)
    assert after(before, look(nodes=2), answered, belief=Belief()).provision_seconds == 15.0


def test_what_is_believed_is_stored_and_read_as_it_was() -> None:
    belief = replace(OUT, ended=(0,) * (STEPS - 1) + (1000,), provision_seconds=30.0)
    stored = stored_as("spot", belief, "no machines")
    assert belief_of(stored) == belief
    assert stored_as("spot", Belief(), "") is None
    assert belief_of(None) == Belief()
