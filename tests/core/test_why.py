"""What is worked out when read says what it would have said at once."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.reasons import Code, Reason
from fairway.core import model
from fairway.core.clusters.balance_order import ClusterBalance, Holds, Order, Totals
from fairway.core.cycle import plan
from fairway.core.modes import gang
from fairway.core.plan import Admit
from fairway.core.reasons import Reasons, Unread
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import H100, NOW, cluster, queue, workload

HELD = Reason(code=Code.HELD)
NO_CLUSTER = Reason(code=Code.NO_CLUSTER)


class Counted:
    """Two reasons, and how often somebody had them worked out."""

    def __init__(self) -> None:
        self.times = 0

    def reasons(self) -> Iterable[Reason]:
        self.times += 1
        yield Reason(code=Code.NO_VICTIMS, cluster="here")
        yield Reason(code=Code.NO_VICTIMS, cluster="there")


def test_reasons_are_worked_out_once_and_only_when_they_are_read() -> None:
    unread = Counted()
    reasons = Reasons([HELD])
    reasons.later(unread)
    reasons.append(NO_CLUSTER)
    assert reasons
    assert reasons[0] == HELD
    assert reasons.has_said(NO_CLUSTER)
    assert unread.times == 0
    assert [reason.cluster for reason in reasons] == ["", "here", "there", ""]
    assert len(reasons) == 4
    assert unread.times == 1


def test_reasons_compare_and_travel_as_plain_values() -> None:
    reasons = Reasons([HELD])
    reasons.later(Counted())
    whole = (HELD, *Counted().reasons())
    assert reasons == whole
    assert hash(reasons) == hash(whole)
    assert pickle.loads(pickle.dumps(reasons)) == whole


def test_nothing_was_said_is_false() -> None:
    reasons = Reasons()
    reasons.extend(())
    assert not reasons


# In a plan.


FLEET = (
    queue("research", 100),
    cluster("east", 8, 8),
    cluster("west", 8, 8, 8),
    workload("first", "research", count=2, gpus=8, waited=60),
    workload("large", "research", count=4, gpus=8, waited=50),
    workload("like-large", "research", count=4, gpus=8, waited=40),
    workload("second", "research", count=1, gpus=8, waited=30),
    workload("third", "research", count=3, gpus=8, waited=20),
)


def snapshot() -> Snapshot:
    return Snapshot(Objects.of([H100, *FLEET]).facts(NOW))


def test_reasons_read_after_the_plan_are_those_of_the_moment_of_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both when they are read at the end, and when each is read as soon as it is there."""
    late, _ = plan(snapshot())

    def read_at_once(reasons: Reasons, unread: Unread) -> None:
        reasons.extend(unread.reasons())

    monkeypatch.setattr(Reasons, "later", read_at_once)
    at_once, _ = plan(snapshot())
    assert late.waiting
    assert late.render() == at_once.render()


def test_workloads_refused_together_share_their_reasons() -> None:
    made, _ = plan(snapshot())
    alike = [item.reasons for item in made.waiting if "large" in item.workload]
    assert len(alike) == 2
    assert alike[0] is alike[1]


def test_scores_read_after_the_plan_are_those_of_the_moment_of_the_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, _ = plan(snapshot())
    monkeypatch.setattr(gang, "Totals", lambda standing: dict(Totals(standing)))
    at_once, _ = plan(snapshot())
    assert any(isinstance(step, Admit) and step.scores for step in late.steps)
    assert late.render() == at_once.render()


def test_a_likeness_is_found_by_value_also_after_it_has_travelled() -> None:
    facts = snapshot().facts
    large, like = (facts.workloads[f"team/{name}"] for name in ("large", "like-large"))
    assert large.likeness == like.likeness
    assert {large.likeness: 1}[pickle.loads(pickle.dumps(like)).likeness] == 1
    assert {large.likeness: 1}[pickle.loads(pickle.dumps(like.likeness))] == 1
    assert large.likeness != facts.workloads["team/first"].likeness


# Orders that are kept claim by claim.


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 255)), max_size=30),
    st.integers(-3, 3),
)
def test_a_board_kept_claim_by_claim_equals_an_order_made_anew(
    rows: list[tuple[int, bool]], claims: list[tuple[int, int]], weight: int
) -> None:
    names = tuple(f"cluster-{at}" for at in range(len(rows)))
    scores = (model.Score(name="Balance", weight=weight),)
    avoided = np.array([is_bad for _, is_bad in rows])
    holds = Holds(np.array([others for others, _ in rows], dtype=np.int64))
    board = ClusterBalance(names, np.arange(len(rows)), holds, scores, avoided)
    before = []
    for place, bits in claims:
        order = Order(names, holds.now.copy(), scores, avoided)
        fits = np.array([bool(bits >> at & 1) for at in range(len(rows))])
        fitting = [item.cluster for item in order if fits[names.index(item.cluster)]]
        assert list(board.best(fits)) == fitting
        before.append((board.standing(), list(order)))
        holds.add(place % len(rows))
    for standing, expected in before:
        assert list(standing) == expected
        assert dict(Totals(standing)) == {item.cluster: item.total for item in expected}
