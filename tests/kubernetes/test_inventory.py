"""Node pools and requests for nodes, on a real member that serves their kinds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairway.api.work import PoolNodes
from tests.contracts.drivers import in_phase, job, pods_of, work
from tests.kubernetes.autoscalers import (
    DEFINITIONS,
    INSTANCE_TYPE,
    machine_deployment,
    node_pool,
)
from tests.kubernetes.driving import KubernetesRig, driven
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member

pytestmark = AT_THE_EDGE
Json = dict[str, Any]
SPEC = {
    "inventory": {"nodePools": True},
    "instanceTypes": [INSTANCE_TYPE],
    "elasticPools": [
        {
            "name": "booked",
            "shape": {"cpu": "4", "memory": "8Gi", "pods": 110},
            "labels": {"fairway.dev/test-pool": "booked"},
            "countMax": 4,
            "provisioningClass": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        }
    ],
}


@pytest.fixture(scope="module")
def member(fleet: Fleet) -> Any:
    found: Member = fleet.members["edge"]
    found.apply(*DEFINITIONS)
    names = [f"crd/{definition['metadata']['name']}" for definition in DEFINITIONS]
    found.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    found.apply(node_pool(), machine_deployment())
    yield found
    found.kubectl("delete", "--wait=false", *names)


@pytest.fixture
async def rig(member: Member) -> AsyncIterator[KubernetesRig]:
    async with driven(member, spec=SPEC) as opened:
        yield opened


async def kubectl(member: Member, *words: str, given: str = "") -> str:
    return await asyncio.to_thread(member.kubectl, *words, given=given)


async def requests(member: Member) -> list[Json]:
    told = await kubectl(member, "get", "provisioningrequests", "-o", "json")
    found: list[Json] = json.loads(told)["items"]
    return found


async def answer(member: Member, condition: str, message: str) -> None:
    """What cluster autoscaler would write."""
    (request,) = await requests(member)
    one = {"type": condition, "status": "True", "reason": condition, "message": message}
    patch = json.dumps({"status": {"conditions": [one]}})
    name = request["metadata"]["name"]
    words = ("patch", "provisioningrequest", name, "--subresource=status", "--type=merge")
    await kubectl(member, *words, "-p", patch)


async def test_pools_of_both_autoscalers_are_offered(rig: KubernetesRig) -> None:
    def offered(one: Any) -> bool:
        return {"default-workers", "gpu-p5-48xlarge-zone-b-spot"} <= {p.name for p in one.offered}

    observation = await rig.until(offered, "pools offered")
    assert [quota.name for quota in observation.quotas] == ["gpu"]
    assert {pool.name for pool in observation.pools} >= {"booked", "default-workers"}


async def test_a_node_of_karpenters_is_known_by_its_pool_and_can_be_given_back(
    rig: KubernetesRig, member: Member
) -> None:
    name = "gpu-p5-48xlarge-zone-a-spot"
    observation = await rig.until(lambda item: bool(item.offered), "pools offered")
    labels = next(item.labels for item in observation.offered if item.name == name)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "made-by-karpenter", "labels": dict(labels)},
    }
    await asyncio.to_thread(member.apply, node)
    await rig.until(
        lambda item: any(n.labels.get("fairway.dev/pool") == name for n in item.nodes), "its node"
    )
    observation = await rig.driver.observe()
    assert [pool.nodes for pool in observation.pools if pool.name == name] == [1]
    others = [node.name for node in observation.nodes if node.name != "made-by-karpenter"]
    await rig.driver.release(["made-by-karpenter", *others])
    observation = await rig.until(
        lambda item: "made-by-karpenter" not in {n.name for n in item.nodes}, "the node gone"
    )
    assert {node.name for node in observation.nodes} == set(others), "no other is Karpenter's"


async def test_pods_are_made_once_the_nodes_that_were_asked_for_are_provisioned(
    rig: KubernetesRig, member: Member
) -> None:
    one = work("booked", job("booked", pods=2), provision=(PoolNodes(pool="booked", count=2),))
    await rig.driver.apply(one)
    (request,) = await requests(member)
    assert request["spec"]["provisioningClassName"].startswith("best-effort-atomic")
    assert [each["count"] for each in request["spec"]["podSets"]] == [2]
    template = request["spec"]["podSets"][0]["podTemplateRef"]["name"]
    assert template in await kubectl(member, "get", "podtemplates", "-o", "name")
    observation = await rig.until(
        lambda seen: any(p.provisioning == 2 for p in seen.pools), "nodes on their way"
    )
    assert not pods_of(observation, one)
    await answer(member, "Provisioned", "two nodes are there")
    await rig.until(in_phase(one, "Ready", 2), "pods that run")
    pods = json.loads(await kubectl(member, "get", "pods", "-o", "json", "-l", "job-name=booked"))
    told = pods["items"][0]["metadata"]["annotations"]
    name = request["metadata"]["name"]
    assert told["autoscaling.x-k8s.io/consume-provisioning-request"] == name
    await rig.driver.remove(one.metadata.name)
    assert await requests(member) == []
    assert template not in await kubectl(member, "get", "podtemplates", "-o", "name")


async def test_a_request_that_fails_is_told_with_its_pool(
    rig: KubernetesRig, member: Member
) -> None:
    one = work("unlucky", job("unlucky"), provision=(PoolNodes(pool="booked", count=1),))
    await rig.driver.apply(one)
    await answer(member, "Failed", "zone-a has no such machines")
    observation = await rig.until(
        lambda seen: any(p.failures for p in seen.pools), "the failure of a pool"
    )
    (pool,) = [each for each in observation.pools if each.failures]
    assert (pool.name, pool.failures, pool.provisioning) == ("booked", 1, 0)
    assert pool.fault == "zone-a has no such machines"
    assert not pods_of(observation, one)
