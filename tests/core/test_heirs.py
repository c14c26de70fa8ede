"""Those who take what victims leave: whom they wait for, and what is charged meanwhile."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.cycle import plan
from fairway.core.model import Workload
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.builders import (
    GPU,
    H100,
    NOW,
    Plain,
    cluster,
    leaving,
    policy,
    queue,
    told,
    workload,
)

PREEMPTS = {"preemption": {"withinQueue": "LowerPriority"}}
PAIR = ("h100", GPU)


def fleet(*objects: Plain) -> View:
    view = View()
    for object_ in (H100, *objects):
        view.put(object_)
    return view


def decide(view: View, now: float = NOW) -> list[str]:
    """Plans, and takes the plan for written: victims are leaving, and claims are held."""
    made, _ = plan(view.snapshot(now))
    view.assume(made)
    return told(made)


def urgent(number: int, priority: int = 9, **more: object) -> Plain:
    return workload(f"urgent-{number}", "left", gpus=8, priority=priority, **more)


def low(number: int, count: int = 1) -> Plain:
    return workload(f"low-{number}", "left", gpus=8, count=count, running="east")


def test_each_who_comes_while_victims_end_takes_one_victim_and_no_more() -> None:
    view = fleet(queue("left", 24, **PREEMPTS), cluster("east", 8, 8, 8), *map(low, range(3)))
    for number in range(3):
        view.put(urgent(number))
        steps = decide(view)
        assert [step for step in steps if "yields" in step] == [
            f"low-{number} yields to urgent-{number}"
        ], steps
        assert view.snapshot(NOW).tree.usage("left") == {PAIR: 24_000}


def test_what_a_victim_leaves_over_is_taken_by_one_who_waits_for_it() -> None:
    view = fleet(
        queue("left", 16, **PREEMPTS),
        cluster("east", 8, 8),
        low(0, count=2),
        urgent(0),
        workload("small", "left", gpus=2, priority=8),
        workload("late", "left", gpus=8),
    )
    assert decide(view) == [
        "low-0 yields to urgent-0",
        "urgent-0 starts in east:1@h100 after low-0",
        "small starts in east:1@h100 after low-0",
        "late waits: QuotaExceeded, NoVictims",
    ]
    assert view.snapshot(NOW).tree.usage("left") == {PAIR: 16_000}


def test_one_who_finds_idle_room_and_quota_waits_for_nobody() -> None:
    view = fleet(
        queue("left", 24, **PREEMPTS),
        cluster("east", 8),
        cluster("west", 8),
        workload("low-0", "left", gpus=8, running="east"),
        workload("urgent-0", "left", gpus=8, priority=9, policy="eastern"),
        workload("other", "left", gpus=8, priority=8),
        policy("eastern", ["east"]),
    )
    steps = decide(view)
    assert "urgent-0 starts in east:1@h100 after low-0" in steps
    assert "other starts in west:1@h100" in steps


def test_one_who_lacks_quota_waits_for_a_victim_in_another_cluster() -> None:
    view = fleet(
        queue("left", 8, **PREEMPTS),
        cluster("east", 8),
        cluster("west", 8),
        workload("low-0", "left", gpus=8, running="east"),
        workload("urgent-0", "left", gpus=4, priority=9, policy="eastern"),
        workload("other", "left", gpus=4, priority=8, policy="western"),
        policy("eastern", ["east"]),
        policy("western", ["west"]),
    )
    steps = decide(view)
    assert "other starts in west:1@h100 after low-0" in steps
    assert view.snapshot(NOW).tree.usage("left") == {PAIR: 8_000}


def test_the_heir_of_one_who_waited_waits_for_the_same() -> None:
    view = fleet(
        queue("left", 8, **PREEMPTS),
        cluster("east", 8),
        cluster("west", 8),
        policy("western", ["west"]),
        low(0),
        urgent(0, policy="western"),
    )
    assert "urgent-0 starts in west:1@h100 after low-0" in decide(view)
    view.put(urgent(1, priority=20, policy="western"))
    assert decide(view)[:2] == [
        "urgent-0 yields to urgent-1",
        "urgent-1 starts in west:1@h100 after urgent-0, low-0",
    ]
    view.remove(urgent(0))
    assert view.snapshot(NOW).tree.usage("left") == {PAIR: 8_000}


def test_what_an_heir_will_need_beside_what_is_about_to_be_free_is_kept_for_it() -> None:
    view = fleet(
        queue("left", 100, **PREEMPTS),
        cluster("east", 8),
        workload("low-0", "left", gpus=6, running="east"),
        workload("urgent-0", "left", gpus=8, priority=9),
    )
    assert "urgent-0 starts in east:1@h100 after low-0" in decide(view)
    view.put(workload("small", "left", gpus=2))
    assert decide(view)[-1] == "small waits: DoesNotFit, NoVictims, NoPool"


def test_a_victim_that_leaves_again_later_is_charged_in_full() -> None:
    """Who once yielded may run and yield again: the first heir has no part in that."""
    victim = leaving(low(0), attempt=5)
    heir = urgent(0, running="east")
    heir["status"]["phase"] = "Claimed"
    del heir["status"]["claim"]["readyAt"]
    named = {"namespace": "team", "name": "low-0"}
    for attempt, expected in ((1, 16_000), (5, 8_000)):
        heir["status"]["claim"]["waitsFor"] = [
            {"type": "Preemption", "workload": named, "attempt": attempt}
        ]
        objects = [H100, queue("left", 24), cluster("east", 8, 8), victim, heir]
        snapshot = Snapshot(Objects.of(objects).facts(NOW))
        assert snapshot.tree.usage("left") == {PAIR: expected}


def test_a_queue_that_borrows_only_with_those_that_leave_gives_back_no_more() -> None:
    shares = {"parent": "lab", "preemption": {"reclaim": "Any"}}
    view = fleet(
        queue("lab"),
        queue("left", 8, **shares),
        queue("right", 8, **shares),
        queue("spare", 4, parent="lab"),
        cluster("east", 8, 8, 8),
        leaving(workload("cancelled", "right", gpus=8, running="east")),
        workload("stays", "right", gpus=8, running="east"),
        workload("large", "left", gpus=6, count=2),
    )
    assert decide(view) == [
        "large starts in east:2@h100 after cancelled", "cancelled waits: StillEnding",
    ]  # fmt: skip


def test_what_a_service_gives_back_is_charged_until_it_is_gone() -> None:
    service = {"mode": "Divided", "replicas": 1}
    view = fleet(
        queue("left", 8),
        cluster("east", 8),
        workload("service", "left", gpus=2, running="east", holds=3, **service),
    )
    assert decide(view) == ["service starts in east:1@h100"]
    assert view.snapshot(NOW).tree.usage("left") == {PAIR: 6_000}
    view.put(workload("waits", "left", gpus=4))
    assert decide(view)[-1].startswith("waits waits: QuotaExceeded")


def test_heirs_that_only_fit_together_once_others_are_gone_keep_their_room() -> None:
    # The small ones fit beside what leaves, but then the large ones would fit nowhere at all.
    going = {f"goes-{node}": gpus for node, gpus in enumerate((4, 4, 6))}
    objects = [
        workload("small", "left", gpus=2, count=4, running="east"),
        workload("zlarge", "left", gpus=4, count=4, running="east"),
        *(workload(name, "left", gpus=gpus, running="east") for name, gpus in going.items()),
        workload("newcomer", "left", gpus=2),
    ]
    facts = Objects.of(
        [H100, queue("left", 99), cluster("east", 8, 8, 8), policy("p", ["east"]), *objects]
    ).facts(NOW)
    workloads = dict(facts.workloads)
    for node, name in enumerate(going):
        seen = _seen_on(workloads[f"team/{name}"], node)
        assert seen.held is not None
        leaves = tuple(replace(placed, attempt=1) for placed in seen.held.placed)
        workloads[f"team/{name}"] = replace(seen, held=None, releasing=leaves)
    snapshot = Snapshot(replace(facts, workloads=workloads))
    assert plan(snapshot)[0].steps == ()


def test_fragments_are_kept_for_a_claimed_pod_that_fits_on_no_node() -> None:
    # Two of four devices are in use on each node, so a claimed pod of four must wait for one of
    # them. What is left adds up to its four devices; two more would be too many.
    facts = Objects.of(
        [
            H100, queue("left", 99), cluster("east", 4, 4, 2), policy("p", ["east"]),
            workload("large", "left", gpus=4, running="east"),
            *(workload(f"bound-{node}", "left", gpus=2, running="east") for node in range(2)),
            workload("fits", "left", gpus=1, count=2),
            workload("too-much", "left", gpus=1, count=1),
        ]
    ).facts(NOW)  # fmt: skip
    workloads = dict(facts.workloads)
    for node in range(2):
        key = f"team/bound-{node}"
        workloads[key] = _seen_on(workloads[key], node)
    made, _ = plan(Snapshot(replace(facts, workloads=workloads)))
    assert told(made) == [
        "fits starts in east:2@h100",
        "too-much waits: DoesNotFit, NoVictims, NoPool",
    ]


def _seen_on(workload: Workload, node: int) -> Workload:
    """A workload whose only pod was seen on a node."""
    assert workload.held is not None
    (placed,) = workload.held.placed
    (pods,) = placed.pods
    seen = replace(placed, bound={pods.name: {node: 1}})
    return replace(workload, held=replace(workload.held, placed=(seen,)))
