"""A template that reaches beyond its pods, from the hub's API to a member that would run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairway.client.asynchronous import WORKLOADS
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet
from tests.kubernetes.hubs import basics, gang, hub_of
from tests.waiting import seen

pytestmark = IN_THE_FLEET
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
ADMIN = {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
SAID = "containers[main].securityContext.capabilities.add: SYS_ADMIN is not permitted"


def escaping(name: str) -> Any:
    body = gang(name, "sleep", "0.1", gpus=1)
    job, manifests = body["spec"]["template"]["manifests"][0], body["spec"]["template"]["manifests"]
    job["spec"]["template"]["spec"]["containers"][0].update(ADMIN)
    manifests.append(SETTINGS)
    return body


async def test_the_workload_says_why_and_its_member_gets_nothing_until_it_permits_it(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with hub_of(fleet, tmp_path, "edge", objects=basics(h100=0, a100=0)) as hub:
        await hub.apply(escaping("escape"))
        refused = await hub.until(
            "escape", lambda item: item.status.reason == "TemplateRefused", "a refusal"
        )
        assert SAID in refused.status.message
        assert "Privileged in permits.host of the Cluster allows it" in refused.status.message

        async def why() -> str:
            answer = await hub.client.ask(WORKLOADS, "escape", "explain", namespace="team")
            return str(answer["reasons"])

        await seen(why, lambda told: SAID in told, "an explanation")
        words = ("get", "jobs,pods,configmaps", "--namespace=team", "-o", "name")
        assert "escape" not in (left := await hub.kubectl("edge", *words))
        assert "settings" not in left
        permits = {"spec": {"kubernetes": {"permits": {"host": ["Privileged"]}}}}
        await hub.client.patch("clusters.fairway.dev", "edge", permits)
        await hub.apply(escaping("allowed"))
        await hub.until("allowed", "Succeeded")
