"""New versions of a service on real members, whose own Deployment controllers bring them in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.api.rollout import APPROVED
from tests.contracts.drivers import service
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet
from tests.kubernetes.hubs import HubRig, Json, basics, hub_of
from tests.waiting import seen

pytestmark = IN_THE_FLEET
ROLLOUTS = "rollouts.serving.fairway.dev"
REVISION = "fairway.dev/revision"


def web(seconds: int, image: str = "busybox") -> Json:
    """Six replicas of a node each: four fit in hangzhou, two go to berlin."""
    manifest = service("web")
    del manifest["metadata"]["namespace"]
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["command"], container["image"] = ["sleep", str(seconds)], image
    container["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "queue": "research",
            "mode": "Divided",
            "replicas": 6,
            "template": {"manifests": [manifest]},
        },
    }


ROLLOUT: Json = {
    "apiVersion": "serving.fairway.dev/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {
        "workload": {"name": "web"},
        "strategy": {"canary": {"percent": 10}, "maxUnavailable": 1, "approval": "AfterCanary"},
        "progressDeadlineSeconds": 15,
    },
}


async def pods(hub: HubRig, member: str) -> dict[str, str]:
    """The pods that are not ending: their revision by their identity."""
    told = await hub.kubectl(member, "get", "pods", "-n", "team", "-l", "app=web", "-o", "json")
    return {
        item["metadata"]["uid"]: item["metadata"]["labels"].get(REVISION, "")
        for item in json.loads(told)["items"]
        if "deletionTimestamp" not in item["metadata"]
    }


async def until(hub: HubRig, is_so: Callable[[Json], bool], what: str) -> Json:
    async def status() -> Json:
        found: dict[str, Any] = await hub.client.get(ROLLOUTS, "web", namespace="team")
        return found.get("status") or {}

    return await seen(status, is_so, what)


def at(revision: int, phase: str) -> Callable[[Json], bool]:
    return lambda item: (item.get("revision"), item.get("phase")) == (revision, phase)


async def test_a_good_version_goes_out_and_a_bad_one_comes_back(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with hub_of(fleet, tmp_path, "hangzhou", "berlin", objects=basics(l4=0)) as hub:
        await hub.apply(web(3600))
        await hub.until("web", lambda other: other.status.pods.ready == 6, "six ready pods")
        first = await pods(hub, "hangzhou")
        await hub.apply(ROLLOUT)
        await until(hub, at(1, "Completed"), "the first revision to be seen")
        assert await pods(hub, "hangzhou") == first  # it starts nothing anew

        await hub.apply(web(3601))
        waiting = await until(hub, at(2, "AwaitingApproval"), "the canary to be well")
        assert await pods(hub, "hangzhou") == first
        assert set((await pods(hub, "berlin")).values()) == {waiting["target"]}
        words = ("get", "deployment", "web", "-n", "team", "-o", "json")
        strategy = json.loads(await hub.kubectl("berlin", *words))["spec"]["strategy"]
        assert strategy["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
        approved = {"metadata": {"annotations": {APPROVED: "2.0"}}}
        await hub.client.patch(ROLLOUTS, "web", approved, namespace="team")
        await until(hub, at(2, "Completed"), "the second revision to be everywhere")
        second = await pods(hub, "hangzhou")
        assert set(second.values()) == {waiting["target"]}

        await hub.apply(web(3601, image="absent"))
        await until(hub, at(3, "RolledBack"), "the bad revision to go back")
        assert await pods(hub, "hangzhou") == second  # which never had it
        assert set((await pods(hub, "berlin")).values()) == {waiting["target"]}
