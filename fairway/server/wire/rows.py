"""Workloads as rows: only what a list of them shows.

A page that lists 50,000 workloads needs a twentieth of their content. So lists and watches are
served in one more form, besides whole objects, tables and metadata:

    Accept: application/json;as=Rows;g=fairway.dev;v=v1alpha1

A list then has `columns` and `rows`, a watch one `row` per event; rights, selectors, pages,
versions and bookmarks are those of any list or watch. Empty values at the end of a row are omitted.

Columns are only ever added, at the end: a tab opened before the hub was upgraded keeps working.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from fairway.api.amounts import NANO, Quantity, QuantityError, is_accelerator
from fairway.api.submission import CREATED_BY
from fairway.loops import in_slices
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.interface import Listing, Stored, WatchEvent

KIND = "Rows"
GROUP_VERSION = "fairway.dev/v1alpha1"
COLUMNS = (
    "namespace",
    "name",
    "version",
    "created",
    "user",
    "queue",
    "phase",
    "reason",
    "kind",
    "mode",
    "priority",
    "gpus",  # requested, where the spec says it directly; null: unknown
    "wanted",  # pods
    "ready",  # pods, including those that succeeded
    "replicas",
    "places",  # [cluster, GPUs, pods, flavors] each
    "queued",
    "decided",
    "started",
    "finished",
    "running",
    "past",  # [clusters, from, to, reason] of each attempt that ran
    "reservation",  # [cluster, expected start, flavors]
    # Of a service: [surge, policy, whether it is native, pods ready, placements: [cluster, group,
    # replicas], those released: [the same, how, for which workload], traffic: [cluster, ready,
    # weight]].
    "service",
)
_SERVED = frozenset({("fairway.dev", "v1alpha1", "workloads")})
_NOTHING: tuple[object, ...] = (None, "", 0, [])
_encode = msgspec.json.Encoder().encode


def has_rows(resource: Resource) -> bool:
    return (resource.group, resource.version, resource.plural) in _SERVED


class _Part(msgspec.Struct, rename="camel", frozen=True):
    """The part of an object that a row needs."""


class _Metadata(_Part, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    annotations: dict[str, str] = {}


class _PodSet(_Part, frozen=True):
    count: int = 1
    requests: dict[str, Any] = {}
    flavors: dict[str, str] = {}


class _Source(_Part, frozen=True):
    kind: str = ""


class _Template(_Part, frozen=True):
    manifests: list[msgspec.Raw] = []


class _Tasks(_Part, frozen=True):
    count: int | None = None
    concurrency: int | None = None


class _Spec(_Part, frozen=True):
    queue: str = ""
    mode: str = "Gang"
    priority: int | None = None
    replicas: int | None = None
    pod_sets: list[_PodSet] = []
    source: _Source | None = None
    template: _Template | None = None
    tasks: _Tasks | None = None
    policy: str = ""


class _Placement(_Part, frozen=True):
    cluster: str = ""
    group: str = ""
    replicas: int | None = None
    leaves: str = ""
    gives_way_to: str = ""
    pod_sets: list[_PodSet] = []


class _Claim(_Part, frozen=True):
    decided_at: str | None = None
    ready_at: str | None = None
    placements: list[_Placement] = []


class _Attempt(_Part, frozen=True):
    clusters: list[str] = []
    started_at: str | None = None
    ended_at: str | None = None
    reason: str = ""


class _Reservation(_Part, frozen=True):
    cluster: str = ""
    starts_at: str | None = None
    flavors: list[str] = []


class _Weight(_Part, frozen=True):
    cluster: str = ""
    ready: int = 0
    weight: int = 0


class _Pods(_Part, frozen=True):
    wanted: int = 0
    ready: int = 0
    succeeded: int = 0


class _Status(_Part, frozen=True):
    phase: str = ""
    reason: str = ""
    queue: str = ""
    priority: int | None = None
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    claim: _Claim | None = None
    reservation: _Reservation | None = None
    history: list[_Attempt] = []
    pods: _Pods = _Pods()
    surge_replicas: int = 0
    releasing: list[_Placement] = []
    traffic: list[_Weight] = []


class _Workload(_Part, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


_read = msgspec.json.Decoder(_Workload).decode
_read_kind = msgspec.json.Decoder(_Kind).decode
_read_any = msgspec.json.Decoder().decode
_NO_CLAIM = _Claim()


async def many(listing: Listing, metadata: JsonObject) -> bytes:
    """A list as rows, decoded one by one in slices, so that other requests run in between."""
    head = _encode(
        {"kind": KIND, "apiVersion": GROUP_VERSION, "metadata": metadata, "columns": COLUMNS}
    )
    rows = b",".join([_encode(row_of(stored)) async for stored in in_slices(listing.items)])
    return b"".join((head[:-1], b',"rows":[', rows, b"]}"))


def one(event: WatchEvent) -> bytes:
    """The object of one watch event."""
    if event.type == "BOOKMARK":
        return event.stored.raw
    row = row_of(event.stored)
    metadata = {"namespace": row[0], "name": row[1], "resourceVersion": event.version}
    return _encode({"kind": "Row", "apiVersion": GROUP_VERSION, "metadata": metadata, "row": row})


def row_of(stored: Stored) -> list[Any]:
    """One workload, cell by cell in the order of the columns."""
    body = _read(stored.raw)
    metadata, spec, status = body.metadata, body.spec, body.status
    claim = status.claim or _NO_CLAIM
    places = [_place(placement) for placement in claim.placements]
    priority = status.priority if status.priority is not None else spec.priority
    row = [
        metadata.namespace,
        metadata.name,
        metadata.resource_version,
        metadata.creation_timestamp,
        metadata.annotations.get(CREATED_BY, ""),
        status.queue or spec.queue,
        status.phase or "Waiting",
        status.reason,
        _kind(spec),
        spec.mode,
        priority or 0,
        None if places else _wanted(spec),
        status.pods.wanted,
        status.pods.ready + status.pods.succeeded,
        spec.replicas,
        places,
        status.queued_at,
        claim.decided_at,
        status.started_at,
        status.finished_at,
        claim.ready_at,
        _past(status.history),
        _reserve(status.reservation),
        _service(spec, status, claim) if spec.mode == "Divided" else None,
    ]
    while row[-1] in _NOTHING:
        row.pop()
    return row


def _place(placement: _Placement) -> list[Any]:
    gpus: float = 0
    pods = 0
    flavors: dict[str, None] = {}
    for pod_set in placement.pod_sets:
        gpus += pod_set.count * _devices(pod_set.requests)
        pods += pod_set.count
        flavors |= dict.fromkeys(pod_set.flavors.values())
    return [placement.cluster, gpus, pods, "+".join(flavors)]


def _past(history: list[_Attempt]) -> list[Any]:
    return [
        [attempt.clusters, attempt.started_at, attempt.ended_at, attempt.reason]
        for attempt in history
        if attempt.started_at and attempt.ended_at
    ]


def _reserve(reservation: _Reservation | None) -> list[Any] | None:
    return (
        [reservation.cluster, reservation.starts_at, reservation.flavors]
        if reservation is not None
        else None
    )


def _service(spec: _Spec, status: _Status, claim: _Claim) -> list[Any]:
    return [
        status.surge_replicas,
        spec.policy,
        spec.source is not None,
        status.pods.ready,
        [
            [placement.cluster, placement.group, placement.replicas or 0]
            for placement in claim.placements
        ],
        [
            [
                placement.cluster,
                placement.group,
                placement.replicas or 0,
                placement.leaves or "Now",
                placement.gives_way_to,
            ]
            for placement in status.releasing
        ],
        [[weight.cluster, weight.ready, weight.weight] for weight in status.traffic],
    ]


def _kind(spec: _Spec) -> str:
    """The kind that was submitted."""
    if spec.source is not None and spec.source.kind:
        return spec.source.kind
    for manifest in islice(spec.template.manifests if spec.template else (), 1):
        try:
            return _read_kind(manifest).kind or "Workload"
        except msgspec.ValidationError:
            break
    return "Workload"


def _wanted(spec: _Spec) -> float | None:
    """The accelerators requested before any decision, where the spec says it directly."""
    times = spec.replicas if spec.replicas is not None else 1
    if spec.pod_sets:
        return times * sum(pod_set.count * _devices(pod_set.requests) for pod_set in spec.pod_sets)
    if spec.template is None or not spec.template.manifests:
        return None
    manifest = _get(_read_any(spec.template.manifests[0]), "spec")
    containers = _get(manifest, "template", "spec", "containers")
    if not isinstance(containers, list):
        return None
    each = sum(_devices(_requests(_get(container, "resources"))) for container in containers)
    tasks = spec.tasks or _Tasks()
    limits = [number for number in (tasks.concurrency, tasks.count) if number is not None]
    if limits:
        return times * min(limits) * each
    for key in ("parallelism", "replicas"):
        if isinstance(count := _get(manifest, key), int):
            return times * count * each
    return times * each


def _requests(resources: object) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    for key in ("limits", "requests"):
        given = _get(resources, key)
        if isinstance(given, dict):
            requests |= given
    return requests


def _get(value: object, *path: str) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _devices(requests: dict[str, Any]) -> float:
    """The number of accelerators, counted as in queues and clusters."""
    result: float = 0
    for resource, quantity in requests.items():
        if is_accelerator(resource):
            result += _number(quantity if isinstance(quantity, int) else str(quantity))
    return result


@lru_cache(maxsize=4_096)
def _number(quantity: int | str) -> float:
    if isinstance(quantity, int):
        return quantity
    try:
        amount = Quantity.of(quantity).nanos / NANO
    except QuantityError:
        return 0
    return int(amount) if amount.is_integer() else amount
