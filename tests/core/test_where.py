"""Which clusters a workload may use, and why not the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from fairway.api.meta import Taint, Toleration
from fairway.core.clusters.candidates import (
    EVER,
    Avoided,
    Closed,
    Fenced,
    InNoGroup,
    KindNotServed,
    NoDomain,
    NotSelected,
    Pinned,
    Refusal,
    Tainted,
    candidates,
    evicted_at,
    evicts,
    group_of,
    ladder,
    likeness,
)
from fairway.core.model import Group, Policy, Queue, Spread, Workload
from fairway.core.nodes import Cluster, Nodes

NOW = 1_000.0
ADDED = datetime.fromtimestamp(900, UTC)
NODES = Nodes(names=(), capacity={}, ready=np.zeros(0, dtype=np.bool_))
QUEUE = Queue(name="research")
WORKLOAD = Workload(key="team/job", queue="research", forms=())

NO_SCHEDULE = Taint(key="repair", effect="NoSchedule")
NO_EXECUTE = Taint(key="lost", effect="NoExecute", time_added=ADDED)
PREFER = Taint(key="old", effect="PreferNoSchedule")


def cluster(name: str, **parts: Any) -> Cluster:
    return Cluster(name=name, nodes=NODES, **parts)


def fleet(*clusters: Cluster) -> dict[str, Cluster]:
    return {cluster.name: cluster for cluster in clusters}


def workload(**parts: Any) -> Workload:
    return Workload(key="team/job", queue="research", forms=(), **parts)


def bears(seconds: int | None = None, **parts: Any) -> Toleration:
    return Toleration(operator="Exists", toleration_seconds=seconds, **parts)


REFUSALS: dict[str, tuple[Policy, Queue, Workload, Cluster, Refusal | None]] = {
    "an empty policy takes everything": (Policy(), QUEUE, WORKLOAD, cluster("a"), None),
    "a selector that does not name it refuses": (
        Policy(clusters=frozenset({"b"})),
        QUEUE,
        WORKLOAD,
        cluster("a"),
        NotSelected(),
    ),
    "with groups, a cluster of none is refused": (
        Policy(groups=(Group(name="home", clusters=frozenset({"b"})),)),
        QUEUE,
        WORKLOAD,
        cluster("a"),
        InNoGroup(),
    ),
    "the queue's fence can't be widened by the policy": (
        Policy(clusters=frozenset({"a"})),
        Queue(name="research", fence=frozenset({"b"})),
        WORKLOAD,
        cluster("a"),
        Fenced("research"),
    ),
    "a volume elsewhere pins": (
        Policy(),
        QUEUE,
        workload(pinned_to="b"),
        cluster("a"),
        Pinned("b"),
    ),
    "a volume here does not": (Policy(), QUEUE, workload(pinned_to="a"), cluster("a"), None),
    "a kind that is not served refuses": (
        Policy(),
        QUEUE,
        workload(kinds=("/v1/Pod", "ray.io/v1/RayJob")),
        cluster("a", kinds=frozenset({"/v1/Pod"})),
        KindNotServed("ray.io/v1/RayJob"),
    ),
    "a cluster that tells no kinds serves all": (
        Policy(),
        QUEUE,
        workload(kinds=("ray.io/v1/RayJob",)),
        cluster("a"),
        None,
    ),
    "a closed cluster says why": (
        Policy(),
        QUEUE,
        WORKLOAD,
        cluster("a", is_open=False, closed_because="held"),
        Closed("held"),
    ),
    "a place that failed it is avoided": (
        Policy(),
        QUEUE,
        workload(avoids=("a",)),
        cluster("a"),
        Avoided(),
    ),
    "a place that refused its template says what it said": (
        Policy(),
        QUEUE,
        workload(avoids=("a", "b"), refusals=(("b", "no"), ("a", "no such field"))),
        cluster("a"),
        Avoided("no such field"),
    ),
    "what lasts is told before what passes": (
        Policy(),
        Queue(name="research", fence=frozenset()),
        workload(avoids=("a",)),
        cluster("a", is_open=False, taints=(NO_SCHEDULE,)),
        Fenced("research"),
    ),
    "a rule of spread that must hold needs its label": (
        Policy(spread=(Spread(by="Region"),)),
        QUEUE,
        WORKLOAD,
        cluster("a"),
        NoDomain("Region"),
    ),
    "one that is only preferred does not": (
        Policy(spread=(Spread(by="Region", is_preferred=True),)),
        QUEUE,
        WORKLOAD,
        cluster("a"),
        None,
    ),
    "a taint keeps away": (
        Policy(),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE,)),
        Tainted(NO_SCHEDULE),
    ),
    "a taint that evicts is told before one that does not": (
        Policy(),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE, NO_EXECUTE)),
        Tainted(NO_EXECUTE),
    ),
    "a taint that only prefers does not refuse": (
        Policy(),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(PREFER,)),
        None,
    ),
    "each taint must be tolerated": (
        Policy(tolerations=(bears(key="repair"),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE, NO_EXECUTE)),
        Tainted(NO_EXECUTE),
    ),
    "tolerated for 101 s, one second is left": (
        Policy(tolerations=(bears(101),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_EXECUTE,)),
        None,
    ),
    "tolerated for 100 s, it is over at that moment": (
        Policy(tolerations=(bears(100),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_EXECUTE,)),
        Tainted(NO_EXECUTE),
    ),
    "of two tolerations the longer counts": (
        Policy(tolerations=(bears(5), bears(key="lost"))),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_EXECUTE,)),
        None,
    ),
    "of two that end the later end counts": (
        Policy(tolerations=(bears(150), bears(5))),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_EXECUTE,)),
        None,
    ),
    "seconds limit only taints that evict": (
        Policy(tolerations=(bears(5),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE,)),
        None,
    ),
    "another value is another taint": (
        Policy(tolerations=(Toleration(key="use", value="x"),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(Taint(key="use", value="y", effect="NoSchedule"),)),
        Tainted(Taint(key="use", value="y", effect="NoSchedule")),
    ),
    "the same value is tolerated": (
        Policy(tolerations=(Toleration(key="use", value="y"),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(Taint(key="use", value="y", effect="NoSchedule"),)),
        None,
    ),
    "another effect is another taint": (
        Policy(tolerations=(bears(key="repair", effect="NoExecute"),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE,)),
        Tainted(NO_SCHEDULE),
    ),
    "a toleration without key and operator tolerates nothing": (
        Policy(tolerations=(Toleration(),)),
        QUEUE,
        WORKLOAD,
        cluster("a", taints=(NO_SCHEDULE,)),
        Tainted(NO_SCHEDULE),
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=list(REFUSALS))
def test_a_cluster_is_allowed_or_refused_for_a_reason(
    case: tuple[Policy, Queue, Workload, Cluster, Refusal | None],
) -> None:
    policy, queue, work, one, refusal = case
    found = candidates(work, policy, queue, fleet(one), NOW)
    assert found.refused == (() if refusal is None else ((one.name, refusal),))
    assert found.allowed == ((one.name,) if refusal is None else ())


def test_a_cluster_is_in_the_first_group_that_contains_it_and_order_of_input_is_irrelevant() -> (
    None
):
    policy = Policy(
        groups=(
            Group(name="home", clusters=frozenset({"b", "a"})),
            Group(name="none", clusters=frozenset()),
            Group(name="cloud"),
        )
    )
    forward = fleet(cluster("a"), cluster("b"), cluster("c"))
    found = candidates(WORKLOAD, policy, QUEUE, forward, NOW)
    assert found.groups == (("home", ("a", "b")), ("none", ()), ("cloud", ("c",)))
    assert found.group_of() == {"a": "home", "b": "home", "c": "cloud"}
    assert found.in_group("cloud") == ("c",)
    assert found.in_group("") == ("a", "b", "c"), "no name means all groups"
    assert found.in_group("elsewhere") == ()
    backward = dict(reversed(forward.items()))
    assert candidates(WORKLOAD, policy, QUEUE, backward, NOW) == found
    assert group_of("z", policy) == "cloud"


def test_without_groups_there_is_one_without_a_name() -> None:
    found = candidates(None, Policy(), None, fleet(cluster("a")), NOW)
    assert found.groups == (("", ("a",)),)
    assert found.in_group("") == ("a",)


def test_a_taint_that_prefers_others_makes_unwelcome_unless_tolerated() -> None:
    clusters = fleet(cluster("a", taints=(PREFER,)), cluster("b"))
    assert candidates(None, Policy(), None, clusters, NOW).unwelcome == {"a"}
    tolerant = Policy(tolerations=(bears(key="old"),))
    assert candidates(None, tolerant, None, clusters, NOW).unwelcome == frozenset()


def test_candidates_say_when_a_toleration_runs_out_next() -> None:
    policy = Policy(tolerations=(bears(150),))
    clusters = fleet(cluster("a", taints=(NO_EXECUTE,)), cluster("b"))
    found = candidates(None, policy, None, clusters, NOW)
    assert found.changes_at == 1_050.0
    later = candidates(None, policy, None, clusters, found.changes_at)
    assert later.refused == (("a", Tainted(NO_EXECUTE)),), "it has changed at that moment"
    assert later.changes_at is None


def test_a_taint_that_is_tolerated_for_a_limited_time_makes_a_cluster_the_last_choice() -> None:
    policy = Policy(tolerations=(bears(150), bears(120)))
    clusters = fleet(cluster("a", taints=(NO_EXECUTE,)), cluster("b"))
    assert candidates(None, policy, None, clusters, NOW).unwelcome == {"a"}
    for_ever = Policy(tolerations=(bears(150), bears(None)))
    assert candidates(None, for_ever, None, clusters, NOW).unwelcome == frozenset()


@pytest.mark.parametrize(
    ("taints", "tolerations", "moment"),
    [
        pytest.param((), (), EVER, id="no taint"),
        pytest.param((NO_SCHEDULE, PREFER), (), EVER, id="taints that only repel"),
        pytest.param((NO_EXECUTE,), (), -EVER, id="not tolerated"),
        pytest.param((NO_EXECUTE,), (bears(None),), EVER, id="tolerated for ever"),
        pytest.param((NO_EXECUTE,), (bears(150), bears(120)), 1_050.0, id="the longest counts"),
        pytest.param((NO_EXECUTE, NO_SCHEDULE), (bears(150),), 1_050.0, id="the first to end"),
    ],
)
def test_what_runs_is_evicted_when_nothing_more_may_be_placed(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], moment: float
) -> None:
    assert evicted_at(taints, tolerations) == moment
    policy, clusters = Policy(tolerations=tolerations), fleet(cluster("a", taints=taints))
    placing = candidates(None, policy, None, clusters, max(moment, NOW) if moment < EVER else NOW)
    evicting = [refusal for _, refusal in placing.refused if evicts(refusal)]
    assert bool(evicting) == (moment < EVER)


def test_seconds_do_not_run_while_nobody_knows_when_the_taint_came() -> None:
    timeless = Taint(key="lost", effect="NoExecute")
    policy = Policy(tolerations=(bears(0),))
    assert candidates(None, policy, None, fleet(cluster("a", taints=(timeless,))), NOW).allowed


def test_a_moment_without_a_zone_is_in_universal_time() -> None:
    taint = Taint(key="lost", effect="NoExecute", time_added=ADDED.replace(tzinfo=None))
    policy = Policy(tolerations=(bears(150),))
    clusters = fleet(cluster("a", taints=(taint,)))
    assert candidates(None, policy, None, clusters, NOW).changes_at == 1_050.0


def test_only_taints_that_evict_make_pods_leave() -> None:
    assert evicts(Tainted(NO_EXECUTE))
    assert not evicts(Tainted(NO_SCHEDULE))
    assert not evicts(Closed("held"))


def test_the_ladder_is_as_given_or_idle_preempt_provision_for_each_group() -> None:
    assert ladder(Policy(), ("home", "cloud")) == (
        ("home", "Idle"),
        ("home", "Preempt"),
        ("home", "Provision"),
        ("cloud", "Idle"),
        ("cloud", "Preempt"),
        ("cloud", "Provision"),
    )
    given = (("cloud", "Idle"), ("home", "Provision"))
    assert ladder(Policy(ladder=given), ("home", "cloud")) == given  # type: ignore[arg-type]  # rungs


def test_workloads_of_equal_likeness_have_equal_candidates() -> None:
    first, second = workload(priority=1), workload(priority=9)
    assert likeness(first, Policy(), QUEUE) == likeness(second, Policy(), QUEUE)
    for other in (workload(avoids=("a",)), workload(pinned_to="a"), workload(kinds=("/v1/Pod",))):
        assert likeness(first, Policy(), QUEUE) != likeness(other, Policy(), QUEUE)
