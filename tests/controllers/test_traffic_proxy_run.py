"""Requests through a real proxy while a service bursts, shrinks, loses a cluster and comes home.

The hub runs on virtual time, and the proxy takes its weights from the HTTPRoute that the hub
writes, some seconds late as gateways are. Between two steps of the hub real requests are sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairway.api.workload import Workload
from fairway.clock import VirtualClock
from fairway.controllers.lifecycle.attempt_ends import AVOIDED_SECONDS
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import HTTP_ROUTES
from tests.controllers import test_moves_run as moves
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_traffic_run import DEFINITION
from tests.gateways import Front, Proxy, proxy_before
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand

pytestmark = pytest.mark.real

CLUSTERS = ("home", "near", "cloud")
STEP_SECONDS = 0.5
REQUESTS = 5  # in each step
GATEWAY_SECONDS = 2.0  # from a write of the route until the proxy has it
AFTER_SECONDS = 15.0  # of load, once nothing changes any more
LOST_SECONDS = 12  # without a heartbeat, until the hub takes a cluster for lost
NOTICED_SECONDS = 8  # until it has missed the last heartbeat, looked at it, and written weights

ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: chat
  namespace: default
  annotations: {serving.fairway.dev/workload: chat}
spec:
  rules:
    - backendRefs:
        - {name: chat-home, port: 80}
        - {name: chat-near, port: 80}
        - {name: chat-cloud, port: 80}
"""
FLEET = f"""
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {{name: fleet}}
spec:
  defaults: {{onClusterLost: AllowDuplicate}}
  health: {{heartbeatSeconds: 2, unreadySeconds: 6, lostSeconds: {LOST_SECONDS}}}
"""


@dataclass(slots=True)
class Traffic:
    """Steady load on the service, and what became of it."""

    fleet: Fleet
    proxy: Proxy
    fronts: dict[str, Front]
    failed_at: float = 0.0  # the last request that failed
    _written: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    async def flow(self, is_so: Callable[[Workload], bool], seconds: float = 120) -> Counter[str]:
        """Load until the workload is so, and for a while after; answers by cluster."""
        answers: Counter[str] = Counter()
        end = self.fleet.clock.now() + seconds
        while not is_so(await self.fleet.workload("chat")):
            assert self.fleet.clock.now() < end, (await self.fleet.workload("chat")).status
            answers += await self._step(REQUESTS)
        return answers + await self.rest(AFTER_SECONDS, REQUESTS)

    async def rest(self, seconds: float, requests: int = 0) -> Counter[str]:
        """Lets time pass, with or without load."""
        answers: Counter[str] = Counter()
        end = self.fleet.clock.now() + seconds
        while self.fleet.clock.now() < end:
            answers += await self._step(requests)
        return answers

    async def _step(self, requests: int) -> Counter[str]:
        await self.fleet.clock.advance(STEP_SECONDS)
        for name, front in self.fronts.items():
            front.serve(_has_ready(self.fleet, name.removeprefix("chat-")))
        now = self.fleet.clock.now()
        route = (await self.fleet.store.get(HTTP_ROUTES, "chat", "default")).object()
        self._written.append((now + GATEWAY_SECONDS, route))
        while self._written[0][0] <= now:
            self.proxy.follow(self._written.pop(0)[1])
        answers = self.proxy.ask(requests)
        if answers[""]:
            self.failed_at = now
        return answers


def _has_ready(fleet: Fleet, cluster: str) -> bool:
    """Whether a replica of the service would answer; pods that are ending do not."""
    try:
        pods = fleet.worlds.world(cluster).pods("default.chat") or []
    except KeyError:
        return False  # it is down
    return any(pod.phase == "Ready" for pod in pods)


@pytest.fixture
async def traffic(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Traffic]:
    program = demand(binaries.envoy, request.config)
    fronts = {f"chat-{name}": Front(name) for name in CLUSTERS}
    async with running(store, clock, tmp_path / "clusters") as fleet:
        with proxy_before(program, tmp_path / "proxy", fronts) as proxy:
            yield Traffic(fleet, proxy, fronts)


def policy() -> dict[str, Any]:
    made = moves.policy(afterSeconds=20)
    made["spec"]["groups"] = [{"name": name, "selector": {"names": [name]}} for name in CLUSTERS]
    return made


def is_at(places: str, count: int) -> Callable[[Workload], bool]:
    return lambda item: (
        summary_of(item) == places and item.status.pods.ready == count and not item.status.releasing
    )


async def begin(traffic: Traffic) -> None:
    """Six replicas, four at home and two near; the cloud has only what it is asked for."""
    shape = {"cpu": "8", "memory": "64Gi", moves.GPU: "1", "pods": "10"}
    pool = {"name": "spot", "shape": shape, "countMax": 8, "provisionSeconds": 10}
    await traffic.fleet.apply(DEFINITION + "---" + ROUTE + "---" + FLEET)
    await moves.apply(
        traffic.fleet,
        moves.FLAVOR,
        *(moves.cluster("home", 4), moves.cluster("near", 3)),
        moves.cluster("cloud", 0, elasticPools=[pool]),
        *(moves.queue(16), policy(), moves.service(6)),
    )
    await traffic.fleet.until("chat", is_at("home (4), near (2)", 6), 120)
    await traffic.rest(10)


async def test_no_request_fails_while_a_service_bursts_and_shrinks(traffic: Traffic) -> None:
    await begin(traffic)
    steady = await traffic.rest(AFTER_SECONDS, REQUESTS)
    assert set(steady) == {"home", "near"}
    await traffic.fleet.change("chat", {"spec": {"replicas": 10}})
    burst = await traffic.flow(is_at("cloud (3), home (4), near (3)", 10))
    assert set(burst) == {"home", "near", "cloud"}
    await traffic.fleet.change("chat", {"spec": {"replicas": 6}})
    shrunk = await traffic.flow(is_at("home (4), near (2)", 6))
    assert set(shrunk) == {"home", "near", "cloud"}  # until its weight was gone, replicas answered


async def test_requests_fail_until_a_cluster_is_lost_and_none_on_the_way_home(
    traffic: Traffic,
) -> None:
    await begin(traffic)
    fleet, began = traffic.fleet, traffic.fleet.clock.now()
    await fleet.change_cluster("near", {"spec": {"simulated": {"faults": {"outage": True}}}})
    lost = await traffic.flow(is_at("cloud (2), home (4)", 6))
    seconds = LOST_SECONDS + NOTICED_SECONDS + GATEWAY_SECONDS
    assert traffic.failed_at - began <= seconds
    # A third of them at the most, but for chance.
    assert 0 < lost[""] <= seconds * REQUESTS / STEP_SECONDS / 2
    await fleet.change_cluster("near", {"spec": {"simulated": {"faults": {"outage": False}}}})
    await traffic.rest(AVOIDED_SECONDS - 60)
    home = await traffic.flow(is_at("home (4), near (2)", 6))
    assert set(home) == {"home", "near", "cloud"}
