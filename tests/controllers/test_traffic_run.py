"""The traffic of a service follows what is ready, in its status, in the feed and in routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairway.clock import VirtualClock
from fairway.controllers.traffic.routes import changes, cluster_of
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch
from fairway.store.keys import EVENTS, HTTP_ROUTES
from tests.controllers.fleets import Fleet, running
from tests.controllers.rollouts import FLEET, USER, pods_in, service

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: httproutes.gateway.networking.k8s.io}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {plural: httproutes, singular: httproute, kind: HTTPRoute, listKind: HTTPRouteList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: llm
  namespace: default
  annotations: {serving.fairway.dev/workload: llm}
spec:
  hostnames: [llm.example.com]
  rules:
    - backendRefs:
        - {name: llm-beijing, port: 8000}
        - {name: llm-hangzhou, port: 8000}
        - {name: llm-shanghai, port: 8000, weight: 1}
    - backendRefs: [{name: status-page, port: 80, weight: 7}]
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def route_of(fleet: Fleet) -> dict[str, Any]:
    return (await fleet.store.get(HTTP_ROUTES, "llm", "default")).object()


def weights_of(route: dict[str, Any], rule: int = 0) -> list[int | None]:
    return [
        backend_ref.get("weight") for backend_ref in route["spec"]["rules"][rule]["backendRefs"]
    ]


async def test_weights_follow_what_is_ready_and_how_fast_it_is(fleet: Fleet) -> None:
    await fleet.apply(service())
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    told = await fleet.until("llm", lambda item: len(item.status.traffic) == 3, 30)
    await fleet.clock.advance(10)
    told = await fleet.workload("llm")
    assert [(weight.cluster, weight.weight, weight.ready) for weight in told.status.traffic] == [
        ("beijing", 500, 4),
        ("hangzhou", 375, 3),
        ("shanghai", 125, 1),
    ]
    feed = await fleet.plane.share("default", "llm")
    assert feed["services"] == [
        {
            "namespace": "default",
            "name": "llm",
            "clusters": [
                {"cluster": "beijing", "weight": 500, "ready": 4},
                {"cluster": "hangzhou", "weight": 375, "ready": 3},
                {"cluster": "shanghai", "weight": 125, "ready": 1},
            ],
        }
    ]
    assert (await fleet.plane.share("default", "other"))["services"] == []


async def test_a_route_gets_weights_and_nothing_else_of_it_changes(fleet: Fleet) -> None:
    await fleet.apply(DEFINITION)
    await fleet.apply(ROUTE)
    await fleet.apply(service())
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await fleet.clock.advance(15)
    route = await route_of(fleet)
    assert weights_of(route) == [500, 375, 125]
    assert weights_of(route, rule=1) == [7]
    assert route["spec"]["hostnames"] == ["llm.example.com"]
    assert "fairway-traffic" in {
        managed_field["manager"] for managed_field in route["metadata"]["managedFields"]
    }


async def test_a_route_that_somebody_else_writes_too_is_not_fought_over(fleet: Fleet) -> None:
    await fleet.apply(DEFINITION)
    await fleet.apply(ROUTE)
    await fleet.apply(service())
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await fleet.clock.advance(15)
    writes = 0
    for _ in range(120):
        route = await route_of(fleet)
        if weights_of(route)[0] == 500:
            writes += 1
            reset = [
                {"op": "replace", "path": f"/spec/rules/0/backendRefs/{at}/weight", "value": 1}
                for at in range(3)
            ]
            patch = Patch(type="json", body=reset)
            await fleet.store.patch(HTTP_ROUTES, "llm", patch, namespace="default", write=USER)
        await fleet.clock.advance(5)
    assert 2 <= writes <= 9  # ever more seldom, in ten minutes
    notes = [item.object() for item in (await fleet.store.list(EVENTS)).items]
    assert any(note["reason"] == "WeightsContested" for note in notes)


async def test_a_cluster_that_is_lost_gets_nothing_once_it_is_lost(fleet: Fleet) -> None:
    await fleet.apply(service())
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": {"outage": True}}}})
    await fleet.until(
        "llm",
        lambda item: (
            {each.cluster: each.weight for each in item.status.traffic}.get("hangzhou") == 0
        ),
        1800,
    )


BACKENDS = {
    "its own name": ("beijing", "beijing"),
    "the end of its name": ("llm-beijing", "beijing"),
    "the longest that fits": ("llm-north-beijing", "north-beijing"),
    "a part of another name": ("llmbeijing", ""),
    "what the route says": ("main", "north-beijing"),
    "what the route says of a cluster that is not there": ("gone", ""),
}


@pytest.mark.parametrize(("backend", "expected"), BACKENDS.values(), ids=BACKENDS)
def test_the_cluster_of_a_backend(backend: str, expected: str) -> None:
    given = {"main": "north-beijing", "gone": "wuhan"}
    assert cluster_of(backend, ["beijing", "north-beijing"], given) == expected


async def test_a_cluster_that_the_service_is_not_in_gets_no_weight(fleet: Fleet) -> None:
    await fleet.apply(DEFINITION)
    await fleet.apply(ROUTE)
    await fleet.apply(service(replicas=8))
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await fleet.clock.advance(15)
    await fleet.change("llm", {"spec": {"replicas": 4}})
    await fleet.clock.advance(1)
    assert weights_of(await route_of(fleet)) == [1000, 0, 0]  # at once, though just written
    assert (await fleet.workload("llm")).status.claim is not None
    assert len(pods_in(fleet, "hangzhou")) == 3  # gateways have some time to follow
    await fleet.clock.advance(15)
    assert pods_in(fleet, "hangzhou") == []


def test_where_nothing_is_ready_a_route_stays_as_it_is() -> None:
    route = {"spec": {"rules": [{"backendRefs": [{"name": "a", "weight": 3}]}]}}
    assert changes(route, {"a": 0, "b": 0}, least=10) == []
    assert changes(route, {"a": 0, "b": 1000}, least=10) == []  # the other is not in this route
    assert changes(route, {"a": 1000}, least=10) == [
        {"op": "test", "path": "/spec/rules/0/backendRefs/0/name", "value": "a"},
        {"op": "add", "path": "/spec/rules/0/backendRefs/0/weight", "value": 1000},
    ]
