"""A service with what scales and updates it, and a server that measures its load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from fairway.api.errors import NotFound
from fairway.client import Client
from tests.page.workloads import Object, service
from tests.waiting import seen_at_last

NAMESPACE = "team-serving"
WORKLOADS = "workloads.fairway.dev"
ROLLOUTS = "rollouts.serving.fairway.dev"
AUTOSCALERS = "fleetautoscalers.serving.fairway.dev"
POLICIES = "placementpolicies.fairway.dev"
FLEETS = "fleets.fairway.dev"


def policy(name: str) -> Object:
    """Two replicas at home, all others in a cloud."""
    home = {"name": "home", "selector": {"names": ["onprem-hangzhou"]}, "replicasMax": 2}
    cloud = {"name": "cloud", "selector": {"names": ["cloud-east", "cloud-west"]}}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"groups": [home, cloud]},
    }


def divided(name: str, replicas: int) -> Object:
    """A service of that policy."""
    found = service(name, replicas)
    found["spec"]["policy"] = name
    found["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]["containers"][0][
        "image"
    ] = "serving:1"
    return found


def rollout(name: str, **strategy: Any) -> Object:
    return {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workload": {"name": name},
            "strategy": {"canary": {"percent": 10}, "byGroup": True, **strategy},
        },
    }


def autoscaler(name: str, *, most: int) -> Object:
    """As many as requests need that wait at the gateway: one takes five."""
    external = {
        "metric": {"name": "requests_waiting"},
        "target": {"type": "AverageValue", "averageValue": "5"},
    }
    return {
        "apiVersion": "serving.fairway.dev/v1alpha1",
        "kind": "FleetAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "target": {"name": name},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "External", "external": external}],
        },
    }


def image_of(workload: Object) -> str:
    manifest = workload["spec"]["template"]["manifests"][0]
    return str(manifest["spec"]["template"]["spec"]["containers"][0]["image"])


@dataclass(slots=True)
class Serving:
    """One service on the hub, by its name."""

    client: Client
    name: str

    def workload(self) -> Object:
        return self.client.get(WORKLOADS, self.name, namespace=NAMESPACE)

    def rollout(self) -> Object:
        return self.client.get(ROLLOUTS, self.name, namespace=NAMESPACE)

    def phase(self) -> str:
        return str(self.rollout().get("status", {}).get("phase"))

    def reaches(self, phase: str) -> None:
        seen_at_last(self.phase, lambda found: found == phase, f"a rollout that is {phase}")

    def has(self, replicas: int) -> None:
        """So many replicas are ready."""
        seen_at_last(
            lambda: self.workload().get("status", {}).get("pods", {}),
            lambda pods: pods.get("ready") == replicas == pods.get("wanted"),
            f"{replicas} ready replicas",
        )

    def update(self, image: str) -> None:
        """Another version of it."""
        workload = self.workload()
        manifest = workload["spec"]["template"]["manifests"][0]
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image
        self.client.patch(
            WORKLOADS,
            self.name,
            {"spec": {"template": {"manifests": [manifest]}}},
            namespace=NAMESPACE,
        )


@contextmanager
def serving(client: Client, name: str, *others: Object, replicas: int = 4) -> Iterator[Serving]:
    """A service that is ready, with its policy and what else is given, until it is left."""
    made = [policy(name), divided(name, replicas), *others]
    for item in made:
        client.create(item)
    found = Serving(client, name)
    try:
        found.has(replicas)
        yield found
    finally:
        for entry in reversed(made):
            client.delete(client.kind_of(entry), name, namespace=NAMESPACE)
        seen_at_last(lambda: _exists(found), lambda is_there: not is_there, f"the end of {name}")


def _exists(one: Serving) -> bool:
    try:
        one.workload()
    except NotFound:
        return False
    return True


@contextmanager
def measured(client: Client) -> Iterator[dict[str, float]]:
    """The fleet's Prometheus, which answers whatever it is asked with the one number given."""
    told = {"value": 0.0}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer()

        def _answer(self) -> None:
            one = {"metric": {}, "value": [1, str(told["value"])]}
            data = {"resultType": "vector", "result": [one]}
            body = json.dumps({"status": "success", "data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing: the tests' output is their own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        client.patch(FLEETS, "fleet", {"spec": {"metrics": {"prometheus": {"url": url}}}})
        try:
            yield told
        finally:
            client.patch(FLEETS, "fleet", {"spec": {"metrics": {"prometheus": None}}})
            server.shutdown()
