"""Pods that must be near to each other are, whether a level is named or its node label is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET

RACKS = FLEET.replace("count: 2", "count: 4").replace(
    "        labels: {accelerator: h100}",
    "        labels: {accelerator: h100}\n        domains: [{label: example.com/rack, nodes: 2}]\n"
    "  topology: [{name: rack, nodeLabel: example.com/rack}]",
)


def native(annotation: str) -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: near, namespace: default, labels: {{kueue.x-k8s.io/queue-name: research}}}}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {{annotations: {{{annotation}}}}}
    spec:
      restartPolicy: Never
      containers:
        - {{name: main, image: training, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param("fairway.dev/required-topology: rack", id="by the name of the level"),
        pytest.param(
            "kueue.x-k8s.io/podset-required-topology: example.com/rack", id="by its node label"
        ),
    ],
)
async def test_all_pods_are_in_one_rack(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, annotation: str
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(RACKS)
        await clock.advance(1)
        await fleet.apply(native(annotation))
        await clock.advance(1)
        started = await fleet.until("job-near", "Running", 30)
        assert started.status.claim is not None
        (pods,) = started.status.claim.placements[0].pod_sets
        assert (pods.topology_level, sum(pods.domains.values())) == ("rack", 2)
        assert len(pods.domains) == 1
        world = fleet.worlds.world("hangzhou")
        nodes = [pod.node_name for pod in world.pods("default.job-near") or ()]
        assert len({world.node(node).labels["example.com/rack"] for node in nodes}) == 1
