"""Writes the decision into manifests, so that a cluster's own scheduler can't undo it.

Every pod template gets labels for the work, the attempt and the pod set; an agent recognises its
pods by them. Priorities are left alone: they belong to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from fairway.api.amounts import Quantity
from fairway.api.codec import to_plain
from fairway.api.meta import JsonObject, NodeTerm, Toleration
from fairway.kinds.interface import Kind
from fairway.kinds.plain import child, copy_of, maps_at
from fairway.kinds.pods import POD_SET_LABEL

WORK = "fairway.dev/work"
ATTEMPT = "fairway.dev/attempt"
POD_SET = POD_SET_LABEL
REVISION = "fairway.dev/revision"
PART = "fairway.dev/part"  # of pods that a second object runs beside the first
_LABEL_MOST = 63
_DIGEST_LENGTH = 10
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Changes to the pods of one set; empty fields change nothing."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: tuple[NodeTerm, ...] = ()  # ORed terms, in addition to the existing requirements
    tolerations: tuple[Toleration, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # overrides existing values
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, Quantity] = field(default_factory=dict)  # per pod; 0 removes it
    image: str = ""  # of the containers that are not sidecars
    scheduler_name: str = ""


def decorate(kind: Kind, manifest: JsonObject, changes: Mapping[str, Change]) -> JsonObject:
    """A copy of a manifest with each pod set's changes applied to its pod templates."""
    # `with_counts` creates templates that a user may leave out.
    decorated = copy_of(kind.with_counts(manifest, {}))
    for name, template in kind.templates(decorated).items():
        change = changes.get(pod_set_of(name))
        if change is not None:
            _change(template, change)
    return decorated


def with_pod_labels(kind: Kind, manifest: JsonObject, *, work: str, attempt: int) -> JsonObject:
    """A copy of a manifest whose pods are labelled by work, attempt and pod set."""
    own = {WORK: work_label(work), ATTEMPT: str(attempt)}
    names = {pod_set.name for pod_set in kind.pod_sets(manifest)}
    return decorate(kind, manifest, {name: Change(labels={**own, POD_SET: name}) for name in names})


def work_label(work: str) -> str:
    """The name of a work as a label value, which has a shorter length limit than names."""
    if len(work) <= _LABEL_MOST:
        return work
    digest = sha256(work.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{work[: _LABEL_MOST - _DIGEST_LENGTH - 1].rstrip('-.')}-{digest}"


def pod_set_of(template: str) -> str:
    """The pod set of a template; further templates of the same set are named NAME/2 and so on."""
    return template.partition("/")[0]


def make_map(value: JsonObject, *keys: str) -> JsonObject:
    """The map at a path of keys, created if missing; changes `value` in place."""
    for key in keys:
        known = value.get(key)
        if not isinstance(known, dict):
            known = value[key] = {}
        value = known
    return value


def _change(template: JsonObject, change: Change) -> None:
    spec = make_map(template, "spec")
    for field_name, added in (("labels", change.labels), ("annotations", change.annotations)):
        if added:
            make_map(template, "metadata", field_name).update(added)
    if change.node_selector:
        make_map(spec, "nodeSelector").update(change.node_selector)
    if change.node_affinity:
        require(spec, change.node_affinity)
    add_tolerations(spec, change.tolerations)
    if change.scheduler_name:
        spec["schedulerName"] = change.scheduler_name
    containers = maps_at(spec, "containers")
    for container in (*containers, *maps_at(spec, "initContainers")):
        set_environment(container, change.environment)
    for container in containers:
        if change.image:
            container["image"] = change.image
    if change.requests and containers:
        change_requests(containers, change.requests)


def require(spec: JsonObject, terms: tuple[NodeTerm, ...]) -> None:
    """Requires one of these terms, in addition to a pod's existing node requirements.

    Terms are ORed, so each existing term is combined with each new one.
    """
    required = make_map(spec, "affinity", "nodeAffinity", _REQUIRED)
    added = [[to_plain(expression) for expression in term.match_expressions] for term in terms]
    old = maps_at(required, "nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchExpressions": [*maps_at(term, "matchExpressions"), *copy_of(tests)]}
        for term in old
        for tests in added
    ]


def add_tolerations(spec: JsonObject, added: tuple[Toleration, ...]) -> None:
    """Adds tolerations that a pod does not have yet."""
    own = maps_at(spec, "tolerations")
    new = [
        entry
        for entry in (plain_toleration(toleration) for toleration in added)
        if entry not in own
    ]
    if new:
        spec["tolerations"] = [*own, *new]


def plain_toleration(toleration: Toleration) -> JsonObject:
    """A toleration in its wire form, with an explicit operator."""
    return {"operator": toleration.operator, **to_plain(toleration)}


def set_environment(
    container: JsonObject, variables: Mapping[str, str], *, overrides: bool = True
) -> None:
    """Sets variables on a container; with `overrides` false, the container's own values win."""
    if not variables:
        return
    own = maps_at(container, "env")
    names = {entry.get("name") for entry in own}
    taken = {name for name in variables if not overrides and name in names}
    kept = [
        entry for entry in own if entry.get("name") not in variables or entry.get("name") in taken
    ]
    added = [
        {"name": name, "value": variable}
        for name, variable in variables.items()
        if name not in taken
    ]
    container["env"] = [*kept, *added]


def change_requests(containers: list[JsonObject], requests: Mapping[str, Quantity]) -> None:
    """Changes the requests for some resources, in the containers that already request them.

    If several containers do, the first gets the whole amount; if none does, the first container.
    """
    for name, amount in requests.items():
        asking = [container for container in containers if _asks(container, name)] or containers[:1]
        for position, container in enumerate(asking):
            resources = make_map(container, "resources")
            fields = [item for item in ("requests", "limits") if name in child(resources, item)]
            for field_name in fields:
                del resources[field_name][name]
            if position == 0 and amount:
                for field_name in fields or ("requests", "limits"):
                    make_map(resources, field_name)[name] = str(amount)


def _asks(container: JsonObject, resource: str) -> bool:
    resources = child(container, "resources")
    return any(resource in child(resources, item) for item in ("requests", "limits"))
