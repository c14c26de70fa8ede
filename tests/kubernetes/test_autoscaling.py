"""Decisions on counts, side by side with the controller of a real Kubernetes.

The horizontal pod autoscaler of a real kube-controller-manager is told one series of values for
each of several targets. Whenever it asks, the moment, the value, and the count before are noted.
Afterwards the same are given to our own decision, whose counts must be those that it set, one for
one. Nobody makes or ends pods here, so both see the same ones.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from fairway.agent.drivers.interface import DriverFault, NotPossible
from fairway.agent.drivers.kubernetes import rights
from fairway.agent.drivers.kubernetes.driver import KubernetesDriver
from fairway.api.autoscaler import FleetAutoscaler, FleetAutoscalerSpec
from fairway.api.codec import decode
from fairway.api.meta import ObjectMeta
from fairway.api.workload import Workload, WorkloadSpec
from fairway.clock import SystemClock
from fairway.controllers.autoscaling.bounds import Bounds, limits_of
from fairway.controllers.autoscaling.other_autoscalers import others_of, send_away
from fairway.controllers.autoscaling.readings import target_of
from fairway.controllers.autoscaling.services import Service
from fairway.kinds.decision import work_label
from fairway.kinds.registry import built_in
from fairway.kubeapi import Access, KubeApi, load_access
from fairway.metrics.interface import PodUsage
from fairway.serving.scaling.decide import decide
from fairway.serving.scaling.model import (
    Measured,
    Memory,
    Metric,
    OfAll,
    OfPods,
    PodFact,
    ServiceObservation,
)
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import ACCOUNTS, CLUSTER_ROLES, ROLE_BINDINGS
from fairway.store.kubernetes.store import KubernetesStore
from tests.contracts.drivers import work
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.demand import demand
from tests.kubernetes.driving import cluster
from tests.kubernetes.measuring_apis import (
    NAMESPACE,
    WINDOW_SECONDS,
    MeasuringApis,
    Values,
    serving,
)
from tests.waiting import observed, seen

pytestmark = pytest.mark.real

DEPLOYMENTS = ResourceKey("apps", "v1", "deployments")
PODS = ResourceKey("", "v1", "pods")
AUTOSCALERS = ResourceKey("autoscaling", "v2", "horizontalpodautoscalers")
WRITE = Write(manager="tests")
# Windows and periods end after two seconds or four, and no question comes then: even if a decision
# takes half a second, two are less than four seconds apart and three are more.
PERIOD_SECONDS = 1.5
PATIENCE_SECONDS = 240.0
Json = dict[str, Any]
# One pod for each letter: r ready, y never ready, p without a node, l leaving, f failed.
_PHASES = {"r": "Running", "y": "Running", "p": "Pending", "f": "Failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A target, its autoscaler and the series that it is told."""

    metric: Json
    values: list[Values]
    start: int = 2
    least: int = 1
    most: int = 20
    behavior: Json | None = None
    pods: str = "r"
    expected: list[int] = field(default_factory=list)  # where a person can tell

    def spec(self) -> Json:
        return {
            "minReplicas": self.least,
            "maxReplicas": self.most,
            "metrics": [self.metric],
            **({"behavior": self.behavior} if self.behavior else {}),
        }


def external(name: str, target: Json) -> Json:
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def of_pods(name: str, each: str) -> Json:
    target = {"type": "AverageValue", "averageValue": each}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def cpu(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def each(*values: int | None) -> dict[str, int]:
    """What each pod uses; None: it is not measured."""
    return {f"p{number}": value for number, value in enumerate(values) if value is not None}


SURGE: list[Values] = [2000, 2000, 9000, 30_000, 30_000, 30_000, *[3000] * 12, 8000, 8000, 1000]
WAVES: list[Values] = [4000, 12_000, 4000, 16_000, 1000, 1000, 9000, 2000, *[2000] * 8, 11_000]
SLOWLY = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 4}],
    },
    "scaleDown": {
        "stabilizationWindowSeconds": 4,
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 4}],
    },
}
STEADILY = {
    "scaleUp": {"stabilizationWindowSeconds": 4},
    "scaleDown": {"stabilizationWindowSeconds": 2, "tolerance": "300m"},
}
WARILY = {
    "scaleUp": {
        "selectPolicy": "Min",
        "policies": [
            {"type": "Pods", "value": 5, "periodSeconds": 4},
            {"type": "Percent", "value": 50, "periodSeconds": 2},
        ],
    },
    "scaleDown": {"selectPolicy": "Disabled"},
}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
AVERAGE = {"type": "AverageValue", "averageValue": "1"}
LEVEL = {"type": "Value", "value": "4"}
CASES: dict[str, Case] = {
    "plain": Case(
        metric=external("plain", AVERAGE),
        values=SURGE[:8],
        expected=[2, 2, 4, 8, 16, 20, 20, 20],
    ),
    "rates": Case(metric=external("rates", AVERAGE), values=SURGE, behavior=SLOWLY),
    "windows": Case(metric=external("windows", AVERAGE), values=WAVES, behavior=STEADILY, start=4),
    "wary": Case(metric=external("wary", AVERAGE), values=WAVES, behavior=WARILY, start=4),
    "level": Case(
        metric=external("level", LEVEL),
        values=[4000, 4300, 6000, 9000, 3000, 2000, 2000, 4400, 4500],
        behavior=STEADILY,
        start=3,
        pods="rrrp",
    ),
    "least": Case(
        metric=external("least", AVERAGE), values=[1000, 100, 0, 0, 5000], start=1, least=3, most=4
    ),
    "ofpods": Case(
        metric=of_pods("ofpods", "1"),
        values=[
            each(1000, 1000, 1000, 1000),
            each(2000, 2500, 1500, 3000),
            each(2000, 2500, None, None),
            each(200, 100, None, 100),
            each(200, 100, 150, 100),
            each(3001, 3000, 3000, 3000, 9000, 9000),
            each(500, 500, 500, 500),
        ],
        behavior=AT_ONCE,
        start=4,
        pods="rrrrlf",
    ),
    "processor": Case(
        metric=cpu(50),
        values=[
            each(500, 500, 500, 500),
            each(900, 900, 900, None, 900),
            each(700, None, None, None, 100),
            each(3000, 3000, 3000, 3000, 900),
            each(3000, 3000, None, None, 900),
            each(100, 90, None, 80),
            each(100, 90, 100, 80, 1000),
            each(559, 559, 559, 559, 10, 10),
            each(540, 540, 540, 540),
        ],
        behavior=AT_ONCE,
        start=4,
        pods="rrrryp",
    ),
}


@pytest.fixture(scope="module")
def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    with control_plane.running(tmp_path_factory.mktemp("scaling")) as found:
        yield found


@pytest.fixture
async def api(plane: ControlPlane) -> AsyncIterator[KubeApi]:
    opened = KubeApi(load_access(str(plane.kubeconfig)), SystemClock())
    yield opened
    await opened.close()


def _template(name: str) -> Json:
    requests = {"resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "server", **requests}]},
    }


async def make(api: KubeApi, name: str, case: Case) -> None:
    """The target of a case, its pods, and its autoscaler."""
    template = _template(name)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": case.start,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }
    await api.create(DEPLOYMENTS, deployment, namespace=NAMESPACE, write=WRITE)
    for number, letter in enumerate(case.pods):
        await _make_pod(api, name, number, letter, template)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, **case.spec()},
    }
    await api.create(AUTOSCALERS, autoscaler, namespace=NAMESPACE, write=WRITE)


async def _make_pod(api: KubeApi, name: str, number: int, letter: str, template: Json) -> None:
    # Pods of different targets have different names; the scripts go by their number.
    pod = f"{name}-p{number}"
    kept = {"finalizers": ["example.com/kept"]} if letter == "l" else {}
    metadata = {"name": pod, **template["metadata"], **kept}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    await api.create(PODS, body, namespace=NAMESPACE, write=WRITE)
    await _ready(api, pod, letter)
    if letter == "l":
        await api.delete(PODS, pod, namespace=NAMESPACE)


async def _ready(api: KubeApi, pod: str, letter: str) -> None:
    """What a kubelet would say of a pod."""
    conditions = [
        {
            "type": "Ready",
            "status": "False" if letter == "y" else "True",
            "lastTransitionTime": "2020-01-01T00:00:05Z",
        }
    ]
    phase = _PHASES.get(letter, "Running")
    status = {"phase": phase, "startTime": "2020-01-01T00:00:00Z", "conditions": conditions}
    patch = Patch(type="merge", body={"status": status})
    await api.patch(PODS, pod, patch, namespace=NAMESPACE, subresource="status", write=WRITE)


def scaling_controllers(plane: ControlPlane) -> list[str]:
    """The command of a controller manager that runs nothing but the autoscaler, in a hurry."""
    command = plane.commands["kube-controller-manager"]
    return [
        *(item for item in command if not item.startswith("--controllers=")),
        "--controllers=horizontal-pod-autoscaler-controller",
        f"--horizontal-pod-autoscaler-sync-period={int(PERIOD_SECONDS * 1000)}ms",
        "--concurrent-horizontal-pod-autoscaler-syncs=16",
    ]


async def test_the_counts_are_those_of_a_real_autoscaler(plane: ControlPlane, api: KubeApi) -> None:
    placed = {name: case.start for name, case in CASES.items()}
    placing: list[asyncio.Future[None]] = []

    async def look(name: str) -> tuple[int, int]:
        """The count of a target, which from the next look on is what its status says, too."""
        raw = await api.get(DEPLOYMENTS, name, NAMESPACE)
        wanted = json.loads(raw)["spec"]["replicas"]
        before, placed[name] = placed[name], wanted
        placing.append(asyncio.ensure_future(_place(api, name, wanted)))
        return wanted, before

    scripts = {name: _named(name, case.values) for name, case in CASES.items()}
    apis = MeasuringApis(scripts=scripts, look=look)
    async with serving(apis, api, plane.folder):
        for name, case in CASES.items():
            await make(api, name, case)
            await _place(api, name, case.start)
        control_plane.start(plane, "autoscaler", scaling_controllers(plane))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(
                len(apis.asked[value]) > len(case.values) for value, case in CASES.items()
            ):
                apis.advanced.clear()
                await apis.advanced.wait()
        await asyncio.gather(*placing)
    for name, case in CASES.items():
        theirs, ours = compared(name, case, apis)
        assert ours == theirs, told(name, apis, theirs, ours)
        if case.expected:
            assert theirs[: len(case.expected)] == case.expected, name
        assert len(set(theirs)) > 1, f"{name} proves nothing"


def told(name: str, apis: MeasuringApis, theirs: list[int], ours: list[int]) -> str:
    """Both sequences with what they were made from, for who must find the difference."""
    asked = apis.asked[name]
    rows = (
        f"{look.at - asked[0].at:7.3f} s  {look.values} with {look.wanted}, of which {look.placed} "
        f"are placed: {a} there, {b} here"
        for look, a, b in zip(asked, theirs, ours, strict=False)
    )
    return "\n".join((name, *rows))


async def _place(api: KubeApi, name: str, count: int) -> None:
    patch = Patch(type="merge", body={"status": {"replicas": count}})
    await api.patch(
        DEPLOYMENTS, name, patch, namespace=NAMESPACE, subresource="status", write=WRITE
    )


def _named(name: str, values: list[Values]) -> list[Values]:
    """A script with pods by the names that they have."""
    return [
        {f"{name}-{pod}": value for pod, value in item.items()} if isinstance(item, dict) else item
        for item in values
    ]


def compared(name: str, case: Case, apis: MeasuringApis) -> tuple[list[int], list[int]]:
    """The counts that followed each question, theirs and ours."""
    spec = ours_of(name, case)
    limits = limits_of(
        spec, Bounds(least=spec.min_replicas, most=spec.max_replicas), pods_per_replica=1
    )
    asked = apis.asked[name]
    memory = Memory()
    theirs, ours = [], []
    for value, following in pairwise(asked):
        at_once = ServiceObservation(
            now=value.at,
            wanted=value.wanted,
            placed=value.placed,
            pods=facts(name, case),
            metrics=(_metric(spec, value.values, value.at),),
        )
        verdict = decide(at_once, limits, memory)
        memory = verdict.memory
        ours.append(verdict.replicas)
        theirs.append(following.wanted)
    return theirs, ours


def ours_of(name: str, case: Case) -> FleetAutoscalerSpec:
    """The same autoscaler as a FleetAutoscaler: field by field."""
    body = {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "FleetAutoscaler",
        "metadata": {"name": name},
        "spec": {"target": {"kind": "Deployment", "name": name}, **case.spec()},
    }
    return decode(body, FleetAutoscaler).spec


def _metric(spec: FleetAutoscalerSpec, values: Values, at: float) -> Metric:
    (metric,) = spec.metrics
    part = metric.resource or metric.pods or metric.external
    assert part is not None
    if not isinstance(values, dict):
        reading: OfAll | OfPods = OfAll(value=values)
    else:
        by_pod = {
            pod: Measured(value=value, at=at, window_seconds=WINDOW_SECONDS)
            for pod, value in values.items()
        }
        reading = OfPods(by_pod=by_pod)
    return Metric(
        name=metric.type,
        failure="",
        target=target_of(part.target),
        reading=reading,
        resource=metric.resource.name if metric.resource else "",
    )


def facts(name: str, case: Case) -> tuple[PodFact, ...]:
    """The pods of a case, as our own agents would tell of them."""
    started = 1_577_836_800.0  # 2020-01-01
    return tuple(
        PodFact(
            name=f"{name}-p{number}",
            phase=_PHASES.get(letter, "Running"),  # type: ignore[arg-type]  # one of the four
            is_leaving=letter == "l",
            is_ready=letter != "y",
            started_at=started,
            ready_changed_at=started + 5,
            requests={"main": {"cpu": 1000}},
        )
        for number, letter in enumerate(case.pods)
    )


async def prepare(api: KubeApi) -> None:
    """Lets tenants make pods."""
    several = (
        (CLUSTER_ROLES, rights.tenant_role([("", "pods")])),
        (ACCOUNTS, rights.tenant_account(NAMESPACE)),
        (ROLE_BINDINGS, rights.tenant_binding(NAMESPACE)),
    )
    for kind, body in several:
        place = "" if kind is CLUSTER_ROLES else NAMESPACE
        await api.create(kind, body, namespace=place, write=WRITE)


async def test_what_pods_use_is_told_by_the_agent_of_their_cluster(
    plane: ControlPlane, api: KubeApi
) -> None:
    await prepare(api)

    async def access() -> Access:
        return load_access(str(plane.kubeconfig))

    driver = KubernetesDriver(
        cluster(requestsPerSecond=500), built_in().of, SystemClock(), find_access=access
    )
    template = _template("web")
    metadata = {"name": "web", "namespace": NAMESPACE, **template["metadata"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    made = work("web", body, pods=1)
    name = made.metadata.name

    async def nothing(_: str) -> tuple[int, int]:
        return 0, 0

    apis = MeasuringApis(scripts={work_label(name): [{"web": 250}]}, look=nothing)
    await driver.open()
    try:
        await driver.apply(made)
        await observed(driver, lambda item: bool(item.works[name].pods), "the pod")
        with pytest.raises(NotPossible, match="no metrics API"):
            await driver.usage(name)
        await _ready(api, "web", "r")
        async with serving(apis, api, plane.folder):

            async def told() -> tuple[PodUsage, ...]:
                try:
                    return await driver.usage(name)
                except DriverFault:
                    return ()  # the server has not found the new API yet

            (pod,) = await seen(
                told, lambda found: bool(found) and found[0].phase == "Running", "the usage"
            )
        assert (pod.requests, pod.usage) == ({"main": {"cpu": 1000}}, {"main": {"cpu": 250}})
        assert (pod.is_ready, pod.window_seconds) == (True, WINDOW_SECONDS)
        assert pod.started_at == 1_577_836_800.0
        assert pod.ready_changed_at == 1_577_836_805.0
    finally:
        await driver.close()


async def test_an_autoscaler_on_the_hub_is_found_and_gives_way_where_it_is_told(
    plane: ControlPlane, api: KubeApi
) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "found"}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "own"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    await api.create(AUTOSCALERS, body, namespace=NAMESPACE, write=WRITE)
    store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
    try:
        service = scaled("found")
        (other,) = await others_of(service, store=store)
        assert other.name == "HorizontalPodAutoscaler own on the hub"
        assert await others_of(scaled("another"), store=store) == []
        await send_away(other, service, store=store)
        assert await others_of(service, store=store) == []
    finally:
        await store.close()


def scaled(name: str) -> Service:
    """A Deployment of the hub, with the workload that stands for it."""
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
    metadata = ObjectMeta(name=f"deployment-{name}", namespace=NAMESPACE)
    return Service(
        workload=Workload(metadata=metadata, spec=WorkloadSpec(mode="Divided")),
        target=found,
        resource=DEPLOYMENTS,
        kind=built_in().of(found),
        wanted=1,
        object_name=name,
        pods_per_replica=1,
    )
