"""A real Prometheus is asked, and a whole hub scales and rolls out services by what it measures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from fairway.app import Hub, HubOptions, open_hub
from fairway.client import AsyncClient
from fairway.clock import SystemClock
from fairway.metrics import presets
from fairway.metrics.interface import Address, Refused, value
from fairway.metrics.presets import SERVERS
from fairway.metrics.prometheus import Prometheus
from tests.controllers.test_autoscaling_run import FLEET, SERVICE, autoscaler
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand
from tests.metrics.servers import ModelServer, model_server, prometheus_server
from tests.waiting import followed, seen

pytestmark = pytest.mark.real


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Path:
    return demand(binaries.prometheus, request.config)


@pytest.fixture
async def load() -> AsyncIterator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest.fixture
async def url(program: Path, load: ModelServer, tmp_path: Path) -> AsyncIterator[str]:
    async with prometheus_server(program, tmp_path, [f"127.0.0.1:{load.port}"]) as found:
        yield found


@pytest.fixture
async def source(url: str) -> AsyncIterator[Prometheus]:
    found = Prometheus(Address(url=url), SystemClock())
    yield found
    await found.close()


async def test_what_a_server_under_load_tells_is_had(source: Prometheus, load: ModelServer) -> None:
    await load.ask(7)
    query = 'sum(vllm:num_requests_waiting{namespace="default"})'
    await seen(lambda: value(source, query), lambda found: found == 7, "seven that wait")
    (sample,) = await source.vector("vllm:num_requests_waiting")
    assert (sample.labels["pod"], sample.value) == ("chat-0", 7.0)
    await load.answer_all()
    await seen(lambda: value(source, query), lambda found: found == 0, "nobody who waits")
    assert await source.vector("no_such_metric") == ()
    with pytest.raises(Refused, match="parse error"):
        await source.vector("sum(")


async def test_every_preset_is_a_query_that_prometheus_understands(source: Prometheus) -> None:
    labels = presets.match_labels({"namespace": "default", "pod": 'a"\\b'})
    for engine, server in SERVERS.items():
        for signal in server.queries:
            query = presets.query(engine, signal, labels)
            assert query is not None
            assert await source.vector(query) == (), (engine, signal)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(HubOptions(data=tmp_path / "hub", port=0)) as found:
        yield found


async def applied(client: AsyncClient, text: str) -> None:
    for body in yaml.safe_load_all(text):
        await client.apply(body)


async def test_a_service_follows_the_load_that_prometheus_measures(
    hub: Hub, url: str, load: ModelServer
) -> None:
    await load.ask(23)
    async with AsyncClient.connect(str(hub.kubeconfig)) as client:
        where = FLEET.replace("http://prometheus.example.com:9090", url)
        await applied(client, f"{where}\n---\n{SERVICE}")
        await followed(client, "chat", "Running", namespace="default")
        serving = {"engine": "vLLM", "signal": "QueueLength", "target": "5", "model": "tiny"}
        scaler = autoscaler(
            metrics=[{"type": "Serving", "serving": serving}],
            behavior={"scaleDown": {"stabilizationWindowSeconds": 0}},
        )
        await applied(client, scaler)
        grown = await followed(
            client, "chat", lambda item: item.status.pods.ready == 5, namespace="default"
        )
        assert grown.spec.replicas == 5
        await load.answer_all()
        await followed(client, "chat", lambda item: item.spec.replicas == 1, namespace="default")
        idle = {"type": "Serving", "name": "vLLM QueueLength", "averageValue": "0"}
        await seen(  # the status is written after the count that follows from it
            lambda: client.get("fleetautoscalers", "chat", namespace="default"),
            lambda item: item["status"]["currentMetrics"] == [idle],
            "a status without load",
        )


ROLLOUT = """
apiVersion: serving.fairway.dev/v1alpha1
kind: Rollout
metadata: {name: chat, namespace: default}
spec:
  workload: {name: chat}
  strategy:
    maxUnavailable: 1
    gates:
      - name: queue
        query: sum(vllm:num_requests_waiting{namespace="${namespace}"})
        condition: "< 5"
        intervalSeconds: 1
        failureLimit: 1
"""


async def test_a_version_goes_back_where_prometheus_says_that_a_gate_does_not_hold(
    hub: Hub, url: str, load: ModelServer
) -> None:
    async with AsyncClient.connect(str(hub.kubeconfig)) as client:

        async def phase() -> tuple[str, int]:
            status = (await client.get("rollouts", "chat", namespace="default")).get("status", {})
            return status.get("phase", ""), status.get("revision", 0)

        where = FLEET.replace("http://prometheus.example.com:9090", url)
        await applied(client, f"{where}\n---\n{SERVICE}")
        await followed(
            client, "chat", lambda item: item.status.pods.ready == 2, namespace="default"
        )
        await applied(client, ROLLOUT)
        await seen(phase, lambda told: told == ("Completed", 1), "the first revision to be known")
        await applied(client, SERVICE.replace("image: server", "image: better"))
        await seen(phase, lambda told: told == ("Completed", 2), "a version that is let pass")
        await load.ask(7)
        await applied(client, SERVICE.replace("image: server", "image: worse"))
        await seen(phase, lambda told: told == ("RolledBack", 3), "a version that is taken back")
        status = (await client.get("rollouts", "chat", namespace="default"))["status"]
        assert (status["reason"], status["stableRevision"]) == ("GateFailed", 2)
        assert status["message"].startswith("gate queue: 7 is not < 5")
