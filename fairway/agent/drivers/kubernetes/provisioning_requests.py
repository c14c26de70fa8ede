"""Nodes by ProvisioningRequest: all that a work needs is requested at once, before its pods exist.

Cluster autoscaler answers in conditions. Provisioned: the pods are made, with an annotation by
which the autoscaler knows that they use what was booked. Failed: the pool is out of stock. The
agent makes requests under its own identity, and deletes them with their work or its attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from msgspec.structs import replace

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.watches import read_object
from fairway.agent.drivers.kubernetes.writes import Hands
from fairway.api.meta import JsonObject
from fairway.api.pools import ElasticPool
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.kinds import decision
from fairway.kinds.permitted import FindKind
from fairway.kinds.plain import annotation, maps_at, namespace_of, text
from fairway.kinds.pod_starts import due
from fairway.kubeapi import Informer, KubeApi
from fairway.store.interface import ResourceKey, Selection

GROUP = "autoscaling.x-k8s.io"
PLURAL = "provisioningrequests"
TEMPLATES = ResourceKey("", "v1", "podtemplates")
CONSUME = f"{GROUP}/consume-provisioning-request"
CLASS = f"{GROUP}/provisioning-class-name"
_POOL = "fairway.dev/pool"
_NODES = "fairway.dev/nodes"
_FAULT_MOST = 1024
_TEMPLATE_MOST = 50  # pod sets of one request

Outcome = Literal["Waiting", "Provisioned", "Failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of this driver, with its outcome so far."""

    work: str
    attempt: int
    pool: str
    nodes: int
    outcome: Outcome
    message: str


@dataclass(slots=True)
class Tally:
    """How many nodes are being provisioned for a pool, and what failed."""

    coming: int = 0
    failures: int = 0
    fault: str = ""


def read_request(body: JsonObject) -> Request:
    """Reads what a request asks for, and its outcome."""
    nodes = annotation(body, _NODES)
    attempt = text(body, "metadata", "labels", decision.ATTEMPT)
    conditions = {
        text(condition, "type"): condition for condition in maps_at(body, "status", "conditions")
    }
    outcome: Outcome = "Waiting"
    message = ""
    for name in ("Failed", "CapacityRevoked", "Provisioned"):
        if text(conditions.get(name, {}), "status") == "True":
            outcome = "Provisioned" if name == "Provisioned" else "Failed"
            message = text(conditions[name], "message") or text(conditions[name], "reason")
            break
    return Request(
        work=marks.work_of(body),
        attempt=int(attempt) if attempt.isdecimal() else 0,
        pool=annotation(body, _POOL),
        nodes=int(nodes) if nodes.isdecimal() else 0,
        outcome=outcome,
        message=message[:_FAULT_MOST],
    )


class Provisioning:
    """The requests of one cluster."""

    def __init__(
        self,
        *,
        cluster: str,
        api: KubeApi,
        hands: Hands,
        find_kind: FindKind,
        clock: Clock,
        answered: Callable[[str], None],
    ) -> None:
        """`answered` is called with a work whose request has a new outcome."""
        self._cluster = cluster
        self._api = api
        self._hands = hands
        self._find_kind = find_kind
        self._clock = clock
        self._answered = answered
        self._kind: ResourceKey | None = None
        self._requests: dict[tuple[str, str], Request] = {}
        self._tallies: dict[str, Tally] = {}
        self._task: asyncio.Task[None] | None = None

    def serve(self, version: str) -> None:
        """Watches requests in the version that the cluster serves; empty: it serves none."""
        if not version or (self._kind is not None and self._kind.version == version):
            return
        self._kind = ResourceKey(GROUP, version, PLURAL)
        informer = Informer(
            self._api,
            self._kind,
            read=lambda raw: read_request(read_object(raw)),
            clock=self._clock,
            selection=Selection(labels=marks.selector(self._cluster)),
        )
        informer.followers.append(self._hear)
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.ensure_future(informer.run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def tally(self, pool: str) -> Tally:
        """Nodes being provisioned for a pool, and its failures since the driver started."""
        known = self._tallies.get(pool, Tally())
        coming = sum(
            request.nodes
            for request in self._requests.values()
            if request.pool == pool and request.outcome == "Waiting"
        )
        return Tally(coming=coming, failures=known.failures, fault=known.fault)

    def _hear(self, name: tuple[str, str], request: Request | None) -> None:
        before = self._requests.pop(name, None)
        if request is not None:
            self._requests[name] = request
            was = before.outcome if before is not None else "Waiting"
            if request.outcome == "Failed" and was != "Failed":
                tally = self._tallies.setdefault(request.pool, Tally())
                tally.failures += 1
                tally.fault = request.message
        changed = request or before
        if changed is not None and changed != before:
            self._answered(changed.work)

    # Requests of works.

    async def ready(self, work: Work, pools: Iterable[ElasticPool]) -> Work | None:
        """The work, with the annotations its pods need, if its nodes are provisioned; else None."""
        wanted = dict(self._demand(work, pools))
        if self._kind is None or not wanted:
            return work
        annotations: dict[str, str] = {}
        for (pool, nodes), class_name in wanted.items():
            name = _name(work, pool)
            known = self._requests.get((_namespace(work), name))
            if known is None:
                await self._ask(work, name, _Asked(pool, nodes, class_name))
            if known is None or known.outcome != "Provisioned":
                return None
            annotations = {CONSUME: name, CLASS: class_name}
        return self._annotate(work, annotations)

    async def forget(self, name: str, *, before: int | None = None) -> None:
        """Deletes the requests of a work; with `before`, only those of earlier attempts."""
        if self._kind is None:
            return
        for (namespace, own), request in list(self._requests.items()):
            if request.work == name and (before is None or request.attempt < before):
                await self._hands.remove_own(self._kind, own, namespace)
                for at in range(_TEMPLATE_MOST):
                    if not await self._hands.remove_own(TEMPLATES, f"{own}-{at}", namespace):
                        break

    def _demand(
        self, work: Work, pools: Iterable[ElasticPool]
    ) -> Iterator[tuple[tuple[str, int], str]]:
        classes = {pool.name: pool.provisioning_class for pool in pools if pool.provisioning_class}
        for pool_nodes in work.spec.provision:
            if pool_nodes.pool in classes:
                yield (pool_nodes.pool, pool_nodes.count), classes[pool_nodes.pool]

    async def _ask(self, work: Work, name: str, asked: _Asked) -> None:
        assert self._kind is not None, "asked only where it is served"
        await self.forget(work.metadata.name, before=work.spec.attempt)
        namespace = _namespace(work)
        pod_sets = []
        for at, (count, spec) in enumerate(self._pods(work)):
            template = {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": f"{name}-{at}", "namespace": namespace},
                "template": {"metadata": {}, "spec": spec},
            }
            await self._hands.make_own(TEMPLATES, self._mark(work, template))
            pod_sets.append({"count": count, "podTemplateRef": {"name": f"{name}-{at}"}})
        request = {
            "apiVersion": f"{GROUP}/{self._kind.version}",
            "kind": "ProvisioningRequest",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {_POOL: asked.pool, _NODES: str(asked.nodes)},
            },
            "spec": {"provisioningClassName": asked.class_name, "podSets": pod_sets},
        }
        await self._hands.make_own(self._kind, self._mark(work, request))

    def _pods(self, work: Work) -> Iterator[tuple[int, JsonObject]]:
        """The pods that will run first, grouped by pod set: how many, and the spec of one."""
        alike: dict[tuple[int, str], list[JsonObject]] = {}
        for position, manifest in enumerate(work.spec.manifests):
            kind = self._find_kind(manifest.object)
            if kind is None or kind.faults(manifest.object):
                continue
            for pod in due(kind, kind.release(manifest.object), (), now=self._clock.now()):
                alike.setdefault((position, pod.pod_set), []).append(pod.spec)
        for specs in list(alike.values())[:_TEMPLATE_MOST]:
            yield len(specs), specs[0]

    def _mark(self, work: Work, body: JsonObject) -> JsonObject:
        owner = marks.Owner(
            cluster=self._cluster, work=work.metadata.name, attempt=work.spec.attempt
        )
        return marks.with_marks(body, owner)

    def _annotate(self, work: Work, annotations: Mapping[str, str]) -> Work:
        """The same work, with pods annotated with the request that provisioned their nodes."""
        manifests = []
        for manifest in work.spec.manifests:
            kind = self._find_kind(manifest.object)
            body: Any = manifest.object
            if kind is not None and not kind.faults(body):
                change = decision.Change(annotations=annotations)
                sets = {pod_set.name: change for pod_set in kind.pod_sets(body)}
                body = decision.decorate(kind, body, sets)
            manifests.append(replace(manifest, object=body))
        return replace(work, spec=replace(work.spec, manifests=tuple(manifests)))


@dataclass(frozen=True, slots=True)
class _Asked:
    pool: str
    nodes: int
    class_name: str


def _namespace(work: Work) -> str:
    """The namespace of a work's pods; all its manifests are in one namespace."""
    return namespace_of(work.spec.manifests[0].object) if work.spec.manifests else "default"


def _name(work: Work, pool: str) -> str:
    text = f"{work.metadata.name}/{work.spec.attempt}/{pool}"
    return f"fairway-{sha256(text.encode()).hexdigest()[:16]}"
