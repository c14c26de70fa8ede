"""A Job in each of several clusters: one status for all of them, over when the last one is."""

from __future__ import annotations

from pathlib import Path

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET

EVERYWHERE = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: everywhere}
spec: {division: {type: Duplicated}}
"""
SECOND = FLEET.rpartition("---")[2].replace("hangzhou", "shanghai")
SCAN = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: scan}
spec:
  queue: research
  policy: everywhere
  mode: Divided
  replicas: 1
  runSeconds: {estimate: 20}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: scan}
        spec:
          completions: 2
          parallelism: 2
          template:
            spec:
              restartPolicy: Never
              containers:
                - {name: main, image: scan, resources: {requests: {nvidia.com/gpu: 1}}}
"""


async def test_their_pods_are_counted_together_and_it_is_over_with_the_last(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(EVERYWHERE)
        await fleet.apply(SECOND)
        await clock.advance(3)
        await fleet.apply(SCAN)
        await fleet.until("scan", "Running", 30)
        held = await fleet.workload("scan")
        assert held.status.claim is not None
        assert [place.cluster for place in held.status.claim.placements] == ["hangzhou", "shanghai"]
        assert held.status.pods.wanted == 4
        await fleet.until("scan", "Succeeded", 60)
        over = await fleet.workload("scan")
        assert (over.status.pods.succeeded, over.status.pods.failed) == (4, 0)
        assert over.status.claim is None
        assert over.status.history[-1].clusters == ("hangzhou", "shanghai")
