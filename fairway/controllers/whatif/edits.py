"""The changes of a what-if, and the objects with them made.

The same document is the body of the question, what the page shows to be copied, and the file of
`fairway plan --if FILE`; so all three plan on the same objects.

    lose: [cloud-east]                                    clusters that are gone, with all that ran
    quota: [{queue: research, flavor: h100, resource: nvidia.com/gpu, nominal: 8}]
    clusters: [{name: new, copyOf: cloud-west}]           with the nodes and labels of another,
    clusters: [{name: new, labels: {}, nodes: [{flavor: h100, count: 4, shape: {}}]}]   or its own
    apply: [{kind: Workload, ...}]                        objects, in place of those of their name
    remove: [{kind: Workload, namespace: team, name: a}]
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from fairway.api.discretion import MayLook
from fairway.api.documents import ManifestError, read_documents
from fairway.api.errors import BadRequest, Forbidden
from fairway.api.meta import GROUP
from fairway.clock import timestamp

_NAMESPACED = ("Workload", "PlacementPolicy")
_SEEN_IN_REPORTS = ("works", "states", "removedWorks")
_NODES_MOST = 10_000

JsonObject = dict[str, Any]
Identity = tuple[str, str, str]  # kind, namespace, name


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    pass


class Named(_Part, frozen=True, kw_only=True):
    """An object that is removed."""

    kind: str
    name: str
    namespace: str = ""


class Quota(_Part, frozen=True, kw_only=True):
    """A queue's quota of one flavor and resource."""

    queue: str
    flavor: str
    resource: str
    nominal: str | int


class Nodes(_Part, frozen=True, kw_only=True):
    """Nodes of one flavor that a new cluster has."""

    flavor: str
    count: int
    shape: dict[str, str | int]


class NewCluster(_Part, frozen=True, kw_only=True):
    """A cluster that does not exist: with the nodes of another, or nodes of its own."""

    name: str
    copy_of: str = ""
    labels: dict[str, str] = {}
    nodes: tuple[Nodes, ...] = ()
    price_factor: str | int | float = 1


class Change(_Part, frozen=True, kw_only=True):
    """What is different in the copy."""

    manifests: str = ""  # YAML, added or in place of objects of the same name
    apply: tuple[JsonObject, ...] = ()  # the same, as JSON
    remove: tuple[Named, ...] = ()
    lose: tuple[str, ...] = ()  # clusters that are gone, with all that ran there
    quota: tuple[Quota, ...] = ()
    clusters: tuple[NewCluster, ...] = ()


def read_change(plain: object) -> Change:
    try:
        return msgspec.convert(plain, Change)
    except msgspec.ValidationError as fault:
        raise BadRequest(f"the change cannot be read: {fault}") from fault


def confirm_seen(change: Change, may: MayLook) -> None:
    """Refuses changes in a namespace into which the caller may not look.

    Finding an object by its name would reveal that it exists.
    """
    put = (_identity(entry)[1] for entry in put_in(change))
    removed = (
        named.namespace or ("default" if named.kind in _NAMESPACED else "")
        for named in change.remove
    )
    for namespace in (*put, *removed):
        if namespace and not may(namespace):
            raise Forbidden(
                f"you may not look into the namespace {namespace}, so nothing in it can be tried",
                details={},
            )


def apply_change(objects: Iterable[JsonObject], change: Change, now: float) -> list[JsonObject]:
    """The objects with the change made, as if it had been written into a dumped snapshot."""
    objects = list(objects)
    known = {_identity(object_): object_ for object_ in objects}
    put = [_submit(entry, known, now) for entry in put_in(change)]
    replaced = {_identity(entry) for entry in put}
    removed = {_find(named, known) for named in change.remove}
    _confirm_known(known, change)
    lost = frozenset(change.lose)
    kept = [
        _without(object_, lost)
        for object_ in objects
        if _identity(object_) not in replaced | removed and not _is_of(object_, lost)
    ]
    result = [*kept, *put]
    for number, quota in enumerate(change.quota):
        result = list(_with_quota(result, quota, f"quota[{number}]"))
    for number, cluster in enumerate(change.clusters):
        # A copy is of the cluster as it was before anything was lost.
        result += _new_cluster(objects, result, cluster, f"clusters[{number}]")
    return result


def _confirm_known(known: Container[Identity], change: Change) -> None:
    for number, name in enumerate(change.lose):
        if ("Cluster", "", name) not in known:
            raise BadRequest(f"lose[{number}]: there is no cluster {name}")
    for number, named in enumerate(change.remove):
        if _find(named, known) not in known:
            where = f"{named.namespace}/{named.name}" if named.namespace else named.name
            raise BadRequest(f"remove[{number}]: there is no {named.kind} {where}")


def _find(named: Named, known: Container[Identity]) -> Identity:
    """The object that a name means; without a namespace, `default` for kinds that have one."""
    plain = (named.kind, named.namespace, named.name)
    is_said = named.namespace or plain in known
    return plain if is_said else (named.kind, "default", named.name)


def put_in(change: Change) -> Iterator[JsonObject]:
    """The objects that a change adds, or puts in place of others."""
    for entry in (*change.apply, *_read(change.manifests)):
        if not isinstance(entry.get("metadata"), dict):
            raise BadRequest(f"a {entry.get('kind') or 'manifest'} in the change has no metadata")
        yield entry


def places_of(change: Change) -> Iterator[tuple[str, JsonObject]]:
    """The objects of `put_in`, each with its place in the change."""
    for number, entry in enumerate(put_in(change)):
        is_plain = number < len(change.apply)
        yield f"apply[{number}]" if is_plain else f"manifests[{number - len(change.apply)}]", entry


def _read(text: str) -> list[JsonObject]:
    if not text.strip():
        return []
    try:
        return [dict(document.value) for document in read_documents(text, "manifests")]
    except ManifestError as fault:
        raise BadRequest(fault.message) from fault


def _submit(plain: JsonObject, known: Mapping[Identity, JsonObject], now: float) -> JsonObject:
    """Dates an object that is put in: now, or the age of the object that it replaces."""
    before = known.get(_identity(plain))
    born = before["metadata"].get("creationTimestamp") if before else timestamp(now)
    return {**plain, "metadata": {"creationTimestamp": born, **plain["metadata"]}}


def _identity(plain: JsonObject) -> Identity:
    kind, metadata = str(plain.get("kind", "")), plain.get("metadata") or {}
    is_named = kind in _NAMESPACED or not str(plain.get("apiVersion", "")).startswith(GROUP)
    namespace = str(metadata.get("namespace") or "default") if is_named else ""
    return kind, namespace, str(metadata.get("name", ""))


# A cluster that is lost.


def _is_of(plain: JsonObject, lost: frozenset[str]) -> bool:
    match plain.get("kind"):
        case "Cluster":
            return plain["metadata"]["name"] in lost
        case "ClusterReport":
            return plain["spec"]["cluster"] in lost
        case _:
            return False


def _without(plain: JsonObject, lost: frozenset[str]) -> JsonObject:
    """A workload without a lost cluster: it waits; replicas and tasks elsewhere go on."""
    status = plain.get("status") if plain.get("kind") == "Workload" else None
    if not lost or not status:
        return plain
    leaving = [item for item in status.get("releasing") or () if item.get("cluster") not in lost]
    if len(leaving) != len(status.get("releasing") or ()):
        status = {**status, "releasing": leaving}
    if (status.get("reservation") or {}).get("cluster") in lost:
        status = {key: value for key, value in status.items() if key != "reservation"}
    claim = status.get("claim") or {}
    placements = claim.get("placements") or ()
    if not any(placement.get("cluster") in lost for placement in placements):
        return {**plain, "status": status}
    left = [placement for placement in placements if placement.get("cluster") not in lost]
    if left and plain["spec"].get("mode", "Gang") != "Gang":
        return {**plain, "status": status | {"claim": {**claim, "placements": left}}}
    rest = {key: value for key, value in status.items() if key != "claim"}
    return {**plain, "status": rest | {"phase": "Waiting"}}


# Another quota.


def _with_quota(objects: list[JsonObject], quota: Quota, path: str) -> Iterator[JsonObject]:
    if ("Queue", "", quota.queue) not in {_identity(object_) for object_ in objects}:
        raise BadRequest(f"{path}.queue: there is no queue {quota.queue}")
    for object_ in objects:
        if object_.get("kind") == "Queue" and object_["metadata"]["name"] == quota.queue:
            queue = deepcopy(object_)
            _set_quota(queue, quota, path)
            yield queue
        else:
            yield object_


def _set_quota(queue: JsonObject, quota: Quota, path: str) -> None:
    """Sets the quota; a flavor or resource that the queue's groups allow is added to them."""
    groups = queue.setdefault("spec", {}).setdefault("resourceGroups", [])
    group = next((group for group in groups if quota.resource in group.get("resources", ())), None)
    if group is None:
        raise BadRequest(f"{path}.resource: queue {quota.queue} has no group with {quota.resource}")
    flavors = group.setdefault("flavors", [])
    flavor = next((flavor for flavor in flavors if flavor["name"] == quota.flavor), None)
    if flavor is None:
        flavor = {"name": quota.flavor}
        flavors.append(flavor)
    quotas = flavor.setdefault("quotas", [])
    held = next((other for other in quotas if other["resource"] == quota.resource), None)
    if held is None:
        held = {"resource": quota.resource}
        quotas.append(held)
    held["nominal"] = quota.nominal


# A new cluster.


def _new_cluster(
    before: list[JsonObject], objects: list[JsonObject], wanted: NewCluster, path: str
) -> list[JsonObject]:
    if not wanted.name:
        raise BadRequest(f"{path}.name: a cluster needs a name")
    if ("Cluster", "", wanted.name) in {_identity(object_) for object_ in objects}:
        raise BadRequest(f"{path}.name: there is a cluster {wanted.name} already")
    if bool(wanted.copy_of) == bool(wanted.nodes):
        raise BadRequest(f"{path}: a new cluster needs either copyOf or nodes")
    if wanted.copy_of:
        return _copy(before, wanted, path)
    pools = [_pool(objects, node, f"{path}.nodes[{at}]") for at, node in enumerate(wanted.nodes)]
    spec = {"simulated": {"nodePools": pools}, "priceFactor": str(wanted.price_factor)}
    return [
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": wanted.name, "labels": dict(wanted.labels)},
            "spec": spec,
        }
    ]


def _pool(objects: list[JsonObject], wanted: Nodes, path: str) -> JsonObject:
    if not 0 < wanted.count <= _NODES_MOST:
        raise BadRequest(f"{path}.count: expected 1 to {_NODES_MOST} nodes, got {wanted.count}")
    for object_ in objects:
        if object_.get("kind") == "Flavor" and object_["metadata"]["name"] == wanted.flavor:
            spec = object_.get("spec") or {}
            return {
                "name": wanted.flavor,
                "count": wanted.count,
                "shape": {"pods": 110, **wanted.shape},
                "labels": dict(spec.get("nodeLabels") or {}),
                "taints": list(spec.get("nodeTaints") or ()),
            }
    raise BadRequest(f"{path}.flavor: there is no flavor {wanted.flavor}")


def _copy(objects: list[JsonObject], wanted: NewCluster, path: str) -> list[JsonObject]:
    """A cluster with its nodes, without any of our pods."""
    result = []
    for object_ in objects:
        if object_.get("kind") == "Cluster" and object_["metadata"]["name"] == wanted.copy_of:
            labels = {**(object_["metadata"].get("labels") or {}), **wanted.labels}
            spec = {**object_["spec"], "priceFactor": str(wanted.price_factor)}
            metadata = {"name": wanted.name, "labels": labels}
            result.append({**object_, "metadata": metadata, "spec": spec})
        elif (
            object_.get("kind") == "ClusterReport" and object_["spec"]["cluster"] == wanted.copy_of
        ):
            seen = {
                key: part for key, part in object_["spec"].items() if key not in _SEEN_IN_REPORTS
            }
            name = f"{wanted.name}-{object_['metadata']['name']}"
            result.append(
                {**object_, "metadata": {"name": name}, "spec": {**seen, "cluster": wanted.name}}
            )
    if not any(entry["kind"] == "Cluster" for entry in result):
        raise BadRequest(f"{path}.copyOf: there is no cluster {wanted.copy_of}")
    return result
