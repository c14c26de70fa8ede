"""A workload without pods: complete once all its objects are there, in every cluster it is for."""

from __future__ import annotations

from pathlib import Path

from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET

SETTINGS = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: settings}
spec:
  queue: research
  template:
    manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: model}, data: {size: large}}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: data}, data: {path: /data}}
"""


async def test_it_completes_when_applied_and_its_objects_stay(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET)
        await fleet.apply(SETTINGS)
        await fleet.until("settings", "Succeeded", 60)
        await clock.advance(60)
        workload = await fleet.workload("settings")
        assert workload.status.phase == "Succeeded"
        assert workload.status.claim is None
        objects = fleet.worlds.world("hangzhou").objects
        kept = [objects.get(("v1", "ConfigMap", "default", name)) for name in ("model", "data")]
        assert [item.body["data"] for item in kept if item] == [
            {"size": "large"},
            {"path": "/data"},
        ]
