"""What is missing where a workload does not fit, in the words that people read."""

from __future__ import annotations

import pytest

from fairway.api.reasons import Code, sentence
from fairway.core.cycle import plan
from fairway.core.explain.shortfalls import with_shortfalls
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import H100, NOW, cluster, queue, workload

_SETS = [
    {"name": "head", "count": 1, "requests": {"cpu": "64"}},
    {"name": "worker", "count": 1, "requests": {"cpu": "64"}},
]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [cluster("east", 8, 4), workload("a", "q", count=16)],
            ["east: needs 4 more h100 GPUs"],
            id="the amount that is missing in all",
        ),
        pytest.param(
            [cluster("east", 4, 6), workload("a", "q", gpus=8)],
            ["east: node n1-0000 needs 2 more h100 GPUs"],
            id="the node that lacks least, where none holds one pod",
        ),
        pytest.param(
            [cluster("east", 2, 2, 4, 2, racks=2),
             workload("a", "q", count=8, topology={"required": "rack"})],
            ["east: rack r1 needs 2 more h100 GPUs"],
            id="the domain that holds most, where one must hold all",
        ),
        pytest.param(
            [cluster("east", 8), workload("a", "q", pod_sets=_SETS)],
            ["east: needs 64 more CPUs"],
            id="what a set lacks beside another",
        ),
        pytest.param(
            [cluster("east", 8), workload("first", "q", count=5, waited=90),
             workload("a", "q", count=5)],
            ["east: needs 2 more h100 GPUs"],
            id="after everybody who starts has started",
        ),
        pytest.param(
            [cluster("east", 8), cluster("west", 6), workload("a", "q", count=9)],
            ["east: needs 1 more h100 GPU",
             "west: needs 3 more h100 GPUs"],
            id="in each cluster",
        ),
        pytest.param(
            [cluster("east", 8), cluster("west", 8, model="a100"), workload("a", "q", count=9)],
            ["east: needs 1 more h100 GPU",
             "west has no h100 nodes"],
            id="nothing that is nearly enough, where the cluster lacks the flavor",
        ),
    ],
)  # fmt: skip
def test_what_is_missing(objects: list[dict], expected: list[str]) -> None:
    facts = Objects.of([H100, queue("q", 64), *objects]).facts(NOW)
    made, _ = plan(Snapshot(facts))
    found = with_shortfalls(facts, made)
    assert [
        sentence(reason)
        for item in found.waiting
        for reason in item.reasons
        if reason.code == Code.DOES_NOT_FIT
    ] == expected
