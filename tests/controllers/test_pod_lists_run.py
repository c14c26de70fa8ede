"""The pods of a workload by name, asked of the agents of its clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.hub.agent_lines import Reaching
from fairway.hub.pod_lists import PodLists
from fairway.server.questions.parameters import PodsRequest
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job

SECOND = FLEET[FLEET.rindex("---") :].replace("hangzhou", "beijing")
SERVICE = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: chat, namespace: default, finalizers: [fairway.dev/works]}
spec:
  queue: research
  mode: Divided
  replicas: 24
  template:
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: chat}
        spec:
          selector: {matchLabels: {app: chat}}
          template:
            metadata: {labels: {app: chat}}
            spec:
              containers:
                - {name: server, image: x, resources: {limits: {nvidia.com/gpu: 1}}}
                - {name: proxy, image: y}
"""


async def asked(reaching: Reaching, name: str, **given: Any) -> dict[str, Any]:
    request = PodsRequest(namespace="default", name=name, **{"most": 500, **given})
    return await PodLists(reaching).answer(request)


async def all_pages(reaching: Reaching, name: str, most: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after = ""
    while True:
        page = await asked(reaching, name, most=most, after=after)
        assert len(page["pods"]) <= most
        found += [(pod["cluster"], pod["name"]) for pod in page["pods"]]
        after = page.get("continue", "")
        if not after:
            return found


def where(fleet: Fleet, name: str) -> list[str]:
    workload = fleet.plane.cache.get(Workload, name, "default")
    assert workload is not None
    assert workload.status.claim is not None
    return [placement.cluster for placement in workload.status.claim.placements]


async def test_pods_are_told_with_their_node_state_and_containers(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET + "---" + job("train", pods=2) + "---" + job("waits", pods=9))
        await clock.advance(5)
        reaching = Reaching(fleet.agents, fleet.plane.cache, clock)
        try:
            found = await asked(reaching, "train")
            assert found["clusters"] == [{"cluster": "hangzhou", "phases": {"Ready": 2}}]
            first = found["pods"][0]
            assert first["name"] == "train-0"
            assert (first["podSet"], first["attempt"], first["phase"]) == ("pod", 1, "Ready")
            assert first["node"].startswith("gpu-")
            assert first["containers"] == ["main"]
            assert first["startedAt"] == first["since"]
            assert await asked(reaching, "waits") == {"clusters": [], "pods": []}
        finally:
            await reaching.close()


async def test_pods_of_several_clusters_come_page_by_page_and_each_once(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET + SECOND + "---" + SERVICE)
        await clock.advance(5)
        reaching = Reaching(fleet.agents, fleet.plane.cache, clock)
        try:
            clusters = where(fleet, "chat")
            assert sorted(clusters) == ["beijing", "hangzhou"]
            whole = await asked(reaching, "chat")
            assert [cluster["cluster"] for cluster in whole["clusters"]] == clusters
            assert sum(cluster["phases"]["Ready"] for cluster in whole["clusters"]) == 24
            assert whole["pods"][0]["containers"] == ["server", "proxy"]
            names = [(pod["cluster"], pod["name"]) for pod in whole["pods"]]
            for most in (1, 7, 8, 16, 100):
                assert await all_pages(reaching, "chat", most) == names
            one = await asked(reaching, "chat", cluster="beijing")
            assert {pod["cluster"] for pod in one["pods"]} == {"beijing"}
        finally:
            await reaching.close()


async def test_a_cluster_that_cannot_be_asked_is_named_and_the_others_are_told(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(FLEET + "---" + job("train"))
        await clock.advance(5)
        reaching = Reaching(fleet.agents, fleet.plane.cache, clock)
        try:
            found = await asked(reaching, "train", cluster="elsewhere")
            assert found["pods"] == []
            assert "no stream of the agent of elsewhere" in found["clusters"][0]["fault"]
        finally:
            await reaching.close()
