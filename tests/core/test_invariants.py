"""Plans that do what no plan may do are told apart, each by a sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fairway.api.meta import Taint
from fairway.core.checks.invariants import broken, forgotten_workloads, overfull, same
from fairway.core.cycle import plan
from fairway.core.model import (
    Flavor,
    Form,
    Held,
    Placed,
    PlacedPods,
    PodSet,
    Pool,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    Workload,
)
from fairway.core.nodes import Cluster, Nodes, label_column
from fairway.core.plan import Admit, Plan, Preempt, Provision, Step
from fairway.core.snapshot import Facts, Snapshot
from fairway.view.objects import Objects
from tests.builders import NOW, cluster, flavor, policy, queue, workload

CPU, GPU = "cpu", "nvidia.com/gpu"
SHAPE = Shape(requests=((CPU, 1000),))
PODS = PlacedPods(name="main", count=2, shape=SHAPE, flavors=((CPU, "any"),))
HERE = Placed(cluster="c", pods=(PODS,))
START = Admit(workload="new", placed=(HERE,))


def facts() -> Facts:
    """A cluster of four CPUs; `old` has two of them, `new` waits for two."""
    queue = Queue(
        name="q",
        groups=(ResourceGroup(resources=(CPU,), flavors=("any",)),),
        quotas={("any", CPU): Quota(nominal=6000)},
        claimed_max=2,
    )
    form = Form(pod_sets=(PodSet(name="main", shape=SHAPE, count=2, least=2),))
    new = Workload(key="new", queue="q", forms=(form,))
    held = Held(queue="q", placed=(HERE,), started_at=0.0)
    nodes = Nodes(
        names=("n0", "n1"),
        capacity={CPU: np.array([2000, 2000], dtype=np.int64)},
        ready=np.ones(2, dtype=np.bool_),
    )
    pool = Pool(name="pool", shape=((CPU, 2000),), left=2)
    return Facts(
        now=10.0,
        queues={"q": queue},
        flavors={"any": Flavor(name="any")},
        clusters={"c": Cluster(name="c", nodes=nodes, pools=(pool,))},
        workloads={"new": new, "old": replace(new, key="old", held=held)},
    )


def sized(count: int) -> Admit:
    return replace(START, placed=(replace(HERE, pods=(replace(PODS, count=count),)),))


def with_queue(**changes: object) -> Callable[[Facts], Facts]:
    return lambda item: replace(item, queues={"q": replace(item.queues["q"], **changes)})


def with_new(**changes: object) -> Callable[[Facts], Facts]:
    return lambda item: replace(
        item, workloads={**item.workloads, "new": replace(item.workloads["new"], **changes)}
    )


def as_it_is(one: Facts) -> Facts:
    return one


QUOTA = {("any", CPU): Quota(nominal=3000)}
ASKS = Provision(workload="new", cluster="c", pool="pool", count=3)
TAKES = Preempt(workload="old", for_="new")
BAD = [
    pytest.param(as_it_is, [START, START], "is started twice", id="a second start"),
    pytest.param(as_it_is, [sized(1)], "has 1 pods of main", id="a gang in part"),
    pytest.param(as_it_is, [sized(3)], "has no room in c", id="more pods than nodes hold"),
    pytest.param(as_it_is, [sized(3)], "more than c has", id="more than the nodes have in all"),
    pytest.param(
        as_it_is,
        [replace(START, placed=(HERE, replace(HERE, cluster="d")))],
        "is one gang in 2 clusters",
        id="a gang in two clusters",
    ),
    pytest.param(with_queue(quotas=QUOTA), [START], "beyond its quota", id="more than quota"),
    pytest.param(with_queue(claimed_max=1), [START], "one claim too many", id="one claim more"),
    pytest.param(with_queue(is_held=True), [START], "though it is held", id="a held queue"),
    pytest.param(with_queue(fence=frozenset()), [START], "may not be", id="behind the fence"),
    pytest.param(with_new(not_before=20.0), [START], "back-off", id="too soon after a failure"),
    pytest.param(as_it_is, [TAKES], "which does not start", id="a victim for nobody"),
    pytest.param(as_it_is, [TAKES, TAKES, START], "and for another", id="a victim twice"),
    pytest.param(as_it_is, [TAKES, START], "does not wait for its victims", id="a start too early"),
    pytest.param(
        as_it_is, [replace(TAKES, workload="new"), START], "holds nothing", id="a victim that waits"
    ),
    pytest.param(as_it_is, [ASKS, START], "1 nodes too many", id="more nodes than the pool has"),
]


@pytest.mark.parametrize(("change", "steps", "sentence"), BAD)
def test_what_no_plan_may_do_is_told(
    change: Callable[[Facts], Facts], steps: list[Step], sentence: str
) -> None:
    found = broken(change(facts()), Plan(now=10.0, steps=tuple(steps)))
    assert any(sentence in item for item in found), found


def moving(nominal: int, **changes: object) -> list[str]:
    """What is said of a plan that moves one of two replicas from west to east."""
    home = policy("home", ["east"], ["west"], returnHome={"enabled": True, "surge": 1})
    service = workload(
        "s", "q", mode="Divided", replicas=2, running="west", since=7200, policy="home"
    )
    objects = [flavor("h100"), queue("q", nominal), cluster("east", 1), cluster("west", 8)]
    facts = Objects.of([*objects, home, service]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    (move,) = made.steps
    return broken(facts, replace(made, steps=(replace(move, **changes),)))


@pytest.mark.parametrize(
    ("nominal", "changes", "sentence"),
    [
        pytest.param(3, {}, "", id="with quota for both it starts first"),
        pytest.param(2, {}, "", id="without, it stops first"),
        pytest.param(2, {"stops_first": False}, "beyond its quota", id="no quota for both"),
        pytest.param(3, {"source": "east"}, "where it is not", id="from where it is not"),
        pytest.param(3, {"count": 3}, "moves 3 replicas of 2", id="more than there are"),
        pytest.param(3, {"count": 2}, "has 1 there", id="more than arrive"),
    ],
)
def test_a_move_keeps_quota_and_numbers(
    nominal: int, changes: dict[str, object], sentence: str
) -> None:
    found = moving(nominal, **changes)
    assert any(sentence in item for item in found) if sentence else found == []


def test_a_plan_that_is_in_order_breaks_nothing() -> None:
    made, _ = plan(Snapshot(facts()))
    assert [step.workload for step in made.steps] == ["new"]
    assert broken(facts(), made) == []
    assert forgotten_workloads(facts(), made) == []


def growing(pods: int, **pool: object) -> list[str]:
    """What is said of a plan that starts two small pods, then large ones and a node for them.

    The small pods are packed on one node; one large pod fits on each only if they are apart.
    """
    old = facts()
    nodes = replace(old.clusters["c"].nodes, capacity={CPU: np.array([3000, 3000], dtype=np.int64)})
    elastic = replace(old.clusters["c"].pools[0], **pool)
    shape = Shape(requests=((CPU, 2000),))
    large = PlacedPods(name="main", count=pods, shape=shape, flavors=((CPU, "any"),))
    form = Form(pod_sets=(PodSet(name="main", shape=shape, count=pods, least=pods),))
    grown = replace(
        with_queue(quotas={("any", CPU): Quota(nominal=20_000)})(old),
        flavors={"any": Flavor(name="any", node_labels=(("kind", "any"),))},
        clusters={
            "c": Cluster(
                name="c",
                nodes=replace(nodes, labels={"kind": label_column(["any", "any"])}),
                pools=(elastic,),
            )
        },
        workloads={
            "new": old.workloads["new"],
            "large": Workload(key="large", queue="q", forms=(form,)),
        },
    )
    steps = (
        START,
        replace(ASKS, workload="large", count=1),
        Admit(workload="large", placed=(replace(HERE, pods=(large,)),)),
    )
    return broken(grown, Plan(now=10.0, steps=steps))


def test_pods_may_be_packed_otherwise_when_new_nodes_come() -> None:
    labels = (("kind", "any"),)
    taints = (Taint(key="kept", effect="NoSchedule"),)
    assert growing(3, labels=labels) == []
    for faults in (
        growing(4, labels=labels),
        growing(3, labels=(("kind", "other"),)),
        growing(3, labels=labels, taints=taints),
    ):
        assert any("large: has no room in c" in sentence for sentence in faults), faults


def bought(**pool: object) -> list[str]:
    """What is said of a plan that asks for two GPUs, on a new node, where no node has any."""
    old = facts()
    shape = Shape(requests=((GPU, 1000),))
    pods = PlacedPods(name="main", count=2, shape=shape, flavors=((GPU, "h100"),))
    form = Form(pod_sets=(PodSet(name="main", shape=shape, count=2, least=2),))
    elastic = Pool(name="pool", shape=((GPU, 2000),), left=1, labels=(("gpu", "h100"),))
    new = replace(
        with_new(forms=(form,))(old),
        queues={
            "q": replace(
                old.queues["q"],
                groups=(ResourceGroup(resources=(GPU,), flavors=("h100", "a100")),),
                quotas={(name, GPU): Quota(nominal=2000) for name in ("h100", "a100")},
            )
        },
        flavors={
            name: Flavor(name=name, node_labels=(("gpu", name),)) for name in ("h100", "a100")
        },
        clusters={"c": replace(old.clusters["c"], pools=(replace(elastic, **pool),))},
    )
    start = replace(START, placed=(replace(HERE, pods=(pods,)),))
    steps = (replace(ASKS, count=1), start)
    return broken(new, Plan(now=10.0, steps=steps))


def test_new_nodes_may_bring_a_resource_that_no_node_had() -> None:
    assert bought() == []
    assert "new: takes 1000 of nvidia.com/gpu  more than c has" in bought(shape=((GPU, 1000),))
    assert "new: takes 2000 of nvidia.com/gpu h100 more than c has" in bought(
        labels=(("gpu", "a100"),)
    ), "new nodes count as nodes of their own flavor only"


def test_a_workload_without_an_answer_is_told() -> None:
    assert forgotten_workloads(facts(), Plan(now=10.0)) == [
        "new waits, and the plan says nothing of it"
    ]


def test_claims_beyond_what_nodes_have_are_told() -> None:
    held = Held(queue="q", placed=sized(3).placed, started_at=0.0)
    assert overfull(with_new(held=held)(facts()))
    assert overfull(facts()) == []


def test_claims_on_parts_of_devices_are_packed_in_another_order_without_a_trace() -> None:
    """In the order of the claims the last one finds no room; devices are whole again after that."""
    pods = [(1, 4000, 750), (2, 2000, 1000), (2, 1000, 500), (1, 2000, 2000), (2, 2000, 1000)]
    claims = {}
    for number, (count, cpu, gpu) in enumerate(pods):
        shape = Shape(requests=((CPU, cpu), (GPU, gpu)))
        place = ("rack", (("r2", 2),)) if number == 1 else ("", ())
        part = PlacedPods(
            name="main", count=count, shape=shape, flavors=(), level=place[0], domains=place[1]
        )
        form = Form(pod_sets=(PodSet(name="main", shape=shape, count=count, least=count),))
        held = Held(queue="q", placed=(Placed(cluster="c", pods=(part,)),), decided_at=number)
        claims[f"w{number}"] = Workload(key=f"w{number}", queue="q", forms=(form,), held=held)
    nodes = Nodes(
        names=("n0", "n1"),
        capacity={
            CPU: np.array([8000, 8000], dtype=np.int64),
            GPU: np.array([4000, 4000], dtype=np.int64),
        },
        ready=np.ones(2, dtype=np.bool_),
        labels={"example/rack": label_column(["r1", "r2"])},
    )
    place = Cluster(name="c", nodes=nodes, levels=(("rack", "example/rack"),))
    assert overfull(replace(facts(), clusters={"c": place}, workloads=claims)) == []


def test_plans_are_the_same_only_byte_for_byte() -> None:
    assert same(Plan(now=1.0, steps=(START,)), Plan(now=1.0, steps=(START,)))
    assert not same(Plan(now=1.0, steps=(START,)), Plan(now=1.0, steps=(sized(1),)))
