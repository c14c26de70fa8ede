"""Services follow their load: the whole hub on virtual time, and a dial for the load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.api import codec
from fairway.api.autoscaler import FleetAutoscaler
from fairway.clock import VirtualClock, parse_timestamp
from fairway.metrics.interface import PodUsage
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import AUTOSCALERS
from tests.controllers.dials import Dials, Meter
from tests.controllers.fleets import Fleet, running

USER = Write(user="ada", manager="test")
DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
CLUSTER = """
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {{name: {}}}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 2
        shape: {{cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
        labels: {{accelerator: h100}}
"""
FLEET = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec:
  metrics: {prometheus: {url: "http://prometheus.example.com:9090"}}
  health: {heartbeatSeconds: 2, unreadySeconds: 6, lostSeconds: 3600, skewSeconds: 1}
---
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
metadata: {name: home-first, namespace: default}
spec:
  groups:
    - {name: home, selector: {names: [hangzhou]}}
    - {name: away, selector: {names: [shanghai]}}
""" + "".join(CLUSTER.format(name) for name in ("hangzhou", "shanghai"))
POD = """
            metadata: {labels: {app: chat}}
            spec:
              containers:
                - {name: main, image: server, resources: {limits: {nvidia.com/gpu: 2}}}
"""
SERVICE = f"""
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {{name: chat, namespace: default, finalizers: [fairway.dev/works]}}
spec:
  queue: serving
  policy: home-first
  mode: Divided
  replicas: 2
  template:
    manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: chat}}
        spec:
          selector: {{matchLabels: {{app: chat}}}}
          template: {POD}"""
NATIVE = f"""
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
  namespace: default
  labels: {{fairway.dev/queue: serving}}
  annotations: {{fairway.dev/policy: home-first}}
spec:
          replicas: 2
          selector: {{matchLabels: {{app: chat}}}}
          template: {POD}"""
QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "waiting"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}


def autoscaler(name: str = "chat", **spec: Any) -> str:
    target = {"kind": "Workload", "name": "chat"}
    whole = {"target": target, "minReplicas": 1, "maxReplicas": 12, "metrics": [QUEUE], **spec}
    return codec.to_yaml(
        {
            "apiVersion": "serving.fairway.dev/v1alpha1",
            "kind": "FleetAutoscaler",
            "metadata": {"name": name, "namespace": "default"},
            "spec": whole,
        }
    )


@pytest.fixture
def dials() -> Dials:
    return Dials()


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
async def fleet(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, dials: Dials, meter: Meter
) -> AsyncIterator[Fleet]:
    async with running(store, clock, tmp_path / "clusters", sources=dials, meter=meter) as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def scaled(fleet: Fleet, name: str = "chat") -> FleetAutoscaler:
    stored = await fleet.store.get(AUTOSCALERS, name, "default")
    return codec.decode(stored.raw, FleetAutoscaler)


async def condition(fleet: Fleet, kind: str, name: str = "chat") -> str:
    found = (await scaled(fleet, name)).status.conditions
    return next((f"{item.status} {item.reason}" for item in found if item.type == kind), "")


async def replicas(fleet: Fleet, name: str = "chat") -> int | None:
    return (await fleet.workload(name)).spec.replicas


async def served(fleet: Fleet, count: int, name: str = "chat") -> None:
    await fleet.until(name, lambda item: item.status.pods.ready == count, 60)


async def test_a_service_follows_its_load_over_all_clusters(fleet: Fleet, dials: Dials) -> None:
    dials.set["waiting"] = 20.0
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    await fleet.apply(autoscaler())
    await fleet.clock.advance(30)
    assert await replicas(fleet) == 2
    dials.set["waiting"] = 100.0
    await fleet.clock.advance(15)
    assert await replicas(fleet) == 4  # twice as many, or four, at once
    await fleet.clock.advance(45)
    assert await replicas(fleet) == 10
    await served(fleet, 10)
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (8, 2)
    dials.set["waiting"] = 30.0
    await fleet.clock.advance(290)
    assert await replicas(fleet) == 10  # five minutes may not have passed
    await fleet.clock.advance(45)
    assert await replicas(fleet) == 3
    status = (await scaled(fleet)).status
    assert (status.current_replicas, status.desired_replicas) == (3, 3)
    assert status.last_scale_reason == "all metrics are below their targets"
    assert [
        (current_metric.name, str(current_metric.average_value))
        for current_metric in status.current_metrics
    ] == [("external metric waiting", "10")]
    assert dials.asked[-1] == "sum(waiting{})"
    assert dials.addresses[-1].url == "http://prometheus.example.com:9090"


async def test_what_needs_no_change_is_not_written(fleet: Fleet, dials: Dials) -> None:
    dials.set["waiting"] = 20.0
    await fleet.apply(SERVICE)
    await fleet.apply(autoscaler())
    await served(fleet, 2)
    await fleet.clock.advance(60)
    before = (await fleet.workload("chat")).metadata.generation
    version = (await scaled(fleet)).metadata.resource_version
    await fleet.clock.advance(120)
    assert (await fleet.workload("chat")).metadata.generation == before
    assert (await scaled(fleet)).metadata.resource_version == version


async def test_a_count_that_somebody_else_sets_is_looked_at_at_once(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 20.0
    await fleet.apply(SERVICE)
    await fleet.apply(autoscaler(maxReplicas=6))
    await served(fleet, 2)
    await fleet.change("chat", {"spec": {"replicas": 9}})
    await fleet.clock.advance(1)
    assert await replicas(fleet) == 6


async def test_a_native_object_is_scaled_where_its_kind_keeps_the_count(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 40.0
    await fleet.apply(NATIVE)
    await fleet.clock.advance(2)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    await fleet.apply(autoscaler(target=target))
    await fleet.clock.advance(30)
    deployment = (await fleet.store.get(DEPLOYMENTS, "chat", "default")).object()
    assert deployment["spec"]["replicas"] == 4
    await served(fleet, 4, "deployment-chat")
    assert await condition(fleet, "ScalingActive") == "True ValidMetricFound"


async def test_a_native_object_grows_one_step_at_a_time(fleet: Fleet, dials: Dials) -> None:
    """Its workload follows, which is no reason to look again before the step has shown."""
    dials.set["waiting"] = 200.0
    await fleet.apply(NATIVE)
    await fleet.clock.advance(2)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    await fleet.apply(autoscaler(target=target))
    counts = []
    for seconds in (1, 13, 3, 11):
        await fleet.clock.advance(seconds)
        deployment = (await fleet.store.get(DEPLOYMENTS, "chat", "default")).object()
        counts.append(deployment["spec"]["replicas"])
    assert counts == [4, 4, 8, 8]


async def test_a_metric_that_cannot_be_read_changes_nothing_and_is_told(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = None
    await fleet.apply(SERVICE)
    await fleet.apply(autoscaler())
    await served(fleet, 2)
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 2
    assert await condition(fleet, "ScalingActive") == "False FailedGetExternalMetric"


async def test_replicas_of_a_cluster_that_is_not_heard_of_are_kept(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 100.0
    await fleet.apply(SERVICE)
    rules = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    await fleet.apply(autoscaler(behavior=rules))
    await fleet.until("chat", lambda item: item.status.pods.ready == 10, 120)
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": {"outage": True}}}})
    await fleet.clock.advance(20)
    dials.set["waiting"] = 10.0  # what is waiting there is not measured, either
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 9  # one, and eight of which nobody knows
    dials.set["waiting"] = 200.0
    await fleet.clock.advance(15)
    assert await replicas(fleet) == 12  # they do not keep it from rising
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": {"outage": False}}}})
    dials.set["waiting"] = 30.0
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 3


async def test_nobody_needs_no_replica_and_somebody_gets_one(fleet: Fleet, dials: Dials) -> None:
    dials.set["waiting"] = 5.0
    await fleet.apply(SERVICE)
    await fleet.apply(
        autoscaler(
            minReplicas=0,
            scaleToZero={"idleSeconds": 120},
            behavior={"scaleDown": {"stabilizationWindowSeconds": 30}},
        )
    )
    await served(fleet, 1)
    dials.set["waiting"] = 0.0
    await fleet.clock.advance(100)
    assert await replicas(fleet) == 1
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 0
    assert await condition(fleet, "ScaledToZero") == "True ScaledToZero"
    await fleet.clock.advance(60)
    assert await fleet.pods("hangzhou") == 0
    dials.set["waiting"] = 25.0
    await fleet.clock.advance(15)
    assert await replicas(fleet) == 3
    await served(fleet, 3)
    assert await condition(fleet, "ScaledToZero") == "False NotScaledToZero"


_WAITING = {"metric": {"name": "waiting"}, "target": QUEUE["external"]["target"]}
_OF_SERVICE = {"describedObject": {"kind": "Service", "name": "chat"}, **_WAITING}
_OF_SERVER = {"engine": "vLLM", "signal": "QueueLength", "target": "10"}


@pytest.mark.parametrize(
    "metric",
    [
        {"type": "External", "external": {**_WAITING, "activationValue": "8"}},
        {"type": "Object", "object": {**_OF_SERVICE, "activationValue": "8"}},
        {"type": "Serving", "serving": {**_OF_SERVER, "activationValue": "8"}},
    ],
    ids=["external", "of an object", "of a model server"],
)
async def test_a_load_below_its_activation_value_is_none(
    fleet: Fleet, dials: Dials, metric: dict[str, Any]
) -> None:
    dials.set["waiting"] = 5.0
    await fleet.apply(SERVICE)
    await fleet.apply(
        autoscaler(
            minReplicas=0,
            metrics=[metric],
            scaleToZero={"idleSeconds": 60},
            behavior={"scaleDown": {"stabilizationWindowSeconds": 30}},
        )
    )
    await fleet.clock.advance(150)
    assert await replicas(fleet) == 0
    dials.set["waiting"] = 9.0
    await fleet.clock.advance(15)
    assert await replicas(fleet) == 1


_OWN_QUERY = {**_WAITING, "metric": {"name": "waiting", "query": "max(backlog) by (pod)"}}


@pytest.mark.parametrize(
    "metric",
    [
        {"type": "External", "external": _OWN_QUERY},
        {"type": "Object", "object": {**_OF_SERVICE, **_OWN_QUERY}},
        {"type": "Pods", "pods": _OWN_QUERY},
    ],
    ids=["external", "of an object", "of pods"],
)
async def test_a_metric_with_a_query_of_its_own_is_not_read_by_its_name(
    fleet: Fleet, dials: Dials, metric: dict[str, Any]
) -> None:
    dials.set["waiting"] = [({"cluster": "hangzhou", "pod": "chat-0"}, 20.0)]
    dials.set["backlog"] = [({"cluster": "hangzhou", "pod": "chat-0"}, 40.0)]
    await fleet.apply(SERVICE.replace("replicas: 2", "replicas: 1"))
    await served(fleet, 1)
    await fleet.apply(autoscaler(metrics=[metric]))
    await fleet.clock.advance(2)
    assert await replicas(fleet) == 4
    assert dials.asked[-1] == "max(backlog) by (pod)"


async def test_schedules_hold_from_their_moment_on_where_they_are(
    fleet: Fleet, dials: Dials, clock: VirtualClock
) -> None:
    dials.set["waiting"] = 0.0
    await fleet.apply(SERVICE)
    day = {"name": "day", "cron": "0 8 * * *", "minReplicas": 5, "maxReplicas": 8}
    night = {"name": "night", "cron": "5 16 * * *", "minReplicas": 1, "maxReplicas": 3}
    zone = {"timeZone": "Asia/Shanghai"}
    # The clock stands at 08:00 UTC, which is 16:00 in Shanghai.
    assert clock.now() % 86400 < 8 * 3600 + 60
    await fleet.apply(autoscaler(schedules=[{**day, **zone}, {**night, **zone}]))
    await fleet.clock.advance(2)
    assert (await replicas(fleet), (await scaled(fleet)).status.schedule) == (5, "day")
    due = parse_timestamp("2027-01-15T08:05:00Z")  # 16:05 there
    await fleet.clock.advance(due - clock.now() - 1)
    assert (await scaled(fleet)).status.schedule == "day"
    await fleet.clock.advance(2)
    status = (await scaled(fleet)).status
    assert (status.schedule, status.min_replicas, status.max_replicas) == ("night", 1, 3)
    assert await replicas(fleet) == 3


async def test_an_autoscaler_among_the_manifests_is_not_fought(fleet: Fleet, dials: Dials) -> None:
    dials.set["waiting"] = 100.0
    other = """
      - apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: own}
        spec:
          maxReplicas: 5
          scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
"""
    await fleet.apply(SERVICE.rstrip() + other)
    await fleet.apply(autoscaler())
    await fleet.clock.advance(30)
    assert await replicas(fleet) == 2
    assert await condition(fleet, "AbleToScale") == "False OtherAutoscaler"


async def test_of_two_autoscalers_of_one_service_the_first_scales(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 40.0
    await fleet.apply(SERVICE)
    await fleet.apply(autoscaler("first"))
    await fleet.clock.advance(2)
    await fleet.apply(autoscaler("later", maxReplicas=3))
    await fleet.clock.advance(30)
    assert await replicas(fleet) == 4
    assert await condition(fleet, "AbleToScale", "later") == "False OtherAutoscaler"
    await fleet.store.delete(AUTOSCALERS, "first", namespace="default", write=USER)
    await fleet.clock.advance(16)
    assert await replicas(fleet) == 3


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"target": {"kind": "Workload", "name": "nothing"}}, "TargetNotFound"),
        (
            {
                "schedules": [
                    {"name": "a", "cron": "0 99 * * *", "minReplicas": 1, "maxReplicas": 2}
                ]
            },
            "InvalidSchedule",
        ),
        (
            {
                "schedules": [
                    {
                        "name": "a",
                        "cron": "@daily",
                        "timeZone": "Atlantis/Deep",
                        "minReplicas": 1,
                        "maxReplicas": 2,
                    }
                ]
            },
            "InvalidSchedule",
        ),
    ],
    ids=["no such workload", "no such hour", "no such time zone"],
)
async def test_what_cannot_be_scaled_is_told(
    fleet: Fleet, spec: dict[str, Any], reason: str
) -> None:
    await fleet.apply(SERVICE)
    await fleet.apply(autoscaler(**spec))
    await fleet.clock.advance(2)
    assert await condition(fleet, "AbleToScale") == f"False {reason}"


async def test_rates_outlive_the_hub(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, dials: Dials
) -> None:
    dials.set["waiting"] = 20.0
    slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}}
    async with running(store, clock, tmp_path / "clusters", sources=dials) as first:
        await first.apply(FLEET)
        await first.apply(SERVICE)
        await served(first, 2)
        await first.apply(autoscaler(behavior=slow))
        dials.set["waiting"] = 100.0
        await clock.advance(20)
        assert await replicas(first) == 3
    async with running(store, clock, tmp_path / "clusters", sources=dials) as again:
        await clock.advance(120)
        assert await replicas(again) == 3
        await clock.advance(480)
        assert await replicas(again) == 4


def pod(name: str, cpu: int | None, **more: Any) -> PodUsage:
    return PodUsage(
        name=name,
        started_at=0.0,
        ready_changed_at=1.0,
        requests={"main": {"cpu": 1000}},
        usage={} if cpu is None else {"main": {"cpu": cpu}},
        measured_at=1_800_000_000.0,
        **more,
    )


CPU = {"type": "Utilization", "averageUtilization": 50}


async def test_what_pods_use_is_asked_of_their_clusters(fleet: Fleet, meter: Meter) -> None:
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    meter.by_cluster["hangzhou"] = (pod("chat-a", 900), pod("chat-b", 700))
    await fleet.apply(
        autoscaler(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": CPU}}])
    )
    await fleet.clock.advance(2)
    assert await replicas(fleet) == 4
    (current,) = (await scaled(fleet)).status.current_metrics
    assert (current.average_utilization, str(current.average_value)) == (80, "800m")


async def test_one_container_of_the_pods_is_measured_if_it_is_named(
    fleet: Fleet, meter: Meter
) -> None:
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    beside = {"requests": {"main": {"cpu": 1000}, "side": {"cpu": 1000}}}
    meter.by_cluster["hangzhou"] = tuple(
        replace(pod(name, 900), **beside, usage={"main": {"cpu": 900}, "side": {"cpu": 100}})
        for name in ("chat-a", "chat-b")
    )
    measured = {"name": "cpu", "container": "main", "target": CPU}
    await fleet.apply(
        autoscaler(metrics=[{"type": "ContainerResource", "containerResource": measured}])
    )
    await fleet.clock.advance(2)
    assert await replicas(fleet) == 4
    (current,) = (await scaled(fleet)).status.current_metrics
    assert current.average_utilization == 90


async def test_without_a_metrics_api_the_reason_is_told(fleet: Fleet, meter: Meter) -> None:
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    await fleet.apply(autoscaler(metrics=[]))  # 80% of the processor, as HPA takes it
    await fleet.clock.advance(20)
    assert await condition(fleet, "ScalingActive") == "False FailedGetResourceMetric"
    conditions = (await scaled(fleet)).status.conditions
    assert any("hangzhou: there is no metrics API" in other.message for other in conditions)


async def test_a_metric_of_pods_is_told_apart_by_their_labels(fleet: Fleet, dials: Dials) -> None:
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    dials.set["requests"] = [
        ({"cluster": "hangzhou", "pod": "chat-0"}, 30.0),
        ({"cluster": "hangzhou", "pod": "chat-1"}, 50.0),
    ]
    of_pods = {
        "metric": {"name": "requests", "selector": {"matchLabels": {"tier": "gold"}}},
        "target": {"type": "AverageValue", "averageValue": "20"},
    }
    await fleet.apply(autoscaler(metrics=[{"type": "Pods", "pods": of_pods}]))
    await fleet.clock.advance(2)
    assert await replicas(fleet) == 4
    assert dials.asked[-1] == 'requests{namespace="default",tier="gold"}'


async def test_a_model_server_is_asked_by_its_preset(fleet: Fleet, dials: Dials) -> None:
    await fleet.apply(SERVICE)
    await served(fleet, 2)
    dials.set["vllm:kv_cache_usage_perc"] = 0.9
    cache = {"engine": "vLLM", "signal": "KVCacheUse", "target": "600m", "model": "qwen"}
    await fleet.apply(autoscaler(metrics=[{"type": "Serving", "serving": cache}]))
    await fleet.clock.advance(2)
    assert await replicas(fleet) == 3
    labels = '{model_name="qwen",namespace="default",pod=~"chat-.*"}'
    assert dials.asked[-1] == (
        f"avg(vllm:kv_cache_usage_perc{labels} or vllm:gpu_cache_usage_perc{labels})"
    )


async def test_a_server_of_ones_own_is_asked_only_where_the_fleet_allows_it(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 40.0
    secret = """
apiVersion: v1
kind: Secret
metadata: {name: metrics, namespace: default}
stringData: {token: " opensesame "}
"""
    await fleet.apply(secret)
    await fleet.apply(SERVICE)
    token = {"namespace": "default", "name": "metrics", "key": "token"}
    await fleet.apply(autoscaler(prometheus={"url": "https://mine.example.com", "token": token}))
    await fleet.clock.advance(2)
    assert await condition(fleet, "ScalingActive") == "False FailedGetExternalMetric"
    allowed = {"spec": {"metrics": {"allowOwnServers": True}}}
    fleets = ResourceKey("fairway.dev", "v1alpha1", "fleets")
    await fleet.store.patch(fleets, "fleet", Patch(type="merge", body=allowed), write=USER)
    await fleet.clock.advance(16)
    assert await replicas(fleet) == 4
    assert (dials.addresses[-1].url, dials.addresses[-1].token) == (
        "https://mine.example.com",
        "opensesame",
    )


KSERVE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: inferenceservices.serving.kserve.io}
spec:
  group: serving.kserve.io
  scope: Namespaced
  names: {plural: inferenceservices, singular: inferenceservice, kind: InferenceService}
  versions:
    - name: v1beta1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
INFERENCE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: chat
  namespace: default
  labels: {fairway.dev/queue: serving}
spec:
  predictor:
    minReplicas: 2
    maxReplicas: 9
    model:
      modelFormat: {name: huggingface}
      resources: {limits: {nvidia.com/gpu: 2}}
"""
INFERENCE_SERVICES = ResourceKey("serving.kserve.io", "v1beta1", "inferenceservices")


async def test_an_autoscaler_of_kserve_is_refused_or_taken_over(fleet: Fleet, dials: Dials) -> None:
    dials.set["waiting"] = 40.0
    await fleet.apply(KSERVE)
    await fleet.clock.advance(1)
    await fleet.apply(INFERENCE)
    await fleet.clock.advance(2)
    target = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "name": "chat",
    }
    await fleet.apply(autoscaler(target=target))
    await fleet.clock.advance(20)
    assert await condition(fleet, "AbleToScale") == "False OtherAutoscaler"
    before = (await fleet.store.get(INFERENCE_SERVICES, "chat", "default")).object()
    assert before["spec"]["predictor"]["minReplicas"] == 2
    await fleet.apply(autoscaler(target=target, takeOver=True))
    await fleet.clock.advance(20)
    after = (await fleet.store.get(INFERENCE_SERVICES, "chat", "default")).object()
    assert after["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "external"
    assert after["spec"]["predictor"]["minReplicas"] == 4
    assert (await fleet.workload("inferenceservice-chat")).spec.replicas == 4


EXAMPLE = Path(__file__).parents[2] / "examples" / "autoscaling"


async def test_the_example_does_what_its_guide_says(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, dials: Dials
) -> None:
    dials.set["vllm:num_requests_waiting"] = 0.0
    async with running(store, clock, tmp_path / "clusters", sources=dials) as fleet:
        for name in ("fleet", "service", "autoscaler"):
            await fleet.apply((EXAMPLE / f"{name}.yaml").read_text())
        await served(fleet, 1)
        dials.set["vllm:num_requests_waiting"] = 32.0
        steps = []
        for _ in range(4):
            await clock.advance(15)
            steps.append(await replicas(fleet))
        assert steps == [4, 7, 7, 7]
        await served(fleet, 7)
        assert (await fleet.pods("home"), await fleet.pods("away")) == (4, 3)
        dials.set["vllm:num_requests_waiting"] = 0.0
        await clock.advance(45)
        assert await replicas(fleet) == 7
        await clock.advance(45)
        assert await replicas(fleet) == 1
