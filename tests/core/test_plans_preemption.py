"""Tables of small fleets in which somebody must yield: a rule as a sentence, and the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway.clock import timestamp
from fairway.core import model
from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import Workload
from fairway.core.nodes import Cluster, Nodes
from fairway.core.plan import Preempt
from fairway.core.seats import kept_free
from fairway.core.snapshot import Facts, Snapshot
from fairway.view.view import View
from tests.builders import (
    H100,
    NOW,
    Plain,
    cluster,
    flavor,
    fleet,
    leaving,
    plan_of,
    policy,
    pool,
    queue,
    told,
    workload,
)

A100 = flavor("a100")
LOWER = {"withinQueue": "LowerPriority"}
RECLAIMS = {"withinQueue": "LowerPriority", "reclaim": "Any"}


def runs(name: str, in_queue: str = "q", count: int = 8, **more: Any) -> Plain:
    return workload(name, in_queue, count=count, running="east", **more)


def urgent(count: int, in_queue: str = "q", **more: Any) -> Plain:
    return workload("urgent", in_queue, count=count, priority=9, **more)


_STOPPING = [leaving(runs("stopping")), runs("low")]


def going_on(leaves: str) -> Plain:
    """A service that runs in one cluster, and leaves another."""
    made = workload("web", "q", mode="Divided", replicas=8, running="west", priority=9)
    (here,) = made["status"]["claim"]["placements"]
    made["status"]["releasing"] = [{**here, "cluster": "east", "attempt": 1, "leaves": leaves}]
    return made


LEAVING = {
    "quota that is on its way out is waited for, and nobody yields": (
        [queue("q", 16, preemption=LOWER), cluster("east", 32), *_STOPPING, urgent(4)],
        ["urgent starts in east:4@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "nodes that are on their way out are waited for, and nobody yields": (
        [queue("q", 64, preemption=LOWER), cluster("east", 8, 8), *_STOPPING, urgent(4)],
        ["urgent starts in east:4@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "two share what is on its way out": (
        [queue("q", 16, preemption=LOWER), cluster("east", 8, 8), *_STOPPING,
         urgent(4, waited=90), workload("next", "q", count=4, priority=9)],
        ["urgent starts in east:4@h100 after stopping", "next starts in east:4@h100 after stopping",
         "stopping waits: StillEnding"],
    ),
    "quota is waited for of as few as are needed, those of the same queue first": (
        [queue("root"), queue("q", 8, parent="root", preemption=RECLAIMS),
         queue("guest", 8, parent="root"), cluster("east", 32),
         leaving(runs("a", "guest", count=4)), leaving(runs("b", count=4)),
         leaving(runs("c", count=4)), runs("d", "guest", count=4), urgent(4)],
        ["urgent starts in east:4@h100 after b", "a waits: StillEnding", "b waits: StillEnding",
         "c waits: StillEnding"],
    ),
    "what may not borrow waits for quota of its own that is on its way out": (
        [queue("root"), queue("q", 8, parent="root", preemption=LOWER),
         queue("lender", 8, parent="root"), cluster("east", 32),
         leaving(runs("stopping", count=4)), runs("base", count=4, priority=9),
         urgent(4, preemptible=False)],
        ["urgent starts in east:4@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "a service that may not borrow waits as well": (
        [queue("root"), queue("q", 8, parent="root", preemption=LOWER),
         queue("lender", 8, parent="root"), cluster("east", 32),
         leaving(runs("stopping", count=4)), runs("base", count=4, priority=9),
         workload("web", "q", mode="Divided", replicas=4, priority=9, preemptible=False)],
        ["web starts in east:4@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "only what that does not cover is taken from others": (
        [queue("q", 16, preemption=LOWER), cluster("east", 8, 4, 4), leaving(runs("stopping")),
         runs("low-1", count=4), runs("low-2", count=4, since=60), urgent(12)],
        ["low-2 yields to urgent", "urgent starts in east:12@h100 after low-2, stopping",
         "stopping waits: StillEnding"],
    ),
    "a service that leaves is waited for": (
        [queue("q", 16, preemption=LOWER), cluster("east", 8, 8),
         leaving(workload("web", "q", mode="Divided", replicas=8, running="east")),
         runs("low"), urgent(8)],
        ["urgent starts in east:8@h100 after web", "web waits: StillEnding"],
    ),
    "replicas that stop at once are waited for, while their service goes on": (
        [queue("q", 24, preemption=LOWER), cluster("east", 8, 8), cluster("west", 8),
         going_on("Now"), runs("low"), urgent(8)],
        ["urgent starts in east:8@h100 after web"],
    ),
    "nobody counts on replicas that run until others do": (
        [queue("q", 24, preemption=LOWER), cluster("east", 8, 8), cluster("west", 8),
         going_on("WhenReplaced"), runs("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in east:8@h100 after low"],
    ),
    "nor on those that stop as their budget allows": (
        [queue("q", 20, preemption=LOWER), cluster("east", 24), cluster("west", 8),
         going_on("WithinBudget"), runs("low", count=4), urgent(4)],
        ["low yields to urgent", "urgent starts in east:4@h100 after low"],
    ),
    "a queue that may not preempt waits until they are gone": (
        [queue("q", 16), cluster("east", 8, 8), *_STOPPING, urgent(4)],
        ["stopping waits: StillEnding", "urgent waits: QuotaExceeded, NoVictims"],
    ),
    "what is claimed stays claimed, also where the cluster bound smaller pods otherwise": (
        [queue("q", 64, preemption=LOWER), cluster("east", 8, 8),
         leaving(runs("stopping", count=1, gpus=4)), runs("small", count=1, gpus=3, priority=9),
         runs("large", count=2, gpus=6, since=60, priority=9), urgent(1, gpus=4)],
        ["stopping waits: StillEnding", "urgent waits: DoesNotFit, NoVictims, NoPool"],
    ),
    "what leaves a cluster that does not answer is not counted on": (
        [queue("q", 16, preemption=LOWER), cluster("east", 8, 8),
         {**cluster("west", 8), "status": {"phase": "Lost"}},
         leaving(workload("stopping", "q", count=8, running="west")), runs("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in east:8@h100 after low",
         "stopping waits: StillEnding"],
    ),
}  # fmt: skip


def two_flavors(fungibility: Plain | None = None, **more: Any) -> list[Plain]:
    spec = {"fungibility": fungibility} if fungibility else {}
    quotas = {"h100": 8, "a100": 8}
    return [A100, queue("q", quotas=quotas, preemption=LOWER, **spec, **more),
            cluster("east", 8), cluster("west", 8, model="a100")]  # fmt: skip


def on_a100(name: str, in_queue: str = "q", **more: Any) -> Plain:
    return workload(name, in_queue, count=8, running="west", on="a100", **more)


_STOPS = {"whenCanPreempt": "MayStopSearch"}
_RATHER_PREEMPTS = {
    "whenCanBorrow": "TryNextFlavor", "preference": "PreemptionOverBorrowing",
}  # fmt: skip
_LENDER = [
    A100, queue("root"),
    queue("lends", quotas={"h100": 8, "a100": 8}, parent="root"),
    cluster("east", 8, 8), cluster("west", 8, 8, model="a100"),
]  # fmt: skip


def own_eight(**fungibility: str) -> Plain:
    """A queue with eight H100 of its own, and none of the other flavor."""
    return queue("q", quotas={"h100": 8, "a100": 0}, parent="root", preemption=LOWER,
                 fungibility=fungibility)  # fmt: skip


def own_a100(**fungibility: str) -> Plain:
    """A queue with eight A100 of its own, and none of the first flavor."""
    return queue("q", quotas={"h100": 0, "a100": 8}, parent="root", preemption=LOWER,
                 fungibility=fungibility)  # fmt: skip


_NEAR_AND_FAR = [
    A100, queue("root"), queue("team", parent="root"),
    queue("near", quotas={"h100": 0, "a100": 8}, parent="team"),
    queue("far", quotas={"h100": 8, "a100": 0}, parent="root"),
    cluster("east", 8), cluster("west", 8, model="a100"),
]  # fmt: skip


def nothing_own(**fungibility: str) -> Plain:
    """A queue that borrows A100s from its team, and H100s from beyond it."""
    return queue("q", quotas={"h100": 0, "a100": 0}, parent="team", preemption=LOWER,
                 fungibility=fungibility)  # fmt: skip


FLAVORS = {
    "the lower priority yields, though it is on the second flavor": (
        [*two_flavors(), runs("fifty", priority=50), on_a100("minus-five", priority=-5),
         workload("new", "q", count=8, priority=99)],
        ["minus-five yields to new", "new starts in west:8@a100 after minus-five"],
    ),
    "a queue that may stop its search takes the first flavor that works": (
        [*two_flavors(_STOPS), runs("fifty", priority=50), on_a100("minus-five", priority=-5),
         workload("new", "q", count=8, priority=99)],
        ["fifty yields to new", "new starts in east:8@h100 after fifty"],
    ),
    "the older name of that means the same": (
        [*two_flavors({"whenCanPreempt": "Preempt"}), runs("fifty", priority=50),
         on_a100("minus-five", priority=-5), workload("new", "q", count=8, priority=99)],
        ["fifty yields to new", "new starts in east:8@h100 after fifty"],
    ),
    "on the first flavor too, of equal priorities the one that lost least yields": (
        [*two_flavors(), runs("long", since=7200), on_a100("short", since=60), urgent(8)],
        ["short yields to urgent", "urgent starts in west:8@a100 after short"],
    ),
    "idle capacity of any flavor comes before victims": (
        [*two_flavors(), runs("low"), urgent(8)],
        ["urgent starts in west:8@a100"],
    ),
    "a queue that may stop its search preempts on the first flavor, though the next is idle": (
        [*two_flavors(_STOPS), runs("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in east:8@h100 after low"],
    ),
    "it takes the next flavor where nobody on the first may be preempted": (
        [*two_flavors(_STOPS), runs("equal", priority=9), urgent(8)],
        ["urgent starts in west:8@a100"],
    ),
    "it waits for what is being freed of the first flavor": (
        [*two_flavors(_STOPS), leaving(runs("stopping")), urgent(8)],
        ["urgent starts in east:8@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "a queue that may stop its search and preempts nobody takes the next flavor": (
        [A100, queue("q", quotas={"h100": 8, "a100": 8}, fungibility=_STOPS), cluster("east", 8),
         cluster("west", 8, model="a100"), leaving(runs("stopping")), urgent(8)],
        ["urgent starts in west:8@a100", "stopping waits: StillEnding"],
    ),
    "the search stops where the place of victims is borrowed": (
        [*_LENDER, own_a100(**_STOPS), runs("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in east:8@h100 after low"],
    ),
    "but not if the queue borrows last": (
        [*_LENDER, own_a100(**_STOPS, whenCanBorrow="TryNextFlavor"), runs("low"), urgent(8)],
        ["urgent starts in west:8@a100"],
    ),
    "a queue that may stop its search uses idle capacity of any flavor first if its policy does": (
        [*two_flavors(_STOPS), cluster("north", 1),
         policy("p", ["east", "west"], ["north"], ladder=[
             {"group": "g0", "rung": "Idle"}, {"group": "g1", "rung": "Idle"},
             {"group": "g0", "rung": "Preempt"}]),
         runs("low"), urgent(8, policy="p")],
        ["urgent starts in west:8@a100"],
    ),
    "a flavor whose new nodes cost less than the work lost does not stop the search": (
        [flavor("h100", prices={"nvidia.com/gpu": "4"}), *two_flavors(_STOPS)[:2],
         cluster("east", 8, pools=[pool("p", 8, stock=1, pricePerHour="1")]),
         cluster("west", 8, model="a100"), policy("thrifty", weighPrice=True),
         runs("low", since=36000), urgent(8, policy="thrifty")],
        ["urgent starts in west:8@a100"],
    ),
    "a service preempts on the first flavor, and takes the rest of the next": (
        [*two_flavors(_STOPS), runs("low", count=4), runs("equal", count=4, priority=9),
         workload("web", "q", mode="Divided", replicas=6, priority=9)],
        ["low yields to web", "web starts in east:4@h100 + west:2@a100 after low"],
    ),
    "a sweep as well": (
        [*two_flavors(_STOPS), runs("low", count=4), runs("equal", count=4, priority=9),
         workload("tasks", "q", mode="Independent", tasks={"count": 6}, priority=9)],
        ["low yields to tasks", "tasks starts in east:4@h100 + west:2@a100 after low"],
    ),
    "a service that is divided by given weights uses what is idle first": (
        [*two_flavors(_STOPS), policy("even", division={"type": "StaticWeight"}),
         runs("low", count=4),
         workload("web", "q", mode="Divided", replicas=8, priority=9, policy="even")],
        ["web starts in east:4@h100 + west:4@a100"],
    ),
    "without clusters the search stops in the same way": (
        [A100, queue("q", quotas={"h100": 8, "a100": 8}, preemption=LOWER, fungibility=_STOPS),
         workload("low", "q", count=8, running="gone"), urgent(8)],
        ["low yields to urgent", "urgent starts in nowhere:8@h100 after low"],
    ),
    "reclaiming comes before preempting one's own, whatever the priorities": (
        [A100, queue("root"), queue("q", quotas={"h100": 8, "a100": 8}, parent="root",
                                    preemption=RECLAIMS),
         queue("guest", quotas={"h100": 0, "a100": 0}, parent="root"), cluster("east", 8),
         cluster("west", 8, model="a100"), runs("own", priority=-5),
         on_a100("borrower", "guest", priority=50), urgent(8)],
        ["borrower yields to urgent", "urgent starts in west:8@a100 after borrower"],
    ),
    "by default a queue borrows rather than preempt": (
        [*_LENDER, own_eight(), runs("low"), urgent(8)],
        ["urgent starts in east:8@h100"],
    ),
    "a queue may rather preempt than borrow": (
        [*_LENDER, own_eight(**_RATHER_PREEMPTS), runs("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in east:8@h100 after low"],
    ),
    "and borrows where there is nobody to preempt": (
        [*_LENDER, own_eight(**_RATHER_PREEMPTS), runs("equal", priority=9), urgent(8)],
        ["urgent starts in east:8@h100"],
    ),
    "a service that would rather preempt than borrow does so too": (
        [*_LENDER, own_eight(**_RATHER_PREEMPTS), runs("low"),
         workload("web", "q", mode="Divided", replicas=8, priority=9)],
        ["low yields to web", "web starts in east:8@h100 after low"],
    ),
    "a queue that would rather preempt waits for its own quota that is being freed": (
        [*_LENDER, own_eight(**_RATHER_PREEMPTS), leaving(runs("stopping")), urgent(8)],
        ["urgent starts in east:8@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "also if it preempts nobody": (
        [*_LENDER, {**own_eight(**_RATHER_PREEMPTS), "spec": {
            **own_eight(**_RATHER_PREEMPTS)["spec"], "preemption": {}}},
         leaving(runs("stopping")), urgent(8)],
        ["urgent starts in east:8@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "wherever that is in use": (
        [*_LENDER[:3], cluster("east", 8), cluster("closed", 8, hold="Hold"),
         own_eight(**_RATHER_PREEMPTS),
         leaving(workload("stopping", "q", count=8, running="closed")), urgent(8)],
        ["urgent starts in east:8@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "a service waits for its own quota too": (
        [*_LENDER, own_eight(**_RATHER_PREEMPTS), leaving(runs("stopping")),
         workload("web", "q", mode="Divided", replicas=8, priority=9)],
        ["web starts in east:8@h100 after stopping", "stopping waits: StillEnding"],
    ),
    "and preempts nearby rather than borrow from afar": (
        [*_NEAR_AND_FAR, nothing_own(**_RATHER_PREEMPTS), on_a100("low"), urgent(8)],
        ["low yields to urgent", "urgent starts in west:8@a100 after low"],
    ),
    "by default it borrows from afar rather than preempt nearby": (
        [*_NEAR_AND_FAR, nothing_own(), on_a100("low"), urgent(8)],
        ["urgent starts in east:8@h100"],
    ),
    "a service preempts nearby rather than borrow from afar too": (
        [*_NEAR_AND_FAR, nothing_own(**_RATHER_PREEMPTS), on_a100("low"),
         workload("web", "q", mode="Divided", replicas=8, priority=9)],
        ["low yields to web", "web starts in west:8@a100 after low"],
    ),
    "idle quota nearby comes before what could be preempted there": (
        [*_NEAR_AND_FAR, nothing_own(**_RATHER_PREEMPTS), urgent(8)],
        ["urgent starts in west:8@a100"],
    ),
    "where there is no cluster, quota is compared in the same way": (
        [A100, queue("q", quotas={"h100": 8, "a100": 8}, preemption=LOWER),
         workload("fifty", "q", count=8, running="gone", priority=50),
         workload("minus-five", "q", count=8, running="gone", on="a100", priority=-5),
         workload("new", "q", count=8, priority=99)],
        ["minus-five yields to new", "new starts in nowhere:8@a100 after minus-five"],
    ),
}  # fmt: skip

_GUESTS = [
    queue("root"), queue("q", 8, parent="root", preemption=RECLAIMS),
    queue("guest", 0, parent="root"), queue("other", 0, parent="root"),
]  # fmt: skip
_PEERS = [
    queue("root"), queue("q", 16, parent="root", preemption=RECLAIMS),
    queue("guest", 0, parent="root"),
]  # fmt: skip

_LONG_AND_SHORT = [
    runs("long", count=4, since=36000), runs("short-1", count=2, since=60),
    runs("short-2", count=2, since=60),
]  # fmt: skip

KEY = {
    "who borrows yields before a workload of the same queue, whatever the priorities": (
        [*_GUESTS, cluster("east", 8), runs("own", count=4, priority=-5),
         runs("borrower", "guest", count=4, priority=5), urgent(4)],
        ["borrower yields to urgent", "urgent starts in east:4@h100 after borrower"],
    ),
    "with fair share the queue furthest above its share yields": (
        [*_GUESTS, cluster("east", 8), runs("much", "guest", count=4, priority=5),
         runs("more", "guest", count=2, priority=5),
         workload("little", "other", count=2, running="east"), urgent(2)],
        ["more yields to urgent", "urgent starts in east:2@h100 after more"],
    ),
    "without it the lowest priority does": (
        [fleet(fairShare={"enabled": False}), *_GUESTS, cluster("east", 8),
         runs("much", "guest", count=4, priority=5), runs("more", "guest", count=2, priority=5),
         workload("little", "other", count=2, running="east"), urgent(2)],
        ["little yields to urgent", "urgent starts in east:2@h100 after little"],
    ),
    "without it a borrower and a workload of the same queue yield before a higher priority": (
        [fleet(fairShare={"enabled": False}), *_PEERS, cluster("east", 12),
         runs("own", count=4), runs("own-higher", count=4, priority=1),
         runs("borrower", "guest", count=4), urgent(8)],
        ["borrower yields to urgent", "own yields to urgent",
         "urgent starts in east:8@h100 after borrower, own"],
    ),
    "nobody goes who could come straight back, if another can go": (
        [*_PEERS, cluster("east", 8), cluster("west", 8),
         runs("own", priority=-5), workload("guest", "guest", count=8, running="west", priority=5),
         urgent(8)],
        ["guest yields to urgent", "urgent starts in west:8@h100 after guest"],
    ),
    "of two sets with one high priority each, the one with lower others goes": (
        [queue("q", 7, preemption=LOWER), queue("z", 8), cluster("east", 8),
         runs("base", "z", count=1, priority=-9), runs("high-1", count=3, priority=5, since=60),
         runs("high-2", count=2, priority=5, since=60),
         runs("low-1", count=1, priority=1), runs("low-2", count=1, priority=1), urgent(5)],
        ["low-1 yields to urgent", "low-2 yields to urgent", "high-1 yields to urgent",
         "urgent starts in east:5@h100 after low-1, low-2, high-1"],
    ),
    "of one priority, two that lost little go rather than one that lost much": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8), *_LONG_AND_SHORT, urgent(4)],
        ["short-1 yields to urgent", "short-2 yields to urgent",
         "urgent starts in east:4@h100 after short-1, short-2"],
    ),
    "a workload of a lower priority elsewhere changes nothing": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8), *_LONG_AND_SHORT, urgent(4),
         queue("z", 8), cluster("west", 8),
         workload("bystander", "z", count=8, running="west", priority=-1)],
        ["short-1 yields to urgent", "short-2 yields to urgent",
         "urgent starts in east:4@h100 after short-1, short-2"],
    ),
    "nor does one of the same queue that is too small to help": (
        [queue("q", 9, preemption=LOWER), cluster("east", 9), *_LONG_AND_SHORT, urgent(4),
         runs("small", count=1, priority=-1)],
        ["short-1 yields to urgent", "short-2 yields to urgent",
         "urgent starts in east:4@h100 after short-1, short-2"],
    ),
    "it is the same with sets in several clusters": (
        [queue("q", 8, preemption=LOWER), cluster("east", 4), cluster("west", 4),
         queue("z", 8), cluster("north", 8),
         *(workload(name, "q", count=2, running="west", priority=5, since=60)
           for name in ("short-1", "short-2")),
         runs("long", count=4, priority=5, since=36000),
         workload("bystander", "z", count=8, running="north", priority=-1), urgent(4)],
        ["short-1 yields to urgent", "short-2 yields to urgent",
         "urgent starts in west:4@h100 after short-1, short-2"],
    ),
    "work of a higher priority counts before any of a lower one": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8),
         runs("high-long", count=3, priority=5, since=7200),
         runs("high-short", count=3, priority=5, since=60),
         runs("low-short", count=1, priority=1, since=60),
         runs("low-long", count=1, priority=1, since=36000), urgent(4)],
        ["low-short yields to urgent", "high-short yields to urgent",
         "urgent starts in east:4@h100 after low-short, high-short"],
    ),
}  # fmt: skip


_ELASTIC = {"count": 8, "leastCount": 2, "priority": 9}

ELASTIC = {
    "a gang that may shrink preempts for as many pods as victims make room for": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8), runs("low", count=4),
         runs("equal", count=4, priority=9), workload("new", "q", **_ELASTIC)],
        ["low yields to new", "new starts in east:4@h100 after low"],
    ),
    "also beside what is idle": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8), runs("low", count=2),
         runs("equal", count=4, priority=9), workload("new", "q", **_ELASTIC)],
        ["low yields to new", "new starts in east:4@h100 after low"],
    ),
    "nobody yields if that brings no more pods than are idle": (
        [queue("q", 6, preemption=LOWER), queue("z", 8), cluster("east", 8),
         workload("low", "z", count=2, running="east"), workload("new", "q", **_ELASTIC)],
        ["new starts in east:6@h100"],
    ),
    "nobody yields if not even the minimum fits then": (
        [queue("q", 8, preemption=LOWER), cluster("east", 8), runs("low", count=1),
         runs("equal", count=7, priority=9), workload("new", "q", **_ELASTIC)],
        ["new waits: QuotaExceeded, NoVictims"],
    ),
    "it is the same by quota alone": (
        [queue("q", 8, preemption=LOWER), workload("low", "q", count=4, running="gone"),
         workload("equal", "q", count=4, running="gone", priority=9),
         workload("new", "q", **_ELASTIC)],
        ["low yields to new", "new starts in nowhere:4@h100 after low"],
    ),
}  # fmt: skip

# A queue below a department that owns what it uses.
_DEPARTMENT = [
    queue("root"), queue("dept", 8, parent="root"),
    queue("q", 0, parent="dept", preemption={"reclaim": "Any"}),
    queue("other", 8, parent="root"), fleet(fairShare={"enabled": False}), cluster("east", 16),
]  # fmt: skip


def preempted(made: Plain) -> Plain:
    """A workload whose last attempt ended by preemption."""
    end = {"attempt": 1, "endedAt": timestamp(NOW - 60), "preemptedBy": {"uid": "x"}}
    made["status"] = {"phase": "Waiting", "history": [end]}
    return made


HUMBLE = {
    "one that was preempted takes back what a queue above it owns": (
        [*_DEPARTMENT, runs("guest", "other", count=16),
         preempted(workload("back", "q", count=8))],
        ["guest yields to back", "back starts in east:8@h100 after guest"],
    ),
    "a service takes back all of it": (
        [*_DEPARTMENT, runs("guest", "other", count=16),
         workload("back", "q", mode="Divided", replicas=8)],
        ["guest yields to back", "back starts in east:8@h100 after guest"],
    ),
    "a sweep as well": (
        [*_DEPARTMENT, runs("guest", "other", count=16),
         workload("back", "q", mode="Independent", tasks={"count": 8})],
        ["guest yields to back", "back starts in east:8@h100 after guest"],
    ),
    "and nothing beyond that from its equals": (
        [*_DEPARTMENT, runs("mine", "q", count=4), runs("guest", "other", count=12),
         preempted(workload("back", "q", count=8))],
        ["back waits: QuotaExceeded, NoVictims"],
    ),
}  # fmt: skip


# The owner cannot reclaim what is borrowed now.
_LENT = [
    queue("root"), queue("owner", 8, parent="root"), queue("guest", 0, parent="root"),
    cluster("east", 16), workload("old", "guest", count=4, running="east"),
]  # fmt: skip
_HEAD = workload("head", "owner", count=8, waited=600)

OWNERS = {
    "what is free of a queue's own quota is kept for its head": (
        [*_LENT, _HEAD, workload("small", "guest", count=2)],
        ["head waits: QuotaExceeded, NoVictims", "small waits: KeptForOwner, NoVictims"],
    ),
    "what a queue above owns is kept as well": (
        [queue("root"), queue("dept", 8, parent="root"), queue("owner", 0, parent="dept"),
         queue("guest", 0, parent="root"), *_LENT[3:], _HEAD,
         workload("small", "guest", count=2)],
        ["head waits: QuotaExceeded, NoVictims", "small waits: KeptForOwner, NoVictims"],
    ),
    "not from others below the same owner": (
        [queue("root"), queue("dept", 8, parent="root"), queue("owner", 0, parent="dept"),
         queue("sibling", 0, parent="dept"), queue("guest", 0, parent="root"), *_LENT[3:], _HEAD,
         workload("small", "sibling", count=2)],
        ["small starts in east:2@h100", "head waits: QuotaExceeded, NoVictims"],
    ),
    "for the first replica of a service": (
        [*_LENT, workload("head", "owner", gpus=8, mode="Divided", replicas=1, waited=600),
         workload("small", "guest", count=2)],
        ["head waits: QuotaExceeded, NoVictims, NoPool, PartlyPlaced",
         "small waits: KeptForOwner, NoVictims"],
    ),
    "for the fewest pods of a gang that may shrink": (
        [*_LENT, workload("head", "owner", count=12, leastCount=6, waited=600),
         workload("small", "guest", count=2)],
        ["head waits: QuotaExceeded, NoVictims", "small waits: KeptForOwner, NoVictims"],
    ),
    "for an alternative that is due": (
        [*_LENT, workload("head", "owner", count=12, waited=600, alternatives=[
            {"name": "less", "afterSeconds": 1, "podSets": [{"name": "worker", "count": 8}]}]),
         workload("small", "guest", count=2)],
        ["head waits: QuotaTooSmall, NoVictims, QuotaExceeded",
         "small waits: KeptForOwner, NoVictims"],
    ),
    "workloads of the same queue may use it": (
        [*_LENT, _HEAD, workload("small", "owner", count=2)],
        ["small starts in east:2@h100", "head waits: QuotaExceeded, NoVictims"],
    ),
    "nothing is kept for a head that needs more than its queue owns": (
        [*_LENT, workload("head", "owner", count=9, waited=600),
         workload("small", "guest", count=2)],
        ["small starts in east:2@h100", "head waits: QuotaTooSmall, NoVictims"],
    ),
    "a queue that reclaims does so": (
        [queue("root"), queue("owner", 8, parent="root", preemption={"reclaim": "Any"}),
         queue("guest", 0, parent="root"), cluster("east", 16),
         workload("old", "guest", count=4, running="east"), _HEAD,
         workload("small", "guest", count=2)],
        ["old yields to head", "head starts in east:8@h100 after old",
         "small waits: QuotaExceeded, NoVictims"],
    ),
    "the quota of others is theirs to use": (
        [*_LENT, queue("third", 4, parent="root"), runs("busy", "third", count=2), _HEAD,
         workload("small", "third", count=2), workload("guest", "guest", count=1)],
        ["small starts in east:2@h100", "guest waits: KeptForOwner, NoVictims",
         "head waits: QuotaExceeded, NoVictims"],
    ),
}  # fmt: skip


ALL = {**OWNERS, **LEAVING, **FLAVORS, **KEY, **ELASTIC, **HUMBLE}


@pytest.mark.parametrize("case", ALL)
def test_preemption(case: str) -> None:
    objects, expected = ALL[case]
    assert told(plan_of(*objects)) == expected


_SHARED = [queue("root", 8), queue("low", 0, parent="root"), cluster("east", 8)]
RULES = {
    "PreemptedWithinQueue": [
        queue("q", 8, preemption=LOWER), cluster("east", 8), runs("low"), urgent(8),
    ],
    "PreemptedToReclaim": [
        queue("root"), queue("q", 8, parent="root", preemption=RECLAIMS),
        queue("low", 0, parent="root"), cluster("east", 8), runs("low", "low"), urgent(8),
    ],
    "PreemptedForFairShare": [
        *_SHARED, queue("q", 0, parent="root", preemption=RECLAIMS),
        runs("low", "low", count=4), runs("more", "low", count=4, since=9000), urgent(4),
    ],
    "PreemptedWhileBorrowing": [
        fleet(fairShare={"enabled": False}), *_SHARED, queue("q", 0, parent="root",
            preemption={**RECLAIMS, "whileBorrowing": {"policy": "LowerPriority"}}),
        runs("low", "low"), urgent(8),
    ],
}  # fmt: skip


@pytest.mark.parametrize("code", RULES)
def test_a_victim_is_told_by_which_rule_it_yields(code: str) -> None:
    victims = [step for step in plan_of(*RULES[code]).steps if isinstance(step, Preempt)]
    assert [(step.workload, step.reasons[0].code.value) for step in victims] == [("team/low", code)]


CPU = "cpu"


def crowded(*pods: tuple[int, int]) -> Facts:
    """Two nodes of four CPUs; a pod that others keep from both is crowded on one of them.

    What it lacks there is kept free on the other node. `pods` are those that the preemptor wants.
    """
    queue = model.Queue(
        name="q",
        groups=(model.ResourceGroup(resources=(CPU,), flavors=("any",)),),
        quotas={("any", CPU): model.Quota(nominal=64_000)},
        preemption=model.PreemptionRules(within_queue="LowerPriority"),
    )

    def form(count: int, cpu: int, name: str = "main") -> model.Form:
        shape = model.Shape(requests=((CPU, cpu),))
        return model.Form(
            pod_sets=(model.PodSet(name=name, shape=shape, count=count, least=count),)
        )

    def held(key: str, count: int, cpu: int, bound: dict[int, int], priority: int) -> Workload:
        claimed = form(count, cpu)
        part = model.PlacedPods(
            name="main", count=count, shape=claimed.pod_sets[0].shape, flavors=((CPU, "any"),)
        )
        placed = model.Placed(cluster="c", pods=(part,), bound={"main": bound} if bound else {})
        claim = model.Held(queue="q", placed=(placed,), started_at=0.0)
        return Workload(key=key, queue="q", forms=(claimed,), held=claim, priority=priority)

    nodes = Nodes(
        names=("n0", "n1"),
        capacity={CPU: np.array([4000, 4000], dtype=np.int64)},
        ready=np.ones(2, dtype=np.bool_),
    )
    sets = [form(count, cpu, f"s{at}").pod_sets[0] for at, (count, cpu) in enumerate(pods)]
    workloads = (
        held("bound", 2, 2000, {0: 1, 1: 1}, 9),
        held("large", 1, 4000, {}, 0),
        Workload(key="new", queue="q", forms=(model.Form(pod_sets=tuple(sets)),), priority=5),
    )
    return Facts(
        now=NOW,
        queues={"q": queue},
        flavors={"any": model.Flavor(name="any")},
        clusters={"c": Cluster(name="c", nodes=nodes)},
        workloads={workload.key: workload for workload in workloads},
    )


def test_what_is_kept_free_for_a_victim_is_free_without_it() -> None:
    facts = crowded((2, 2000))
    snapshot = Snapshot(facts)
    assert snapshot.ledger.rooms["c"].free[CPU].tolist() == [-2000, 0]
    made, _ = plan(snapshot)
    assert told(made) == ["large yields to new", "new starts in c:2@any after large"]
    assert broken(facts, made) == []


def test_who_uses_what_was_kept_free_for_a_victim_waits_for_it() -> None:
    """Where the pods of the victim are is not known; one may be there."""
    made, _ = plan(Snapshot(crowded((2, 1000), (1, 2000))))
    assert told(made) == ["large yields to new", "new starts in c:2@any+1@any after large"]


def test_what_is_kept_free_is_kept_for_each_pod_set() -> None:
    packing, needs = kept_free(((3, CPU, 500), (3, CPU, 250)))
    assert [dict(counts) for counts in packing.values()] == [{3: 1}, {3: 1}]
    assert list(needs.values()) == [((CPU, 500),), ((CPU, 250),)]


def test_what_is_kept_for_an_owner_is_kept_from_those_who_come_later() -> None:
    view = View()
    for object_ in (H100, *_LENT, _HEAD):
        view.put(object_)
    _, cursor = plan(view.snapshot(NOW))
    view.put(workload("small", "guest", count=2))
    made, _ = plan(view.snapshot(NOW), cursor.wake(["team/small"]))
    assert told(made) == ["small waits: KeptForOwner, NoVictims"]
