"""What holds of every rollout, however the service is divided and whatever its revisions are."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.serving.rollout.allowance import unavailable_most
from fairway.serving.rollout.batches import batches_of
from tests.serving.rollout.services import NEW, OLD, Run, World, spec

SERVICES = st.dictionaries(
    st.sampled_from(["beijing", "hangzhou", "shanghai", "wuhan", "xian"]),
    st.integers(0, 12),
    min_size=1,
).filter(lambda dictionary: sum(dictionary.values()) > 0)
BATCHES = st.lists(
    st.one_of(
        st.builds(lambda percent: {"percent": percent}, st.integers(1, 100)),
        st.builds(lambda name: {"clusters": [name]}, st.sampled_from(["beijing", "wuhan"])),
        st.just({"group": "g1"}),
    ),
    max_size=4,
)
STRATEGIES = st.fixed_dictionaries(
    {
        "batches": BATCHES,
        "maxUnavailable": st.integers(0, 6),
        "soakSeconds": st.sampled_from([0, 7, 30]),
    },
    optional={"canary": st.builds(lambda percent: {"percent": percent}, st.integers(1, 60))},
)
KINDS = st.sampled_from([{}, {"is_divisible": True, "step_most": 1}, {"is_divisible": True}])


def made(replicas: dict[str, int], strategy: dict[str, Any], more: dict[str, Any]) -> Run:
    ranks = {name: at % 2 for at, name in enumerate(sorted(replicas))}
    return Run(spec(strategy=strategy), World(dict(replicas), ranks=ranks), more=more)


@given(SERVICES, STRATEGIES, KINDS)
@settings(max_examples=150, deadline=None)
def test_a_good_revision_ends_everywhere_and_never_more_lack_than_may(
    replicas: dict[str, int], strategy: dict[str, Any], more: dict[str, Any]
) -> None:
    run = made(replicas, strategy, more)
    total = sum(replicas.values())
    run.until("Completed", steps=1500)
    assert set(run.marks().values()) <= {NEW}
    assert run.lowest >= total - unavailable_most(run.spec.strategy, total)


@given(SERVICES, STRATEGIES, KINDS)
@settings(max_examples=150, deadline=None)
def test_a_bad_revision_stays_in_its_first_batch_and_ends_at_the_former_one(
    replicas: dict[str, int], strategy: dict[str, Any], more: dict[str, Any]
) -> None:
    run = made(replicas, strategy, more)
    run.world.is_good = lambda mark: mark == OLD
    total = sum(replicas.values())
    is_divisible = bool(more.get("is_divisible"))
    plan = batches_of(run.spec.strategy, run.world.places(), is_divisible=is_divisible)
    first = next(item for item in plan if any(replicas[name] for name in item))
    for _ in range(1500):
        run.step()
        for name, pods in run.world.pods.items():
            share = first.get(name, 0)
            bad = sum(mark == NEW for mark, _ in pods)
            assert bad <= (replicas[name] if share is None else share), name
        if run.status.phase == "RolledBack":
            break
    assert run.status.phase == "RolledBack"
    assert set(run.marks().values()) == {OLD}
    assert run.world.ready == total
    assert run.lowest >= total - unavailable_most(run.spec.strategy, total)


@given(SERVICES, STRATEGIES, st.lists(st.sampled_from([1.0, 5.0, 20.0, 65.0]), max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_hub_that_looks_seldom_or_often_never_goes_too_far(
    replicas: dict[str, int], strategy: dict[str, Any], pauses: list[float]
) -> None:
    run = made(replicas, strategy, {})
    total = sum(replicas.values())
    for seconds in pauses:
        run.step(seconds)
        run.step(0.0)  # a second look, as of a hub that has just started, does no harm
        assert run.lowest >= total - unavailable_most(run.spec.strategy, total)
        assert set(run.marks().values()) <= {OLD, NEW}
