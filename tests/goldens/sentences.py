"""Every reason as people read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairway.api.reasons import Code, Reason, sentence

GPUS = ("nvidia.com/gpu", 8_000_000_000)
CPUS = ("cpu", 1_000_000_000)
USUAL = Reason(
    code=Code.HELD,
    queue="research",
    cluster="east",
    flavor="h100",
    pod_set="worker",
    pool="spot",
    level="rack",
    other="team/train",
    count=1,
    short=(GPUS,),
)
# Facts on which the sentence of a code depends, each with those of `USUAL`.
FACTS: dict[Code, tuple[dict[str, Any], ...]] = {
    Code.PARTLY_PLACED: ({}, {"count": 3}),
    Code.NO_QUEUE: ({}, {"queue": ""}),
    Code.QUEUE_BROKEN: ({"other": "its parent all does not exist"},),
    Code.NOT_A_SUBMITTER: ({"other": "team"},),
    Code.QUEUE_FULL: ({"other": ""}, {"other": "ada", "count": 3}),
    Code.CLAIMS_EXCEEDED: ({}, {"count": 3}),
    Code.USER_LIMIT_EXCEEDED: ({"other": "ada"},),
    Code.IMPOSSIBLE: ({"level": ""}, {}, {"level": "cluster"}, {"level": "cluster", "count": 2}),
    Code.QUOTA_EXCEEDED: (
        {},
        {"short": (GPUS, CPUS)},
        {"flavor": "h100,a100"},
        {"level": "queue"},
    ),
    Code.QUOTA_TOO_SMALL: ({}, {"level": "queue"}),
    Code.NO_FLAVOR: ({"other": "its nodes are tainted"}, {"flavor": ""}),
    Code.HOLDING_OUT: ({"other": "its form small"},),
    Code.FLAVORS_OVERLAP: ({"other": "a100"}, {"other": "a100", "count": 3}),
    Code.NO_CLUSTER: ({"flavor": ""}, {"flavor": "h100,a100"}),
    Code.TAINTED: ({"other": "maintenance=true:NoSchedule"},),
    Code.CLOSED: ({"other": "it is held"},),
    Code.KIND_NOT_SERVED: ({"other": "ray.io/v1/RayJob"},),
    Code.PINNED: ({"other": "west"},),
    Code.REPLICAS_LIMITED: (
        {"rule": "perClusterMax"},
        {"cluster": "", "group": "home", "rule": "replicasMax", "count": 3},
    ),
    Code.SPREAD_UNMET: ({"other": "3 regions are needed and 2 have room"},),
    Code.DOES_NOT_FIT: (
        {"other": ""},
        {"other": "r1", "short": (CPUS,)},
        {"short": ()},
        {"short": (), "count": 3, "flavor": "", "pod_set": ""},
        {"short": (), "level": "flavor"},
    ),
    Code.RESERVED: ({}, {"cluster": ""}),
    Code.OUT_OF_STOCK: ({}, {"count": 3}, {"until": 1_800_000_000.0}),
    Code.BREAKER_OPEN: (
        {"other": "preemptions"},
        {"other": "price", "short": ()},
        {"other": "price", "short": (("spent", 12 * 10**9), ("allowed", 10 * 10**9))},
    ),
}


def sentences() -> str:
    """A line for each code, or several where its sentence depends on facts."""
    lines = [
        f"{code.value}: {sentence(replace(USUAL, code=code, **facts))}"
        for code in Code
        for facts in FACTS.get(code, ({},))
    ]
    return "\n".join(lines) + "\n"
