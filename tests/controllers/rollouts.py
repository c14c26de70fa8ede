"""A service of two clusters with a Rollout, and sources of numbers that a test decides on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairway.agent.drivers.simulated.lives import LivePod
from fairway.api import codec
from fairway.api.rollout import Rollout
from fairway.metrics.interface import Address, Sample, Unreachable
from fairway.store.interface import Patch, Write
from fairway.store.keys import ROLLOUTS
from tests.controllers.fleets import Fleet

USER = Write(user="ada", manager="test")
GOOD, BETTER, BAD = "vllm:1", "vllm:2", "vllm:bad"


def cluster(name: str, gpus: int) -> str:
    return f"""
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  simulated:
    startSeconds: 5
    stopSeconds: 1
    faults: {{badImages: ["{BAD}"]}}
    nodePools:
      - name: a
        count: 1
        shape: {{cpu: "64", memory: 512Gi, nvidia.com/gpu: {gpus}, pods: 110}}
        labels: {{accelerator: h100}}
"""


FLEET = (
    """
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {name: h100}
spec: {nodeLabels: {accelerator: h100}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: serving}
spec:
  uncovered: Unlimited
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 32}]}]
---
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: home-first, namespace: fairway-system}
spec:
  groups:
    - {name: home, selector: {names: [beijing]}}
    - {name: near, selector: {names: [hangzhou]}}
    - {name: cloud, selector: {names: [shanghai]}}
"""
    + cluster("beijing", 4)
    + cluster("hangzhou", 3)
    + cluster("shanghai", 8)
)


def service(image: str = GOOD, replicas: int = 8, kind: str = "Deployment") -> str:
    """A service of eight: four at home in beijing, three in hangzhou, one in shanghai."""
    return f"""
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {{name: llm, namespace: default}}
spec:
  queue: serving
  policy: home-first
  mode: Divided
  replicas: {replicas}
  template:
    manifests:
      - apiVersion: apps/v1
        kind: {kind}
        metadata: {{name: llm}}
        spec:
          selector: {{matchLabels: {{app: llm}}}}
          template:
            metadata: {{labels: {{app: llm}}}}
            spec:
              containers:
                - name: server
                  image: {image}
                  resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""


def rollout(**spec: Any) -> str:
    body = {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "llm", "namespace": "default"},
        "spec": {"workload": {"name": "llm"}, "progressDeadlineSeconds": 60, **spec},
    }
    return codec.to_yaml(body)


async def found(fleet: Fleet) -> Rollout:
    return codec.decode((await fleet.store.get(ROLLOUTS, "llm", "default")).raw, Rollout)


async def until(
    fleet: Fleet, is_so: Callable[[Rollout], bool] | str, seconds: float = 300
) -> Rollout:
    """Lets time pass until the Rollout is so."""
    wanted = (lambda item: item.status.phase == is_so) if isinstance(is_so, str) else is_so
    end = fleet.clock.now() + seconds
    while True:
        one = await found(fleet)
        if wanted(one):
            return one
        assert fleet.clock.now() < end, codec.to_yaml(codec.to_plain(one))
        await fleet.clock.advance(0.25)


async def patch(fleet: Fleet, body: dict[str, Any]) -> None:
    change = Patch(type="merge", body=body)
    await fleet.store.patch(ROLLOUTS, "llm", change, namespace="default", write=USER)


def images(fleet: Fleet) -> dict[str, list[str]]:
    """The images that run in each cluster, one for each pod that is not ending."""
    return {
        name: sorted(pod.images[0] for pod in pods_in(fleet, name) if pod.is_live)
        for name in ("beijing", "hangzhou", "shanghai")
    }


def pods_in(fleet: Fleet, cluster: str) -> list[LivePod]:
    """The service's pods in a cluster; none while it is down."""
    try:
        return fleet.worlds.world(cluster).pods("default.llm") or []
    except KeyError:
        return []


def ready(fleet: Fleet) -> int:
    return sum(
        pod.phase == "Ready"
        for name in ("beijing", "hangzhou", "shanghai")
        for pod in pods_in(fleet, name)
    )


class Numbers:
    """A source whose one number a test sets; None: nobody answers."""

    def __init__(self, number: float | None = None) -> None:
        self.number = number
        self.queries: list[str] = []
        self.addresses: list[Address] = []

    def at(self, address: Address) -> Numbers:
        self.addresses.append(address)
        return self

    async def vector(self, query: str, at: float | None = None) -> tuple[Sample, ...]:
        self.queries.append(query)
        if self.number is None:
            raise Unreachable("nobody answers")
        return (Sample(value=self.number, at=at or 0.0),)
