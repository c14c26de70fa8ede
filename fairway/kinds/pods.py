"""What a pod template requests: resources, nodes, tolerations, topology; and its environment.

Requests are computed as Kubernetes does. Containers run together and add up. An init container runs
alone, beside the sidecars (init containers that keep running) started before it. The larger of both
counts; pod-level requests replace it, and the overhead is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairway.api.amounts import Quantity, QuantityError, family_of
from fairway.api.meta import JsonObject, NodeRequirement, NodeTerm, Toleration
from fairway.api.podset import PodSet, TopologyRequest
from fairway.kinds.plain import annotation, child, maps_at, number, text, texts

REQUIRED_TOPOLOGY = ("fairway.dev/required-topology", "kueue.x-k8s.io/podset-required-topology")
PREFERRED_TOPOLOGY = ("fairway.dev/preferred-topology", "kueue.x-k8s.io/podset-preferred-topology")
SLICE_TOPOLOGY = ("fairway.dev/slice-topology", "kueue.x-k8s.io/podset-slice-required-topology")
SLICE_SIZE = ("fairway.dev/slice-size", "kueue.x-k8s.io/podset-slice-size")
POD_SET_GROUP = ("fairway.dev/pod-set-group", "kueue.x-k8s.io/podset-group-name")
HOST_NAME_LABEL = "kubernetes.io/hostname"
# Set on every template that is sent to a cluster; if it is already set, it gives the name.
POD_SET_LABEL = "fairway.dev/pod-set"

# Amounts by resource, in nano-units. Plain maps for speed: this runs per workload at a restart.
Nanos = dict[str, int]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
# Resources that pod-level requests may set; all others are set by containers only.
_WHOLE_POD = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def pod_set(
    name: str,
    template: JsonObject,
    count: int,
    *,
    least_count: int | None = None,
    member_size: int | None = None,
    completions: int | None = None,
) -> PodSet:
    """The pod set of a template."""
    spec = child(template, "spec")
    return PodSet(
        name=name,
        count=count,
        least_count=least_count,
        requests=pod_requests(spec),
        node_selector=texts(spec, "nodeSelector"),
        node_affinity=node_terms(spec),
        tolerations=tolerations(spec),
        topology=topology(template),
        member_size=member_size,
        completions=completions,
        group=annotation(template, *POD_SET_GROUP),
    )


def pod_set_name(template: JsonObject, default: str) -> str:
    """The name of a template's pod set, for kinds that do not name it."""
    return text(template, "metadata", "labels", POD_SET_LABEL) or default


def pod_requests(spec: Mapping[str, Any]) -> dict[str, Quantity]:
    """The resources that a pod requests."""
    total = add_up(
        map(requests_of, maps_at(spec, "containers")),
        [
            (requests_of(container), container.get("restartPolicy") == "Always")
            for container in (maps_at(spec, "initContainers") if spec.get("initContainers") else ())
        ],
    )
    if spec.get("resources"):
        total.update(of_whole_pod(child(spec, "resources"), total))
    if spec.get("overhead"):
        _add(total, nanos_of(child(spec, "overhead")))
    return {name: Quantity(total[name], family_of(name)) for name in sorted(total) if total[name]}


def add_up(running: Iterable[Nanos], starting: Sequence[tuple[Nanos, bool]]) -> Nanos:
    """What containers need together; of those that start the pod, whether each keeps running."""
    total: Nanos = {}
    for amounts in running:
        _add(total, amounts)
    if not starting:
        return total
    most: Nanos = {}
    sidecars: Nanos = {}
    for amounts, keeps_running in starting:
        needed = dict(sidecars)
        _add(needed, amounts)
        if keeps_running:
            sidecars = needed
        _raise(most, needed)
    _add(total, sidecars)
    _raise(total, most)
    return total


def of_whole_pod(resources: JsonObject, total: Nanos) -> Nanos:
    """Pod-level requests; a limit counts only if no container requests the resource."""
    limits = nanos_of(child(resources, "limits"))
    whole = {name: nanos for name, nanos in limits.items() if name not in total}
    whole.update(nanos_of(child(resources, "requests")))
    return {
        name: nanos
        for name, nanos in whole.items()
        if name in _WHOLE_POD or name.startswith(_HUGE_PAGES)
    }


def requests_of(container: JsonObject) -> Nanos:
    """Requests of a container; a limit without a request is the request."""
    resources = child(container, "resources")
    needed = nanos_of(child(resources, "limits"))
    needed.update(nanos_of(child(resources, "requests")))
    return needed


def nanos_of(quantities: JsonObject) -> Nanos:
    """Amounts that can be parsed; `faults` reports the rest."""
    nanos = {}
    for name, value in quantities.items():
        try:
            nanos[name] = Quantity.of(value).nanos
        except QuantityError:
            continue
    return nanos


def _add(total: Nanos, more: Nanos) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise(total: Nanos, least: Nanos) -> None:
    for name, nanos in least.items():
        if nanos > total.get(name, 0):
            total[name] = nanos


def node_terms(spec: JsonObject) -> tuple[NodeTerm, ...]:
    """The required node affinity; a match on a node's name becomes one on its hostname label."""
    if not spec.get("affinity"):
        return ()
    required = child(
        spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return tuple(
        NodeTerm(
            match_expressions=(
                *(_requirement(expression) for expression in maps_at(term, "matchExpressions")),
                *(
                    msgspec.structs.replace(_requirement(expression), key=HOST_NAME_LABEL)
                    for expression in maps_at(term, "matchFields")
                ),
            )
        )
        for term in maps_at(required, "nodeSelectorTerms")
    )


def _requirement(plain: JsonObject) -> NodeRequirement:
    operator = plain.get("operator")
    values = plain.get("values")
    return NodeRequirement(
        key=text(plain, "key"),
        operator=operator if operator in _OPERATORS else "Exists",
        values=tuple(str(item) for item in values) if isinstance(values, list) else (),
    )


def tolerations(spec: JsonObject) -> tuple[Toleration, ...]:
    if not spec.get("tolerations"):
        return ()
    return tuple(
        Toleration(
            key=text(toleration, "key"),
            operator="Exists" if toleration.get("operator") == "Exists" else "Equal",
            value=text(toleration, "value"),
            effect=toleration.get("effect") or None,
            toleration_seconds=number(toleration, "tolerationSeconds")
            if toleration.get("tolerationSeconds") is not None
            else None,
        )
        for toleration in maps_at(spec, "tolerations")
    )


def topology(template: JsonObject) -> TopologyRequest | None:
    """The topology request of a template, from its annotations."""
    if not child(template, "metadata", "annotations"):
        return None
    size = annotation(template, *SLICE_SIZE)
    level = annotation(template, *SLICE_TOPOLOGY)
    has_slices = bool(level) and size.isdecimal() and int(size) > 0
    required = annotation(template, *REQUIRED_TOPOLOGY)
    request = TopologyRequest(
        required=required,
        preferred="" if required else annotation(template, *PREFERRED_TOPOLOGY),
        slice_level=level if has_slices else "",
        slice_size=int(size) if has_slices else None,
    )
    return request if request != TopologyRequest() else None


def with_environment(
    spec: JsonObject, variables: Mapping[str, str], *, are_first: bool = False
) -> JsonObject:
    """A copy of a pod's spec with these variables in its containers; variables already set stay.

    A variable can be used by later ones, so some controllers put theirs first. All but the
    variables is shared with the input.
    """
    made = dict(spec)
    for field in ("containers", "initContainers"):
        if field in spec:
            made[field] = [_give(entry, variables, are_first) for entry in maps_at(spec, field)]
    return made


def _give(container: JsonObject, variables: Mapping[str, str], are_first: bool) -> JsonObject:
    own = maps_at(container, "env")
    names = {text(entry, "name") for entry in own}
    added = [
        {"name": name, "value": value} for name, value in variables.items() if name not in names
    ]
    return {**container, "env": [*added, *own] if are_first else [*own, *added]}


def template_faults(template: JsonObject, path: str) -> list[str]:
    """Why no pod can be made from a template."""
    containers = maps_at(template, "spec", "containers")
    if not containers:
        return [f"{path}.spec.containers: a pod needs at least one container"]
    faults = []
    for field in ("containers", "initContainers"):
        for index, container in enumerate(maps_at(template, "spec", field)):
            place = f"{path}.spec.{field}[{index}].resources"
            faults += _quantity_faults(child(container, "resources"), place)
    faults += _quantity_faults(child(template, "spec", "resources"), f"{path}.spec.resources")
    return faults


def _quantity_faults(resources: JsonObject, path: str) -> list[str]:
    faults = []
    for field in ("requests", "limits"):
        for name, value in child(resources, field).items():
            try:
                Quantity.of(value)
            except QuantityError as fault:
                faults.append(f"{path}.{field}[{name}]: {fault}")
    return faults
