"""Every query of alerts and of the dashboard has series on a real Prometheus.

It scrapes a real hub whose fleet lives: workloads wait, start, are preempted and move, and a
cluster is lost. Only what Kubernetes tells of pods comes from a stand-in, with the names and labels
that the kubelet and kube-state-metrics have.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession, web
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from fairway.app import Hub, HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.clock import SystemClock
from fairway.deploy.alerts import ALERTS
from fairway.deploy.panels import PANELS
from fairway.metrics.interface import Address
from fairway.metrics.prometheus import Prometheus
from tests.controllers.test_running import job
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand
from tests.metrics.servers import prometheus_server
from tests.waiting import followed, seen

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "monitoring" / "alerts.yaml"
_SELECTOR = re.compile(r"[a-z_]+\{[^}]*\}")
# What has happened at the end, at least.
LIVED = {
    "fairway_leads": 1,
    'fairway_clusters{phase="Lost"}': 1,
    "fairway_agent_age_seconds": 4,
    "fairway_workloads_waiting": 1,
    "fairway_preemptions_total": 1,
    'fairway_evictions_total{cause="ClusterLost"}': 1,
    'fairway_moves_total{reason="ClusterLost"}': 1,
    "fairway_lost_gpu_seconds_total": 8,
    "fairway_start_wait_seconds_count": 4,
    'fairway_forecast_error_seconds_count{direction="early"}': 2,
    "fairway_plan_steps_sum": 5,
    "fairway_planner_process_resident_memory_bytes": 1e6,
    "fairway_disk_free_bytes": 1,
}
FLEET = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec:
  health: {heartbeatSeconds: 1, unreadySeconds: 3, lostSeconds: 4, skewSeconds: 0}
  breakers: {movesPerHour: 100}
---
apiVersion: fairway.dev/v1alpha1
kind: Flavor
metadata: {name: h100}
spec: {nodeLabels: {accelerator: h100}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: company}
spec: {uncovered: Unlimited}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec:
  parent: company
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 16}]}]
  preemption: {withinQueue: LowerPriority}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: product}
spec:
  parent: company
  resourceGroups:
    - resources: [nvidia.com/gpu]
      flavors: [{name: h100, quotas: [{resource: nvidia.com/gpu, nominal: 8}]}]
"""
CLUSTER = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  simulated:
    startSeconds: 1
    stopSeconds: 0
    nodePools:
      - name: gpu
        count: 1
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
        labels: {accelerator: h100}
"""


@asynccontextmanager
async def cluster_of_pods() -> AsyncIterator[str]:
    """Tells of a pod of the hub what a kubelet and kube-state-metrics tell."""
    registry = CollectorRegistry()
    names = {"namespace": "fairway-system", "pod": "fairway-hub-0", "container": "hub"}
    used = Gauge("container_memory_working_set_bytes", "Used.", list(names), registry=registry)
    used.labels(**names).set(1e9)
    limits = Gauge(
        "kube_pod_container_resource_limits", "Limit.", [*names, "resource"], registry=registry
    )
    limits.labels(**names, resource="memory").set(2e9)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), content_type="text/plain")

    application = web.Application()
    application.router.add_get("/metrics", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def scraped(hub: Hub, data: Path) -> dict[str, Any]:
    """How the guide says that a hub is scraped."""
    return {
        "job_name": "fairway-hub",
        "scheme": "https",
        "authorization": {"credentials": hub.token},
        "tls_config": {"ca_file": str(data / "tls" / "ca.crt")},
        "static_configs": [{"targets": [hub.url.removeprefix("https://")]}],
    }


async def apply(client: AsyncClient, text: str) -> None:
    for body in yaml.safe_load_all(text):
        await client.apply(body)


async def live(hub: Hub, client: AsyncClient) -> None:
    """Lets everything happen that the hub counts."""
    assert hub.plane is not None
    await apply(client, FLEET)
    for name in ("east", "west"):
        await apply(client, CLUSTER.replace("NAME", name))
    moving = job("moves", seconds=600).replace("queue: research", "queue: product")
    await apply(client, moving.replace("spec:", "spec:\n  onClusterLost: AllowDuplicate", 1))
    await apply(client, job("first", seconds=600))
    moves = await followed(client, "moves", "Running", namespace="default")
    await followed(client, "first", "Running", namespace="default")
    # The cluster will be lost in some seconds.
    assert moves.status.claim is not None
    outage = {"spec": {"simulated": {"faults": {"outage": True}}}}
    await client.patch("clusters", moves.status.claim.summary, outage)
    # Those that wait now are forecast, and start earlier than that, one after the other.
    for name in ("second", "third"):
        await apply(client, job(name, seconds=600))
    await followed(client, "third", lambda item: item.status.reason != "", namespace="default")
    await hub.plane.history.look()
    for ends, starts in (("first", "second"), ("second", "third")):
        await client.patch("workloads", ends, {"spec": {"cancelled": True}}, namespace="default")
        await followed(client, starts, "Running", namespace="default")
        await asyncio.sleep(1)  # a scrape comes between, and it has work to lose
    await apply(client, job("high", seconds=600, priority=10))
    await followed(client, "high", "Running", namespace="default")


async def fail_once(hub: Hub, data: Path) -> None:
    """Asks a question that a hub that is about to end cannot answer."""
    answers, hub.api.questions.answers_from = hub.api.questions.answers_from, None
    authority = ssl.create_default_context(cafile=str(data / "tls" / "ca.crt"))
    path = "/apis/fairway.dev/v1alpha1/namespaces/default/workloads/high/explain"
    bearer = {"Authorization": f"Bearer {hub.token}"}
    try:
        async with (
            ClientSession(headers=bearer) as session,
            session.get(f"{hub.url}{path}", ssl=authority) as answer,
        ):
            assert answer.status == 503
    finally:
        hub.api.questions.answers_from = answers


def queries() -> set[str]:
    """What must have series: values, lines, and each selector in them by itself."""
    whole = {alert.value for alert in ALERTS}
    whole |= {line.query for panel in PANELS for line in panel.lines}
    return whole | {selector for query in whole for selector in _SELECTOR.findall(query)}


async def test_every_query_has_series(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    program = demand(binaries.prometheus, request.config)
    data = tmp_path / "hub"
    missing = queries() | {f"sum({query}) >= {least}" for query, least in LIVED.items()}
    async with (
        open_hub(HubOptions(data=data, port=0)) as hub,
        cluster_of_pods() as pods,
        prometheus_server(
            program, tmp_path, [pods], others=[scraped(hub, data)], rules=[RULES]
        ) as url,
        AsyncClient.connect(str(hub.kubeconfig)) as client,
    ):
        assert hub.plane is not None
        plane = hub.plane
        await live(hub, client)
        await fail_once(hub, data)
        source = Prometheus(Address(url=url), SystemClock())

        async def still_missing() -> set[str]:
            await plane.history.look()  # the next sample would come within ten seconds
            for query in sorted(missing):
                if await source.vector(query):
                    missing.discard(query)
            return missing

        await seen(still_missing, lambda found: not found, "series of every query")
        await source.close()
        async with ClientSession() as session, session.get(f"{url}/api/v1/rules") as answer:
            (group,) = (await answer.json())["data"]["groups"]
    assert {(rule["name"], rule["health"]) for rule in group["rules"]} == {
        (alert.name, "ok") for alert in ALERTS
    }
