"""Which changes of objects lead to a plan of all that waits."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from fairway.clock import timestamp
from fairway.controllers.scheduling.wake_ups import Notice
from fairway.view.view import View
from tests.builders import NOW, Plain, cluster, flavor, fleet, policy, queue, workload

Edit = Callable[[Plain], object]
EAST = cluster("east", 8)
REPORT = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "ClusterReport",
    "metadata": {"name": "east-0"},
    "spec": {"cluster": "east", "agentEpoch": 1, "sequence": 1, "seenAt": timestamp(NOW)},
}
RUNS = workload("train", "q", count=4, running="east")
WAITS = workload("train", "q", count=4)


def status(**fields: object) -> Edit:
    return lambda plain: plain.setdefault("status", {}).update(fields)


def spec(**fields: object) -> Edit:
    return lambda plain: plain["spec"].update(fields)


FREES: dict[str, tuple[Plain, Edit, bool]] = {
    "a cluster gets a taint": (EAST, spec(taints=[{"key": "a", "effect": "NoSchedule"}]), True),
    "a cluster is ready": (EAST, status(phase="Unready"), True),
    "a cluster says what is empty as well": (EAST, status(claims={}, elasticPools=[]), False),
    "a cluster counts its nodes": (EAST, status(readyNodes=7), False),
    "a queue has another quota": (queue("q", 8), spec(hold="Hold"), True),
    "a queue has another status": (queue("q", 8), status(waitingWorkloads=3), False),
    "a policy has chosen": (policy("p"), status(chosen=1), False),
    "a flavor costs more": (flavor("h100"), spec(prices={"cpu": "1"}), True),
    "the fleet is paused": (fleet(), spec(paused=True), True),
    "a breaker opens": (
        fleet(),
        status(breakers=[{"name": "Moves", "pastHour": "1", "openSince": timestamp(NOW)}]),
        True,
    ),
    "a breaker counts": (fleet(), status(breakers=[{"name": "Moves", "pastHour": "1"}]), False),
    "others leave a namespace of a cluster": (
        REPORT, spec(namespaces=[{"name": "team", "quotas": [{"name": "q", "hard": {"pods": 4}}]}]),
        True,
    ),
    "a report is newer": (REPORT, spec(sequence=2), False),
    "a workload gives back pods": (
        RUNS,
        lambda plain: plain["status"]["claim"]["placements"][0]["podSets"][0].update(count=2),
        True,
    ),
    "a workload loses its claim": (RUNS, lambda plain: plain["status"].pop("claim"), True),
    "a service may return to what it avoided": (
        {**RUNS, "status": {**RUNS["status"], "requeue": {"avoid": ["west"]}}},
        status(requeue={}),
        True,
    ),
    "a service avoids one more": (RUNS, status(requeue={"avoid": ["west"]}), False),
    "a waiting workload no longer avoids": (
        {**WAITS, "status": {"requeue": {"avoid": ["west"]}}},
        status(requeue={}),
        False,
    ),
    "a workload waits for another reason": (WAITS, status(reason="QuotaExceeded"), False),
}  # fmt: skip


class Planner:
    """A view and the notice of what happened to it, after a first plan."""

    def __init__(self, *objects: Plain) -> None:
        self.view, self.notice = View(), Notice()
        for plain in objects:
            self.put(plain)
        self.notice.clear()

    def put(self, plain: Plain) -> None:
        touched = self.view.put(json.dumps(plain).encode())
        assert touched is not None
        self.notice.note(touched)

    def remove(self, plain: Plain) -> None:
        touched = self.view.remove(json.dumps(plain).encode())
        assert touched is not None
        self.notice.note(touched)


@pytest.mark.parametrize(("plain", "edit", "is_freed"), FREES.values(), ids=FREES)
def test_something_may_be_free_after(plain: Plain, edit: Edit, is_freed: bool) -> None:
    planner = Planner(plain)
    changed = copy.deepcopy(plain)
    edit(changed)
    planner.put(changed)
    assert planner.notice.is_freed is is_freed


@pytest.mark.parametrize("plain", [EAST, queue("q", 8), flavor("h100"), RUNS])
def test_removed_objects_free_what_they_held(plain: Plain) -> None:
    planner = Planner(plain)
    planner.remove(plain)
    assert planner.notice.is_freed


def test_a_changed_workload_is_planned_alone_until_it_is_over() -> None:
    planner = Planner(WAITS)
    planner.put(WAITS)
    assert (planner.notice.woken, planner.notice.is_freed) == ({"team/train"}, False)
    over = copy.deepcopy(WAITS)
    status(phase="Cancelled")(over)
    planner.put(over)
    assert planner.notice.woken == set()


def test_a_workload_is_woken_when_its_backoff_ends_and_its_alternative_is_due() -> None:
    later = workload("train", "q", waited=60, alternatives=[{"name": "small", "afterSeconds": 600}])
    status(requeue={"notBefore": timestamp(NOW + 90)})(later)
    planner = Planner(later)
    assert planner.notice.next_moment() == NOW + 90
    planner.notice.ring(NOW + 90)
    assert planner.notice.woken == {"team/train"}
    assert planner.notice.next_moment() == NOW + 540


def test_a_pool_that_was_out_of_stock_is_tried_for_everything_that_waits() -> None:
    out = copy.deepcopy(EAST)
    status(stock=[{"name": "spot", "tryAt": timestamp(NOW + 300)}])(out)
    planner = Planner(EAST)
    planner.put(out)
    planner.notice.clear()
    planner.notice.ring(NOW + 299)
    assert not planner.notice.is_freed
    planner.notice.ring(NOW + 300)
    assert planner.notice.is_freed
