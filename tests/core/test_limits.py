"""Limits beside quota: claims of a queue, claims and amounts of a user."""

from __future__ import annotations

import pytest

from fairway.core.checks.invariants import broken
from fairway.core.cycle import plan
from fairway.core.model import (
    Flavor,
    Form,
    PodSet,
    Queue,
    Quota,
    ResourceGroup,
    Shape,
    UserLimit,
    Workload,
)
from fairway.core.plan import Admit
from fairway.core.snapshot import Facts, Snapshot

CPU = "cpu"


def started(*queues: Queue, users: str) -> list[str]:
    """Who starts, of workloads of one CPU each: users in order, in the last queue."""
    groups = (ResourceGroup(resources=(CPU,), flavors=("any",)),)
    pods = PodSet(name="main", shape=Shape(requests=((CPU, 1000),)), count=1, least=1)
    facts = Facts(
        now=100.0,
        queues={queue.name: _with(queue, groups) for queue in queues},
        flavors={"any": Flavor(name="any")},
        workloads={
            f"{user}{number}": Workload(
                key=f"{user}{number}",
                queue=queues[-1].name,
                queued_at=float(number),
                forms=(Form(pod_sets=(pods,)),),
                user=user,
            )
            for number, user in enumerate(users)
        },
    )
    found, _ = plan(Snapshot(facts))
    assert broken(facts, found) == []
    return [step.workload for step in found.steps if isinstance(step, Admit)]


def _with(queue: Queue, groups: tuple[ResourceGroup, ...]) -> Queue:
    return Queue(
        name=queue.name,
        parent=queue.parent,
        groups=groups,
        quotas={("any", CPU): Quota(nominal=9000)},
        claimed_max=queue.claimed_max,
        user_limits=queue.user_limits,
    )


LIMITS = [
    pytest.param(
        (Queue(name="q", claimed_max=2),),
        "aaa",
        ["a0", "a1"],
        id="a queue has no more claims than it may",
    ),
    pytest.param(
        (Queue(name="root", claimed_max=1), Queue(name="q", parent="root")),
        "aa",
        ["a0"],
        id="the limit of a queue above holds below",
    ),
    pytest.param(
        (Queue(name="q", user_limits=(UserLimit(claimed_max=1),)),),
        "aabb",
        ["a0", "b2"],
        id="each user is limited alone",
    ),
    pytest.param(
        (Queue(name="q", user_limits=(UserLimit(amounts=((CPU, 2000),)),)),),
        "aaab",
        ["a0", "a1", "b3"],
        id="a user has no more of a resource than it may",
    ),
    pytest.param(
        (
            Queue(
                name="q",
                user_limits=(UserLimit(claimed_max=0), UserLimit(users=("a",), claimed_max=2)),
            ),
        ),
        "aaab",
        ["a0", "a1"],
        id="a limit that names the user comes before one for everyone",
    ),
    pytest.param(
        (
            Queue(name="root", user_limits=(UserLimit(amounts=((CPU, 1000),)),)),
            Queue(name="q", parent="root"),
        ),
        "aab",
        ["a0", "b2"],
        id="a user's limit in a queue above holds below",
    ),
]


@pytest.mark.parametrize(("queues", "users", "expected"), LIMITS)
def test_limits_hold(queues: tuple[Queue, ...], users: str, expected: list[str]) -> None:
    assert started(*queues, users=users) == expected
