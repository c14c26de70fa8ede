"""What an autoscaler scales: a Workload, or the native object that a Workload stands for.

The count of a native object is written to the object, where its kind keeps it; the workload
follows. The count of any other Workload is its `spec.replicas`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.api import codec
from fairway.api.autoscaler import ScaleTarget
from fairway.api.errors import NotFound
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.names import native_workload_name, work_name
from fairway.api.workload import Workload
from fairway.controllers.cache import Cache
from fairway.kinds.interface import Kind
from fairway.kinds.native import derived_pod_sets
from fairway.kinds.registry import KnownKinds
from fairway.schema.patches import difference
from fairway.store.interface import Patch, ResourceKey, Store, Write
from fairway.store.keys import WORKLOADS, resource_of

_WRITE = Write(user="system:fairway", manager="fairway-autoscaling")


class NotScalable(Exception):
    """Why a target has no count that could be set; a code and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A scaled target that has replicas."""

    workload: Workload
    target: JsonObject  # the object whose count is set
    resource: ResourceKey
    kind: Kind | None  # of a native object
    wanted: int  # replicas that are asked for
    object_name: str  # from which the names of its pods are made
    pods_per_replica: int

    @property
    def namespace(self) -> str:
        return self.workload.metadata.namespace

    @property
    def work(self) -> str:
        return work_name(self.namespace, self.workload.metadata.name)

    @property
    def placed(self) -> int:
        return self.workload.status.replicas

    @property
    def manifests(self) -> tuple[JsonObject, ...]:
        """The objects that it makes in clusters."""
        template = self.workload.spec.template
        return template.manifests if template is not None else ()


def workload_of(target: ScaleTarget) -> str:
    """The name of the workload of a scale target."""
    if target.kind == "Workload" and target.api_version == API_VERSION:
        return target.name
    return native_workload_name(target.kind, target.name)


async def service_of(
    target: ScaleTarget, namespace: str, *, store: Store, cache: Cache, kinds: KnownKinds
) -> Service:
    """The service of a target; NotScalable if it has no count."""
    workload = cache.get(Workload, workload_of(target), namespace)
    if workload is None:
        raise NotScalable("TargetNotFound", f"there is no workload of {target.kind} {target.name}")
    if workload.metadata.deletion_timestamp is not None:
        raise NotScalable("TargetNotFound", f"{target.kind} {target.name} is being deleted")
    if workload.spec.mode != "Divided":
        raise NotScalable(
            "TargetNotDivided",
            f"{target.kind} {target.name} is of mode {workload.spec.mode}: only Divided workloads "
            "have replicas",
        )
    pod_sets = workload.spec.pod_sets or derived_pod_sets(workload, kinds)
    shared: dict[str, Any] = {
        "workload": workload,
        "pods_per_replica": max(1, sum(pod_set.count for pod_set in pod_sets)),
    }
    source = workload.spec.source
    if source is None:
        metadata = codec.to_plain(workload.metadata)
        result = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata}
        manifests = workload.spec.template.manifests if workload.spec.template else ()
        named = manifests[0]["metadata"]["name"] if manifests else workload.metadata.name
        wanted = workload.spec.replicas
        return Service(
            **shared,
            target=result,
            resource=WORKLOADS,
            kind=None,
            wanted=1 if wanted is None else wanted,
            object_name=str(named),
        )
    resource = resource_of(source.api_version, source.kind)
    try:
        result = (await store.get(resource, source.name, namespace)).object()
    except NotFound as fault:
        raise NotScalable("TargetNotFound", str(fault)) from fault
    result = {**result, "apiVersion": source.api_version, "kind": source.kind}
    kind = kinds.of(result)
    count = kind.replicas(result) if kind is not None else None
    if kind is None or count is None:
        raise NotScalable("TargetNotDivided", f"objects of kind {source.kind} have no replicas")
    return Service(
        **shared,
        target=result,
        resource=resource,
        kind=kind,
        wanted=count,
        object_name=source.name,
    )


async def set_replicas(service: Service, replicas: int, *, store: Store) -> None:
    """Sets the count on the object as it was read; Conflict if it changed meanwhile."""
    if service.kind is None:
        change: JsonObject = {"spec": {"replicas": replicas}}
    else:
        other = service.kind.with_counts(service.target, {"replicas": replicas})
        change = difference(service.target, other)
    await change_object(service, change, store=store)


async def change_object(service: Service, change: JsonObject, *, store: Store) -> None:
    metadata = service.target["metadata"]
    seen = {"resourceVersion": metadata["resourceVersion"]}
    body = {**change, "metadata": {**change.get("metadata", {}), **seen}}
    await store.patch(
        service.resource,
        metadata["name"],
        Patch(type="merge", body=body),
        namespace=service.namespace,
        write=_WRITE,
    )
