"""What a namespace's LimitRanges and ResourceQuotas make of a pod, as Kubernetes admits pods.

First a LimitRange gives containers the requests and limits that they leave out, then all bounds are
checked, then each ResourceQuota that counts the pod takes its part. A quota of cpu or memory
refuses a pod with a container that states none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.api.amounts import NANO, Quantity, family_of
from fairway.api.meta import JsonObject, ResourceList
from fairway.api.namespaces import NamespaceLimit, NamespaceQuota, NamespaceRules, QuotaScope
from fairway.kinds.plain import child, maps_at, text
from fairway.kinds.pods import Nanos, add_up, nanos_of, of_whole_pod, requests_of

PODS = ("pods", "count/pods")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
# Resources of a quota that every container must state: where it is stated, and as what.
_STATED = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}
_AFFINITIES = ("podAffinity", "podAntiAffinity")
_SCHEDULING = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a pod in a namespace. Amounts are nanos."""

    added: Nanos = field(default_factory=dict)  # what defaults add to its requests
    takes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    # (quota, resource) -> what it takes
    refusal: str = ""  # why it is refused


@dataclass(slots=True, kw_only=True)
class _Container:
    name: str
    requests: Nanos
    limits: Nanos
    is_init: bool = False
    is_sidecar: bool = False  # an init container that keeps running


@dataclass(slots=True, kw_only=True)
class _Pod:
    spec: JsonObject
    containers: list[_Container]  # init containers last

    def total(self, of: str) -> Nanos:
        """The requests or the limits of the whole pod."""
        return add_up(
            [getattr(item, of) for item in self.containers if not item.is_init],
            [(getattr(item, of), item.is_sidecar) for item in self.containers if item.is_init],
        )

    def requests(self) -> Nanos:
        total = self.total("requests")
        total.update(of_whole_pod(child(self.spec, "resources"), total))
        for name, nanos in nanos_of(child(self.spec, "overhead")).items():
            total[name] = total.get(name, 0) + nanos
        return total

    def limits(self) -> Nanos:
        total = self.total("limits")
        total.update(nanos_of(child(self.spec, "resources", "limits")))
        return total


def admit(spec: JsonObject, rules: NamespaceRules) -> Verdict:
    """What becomes of a pod with this spec; only the names of a quota's resources are read."""
    pod = _pod(spec)
    before = pod.requests()
    fault = next(_missing_limits(pod, rules.limits), "") or next(_faults(pod, rules.limits), "")
    takes: dict[tuple[str, str], int] = {}
    usage = _usage(pod)
    for quota in rules.quotas:
        if not _counts(quota, pod):
            continue
        fault = fault or next(_unstated(quota, pod), "")
        for resource in quota.hard:
            if usage.get(resource):
                takes[quota.name, resource] = usage[resource]
    after = pod.requests()
    added = {name: after[name] - before.get(name, 0) for name in after}
    return Verdict(
        added={name: nanos for name, nanos in added.items() if nanos > 0},
        takes=takes,
        refusal=fault,
    )


def used_of(quota: NamespaceQuota, spec: JsonObject) -> Nanos:
    """What a quota counts of a pod that was admitted, by resource."""
    pod = _pod(spec)
    if not _counts(quota, pod):
        return {}
    usage = _usage(pod)
    return {resource: usage[resource] for resource in quota.hard if usage.get(resource)}


def limits_pods(resource: str) -> bool:
    """Whether a resource of a quota is something that pods take."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if resource in PODS or name in _COMPUTE or name.startswith(_HUGE_PAGES):
        return True
    return resource.startswith("requests.") and "/" in name


def _pod(spec: JsonObject) -> _Pod:
    running = [_container(entry) for entry in maps_at(spec, "containers")]
    starting = [_container(entry, is_init=True) for entry in maps_at(spec, "initContainers")]
    return _Pod(spec=spec, containers=[*running, *starting])


def _container(entry: JsonObject, *, is_init: bool = False) -> _Container:
    return _Container(
        name=text(entry, "name"),
        requests=requests_of(entry),
        limits=nanos_of(child(entry, "resources", "limits")),
        is_init=is_init,
        is_sidecar=entry.get("restartPolicy") == "Always",
    )


# Quotas.


def _usage(pod: _Pod) -> Nanos:
    """What a pod takes, by every name that a quota may count it under."""
    usage = dict.fromkeys(PODS, NANO)
    for name, nanos in pod.requests().items():
        usage[f"requests.{name}"] = nanos
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            usage[name] = nanos
    for name, nanos in pod.limits().items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = nanos
    return usage


def _unstated(quota: NamespaceQuota, pod: _Pod) -> Iterator[str]:
    """Resources that a quota limits and a container does not state."""
    whole = child(pod.spec, "resources")
    for resource in sorted(quota.hard):
        where, name = _STATED.get(resource, ("", ""))
        if not where or name in child(whole, where):
            continue
        for container in pod.containers:
            if name not in getattr(container, where):
                what = f"{where}.{name}"
                yield f"ResourceQuota {quota.name} requires {what} of container {container.name}"


def _counts(quota: NamespaceQuota, pod: _Pod) -> bool:
    return all(_selects(scope, pod) for scope in quota.scopes)


def _selects(scope: QuotaScope, pod: _Pod) -> bool:
    match scope.name:
        case "Terminating":
            return pod.spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return pod.spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(pod.spec)
        case "PriorityClass":
            return _has_class(scope, text(pod.spec, "priorityClassName"))


def _has_class(scope: QuotaScope, name: str) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values


def _is_best_effort(pod: _Pod) -> bool:
    """Whether neither cpu nor memory is requested or limited."""
    return not any(
        total.get(name) for total in (pod.requests(), pod.limits()) for name in ("cpu", "memory")
    )


def _looks_elsewhere(spec: JsonObject) -> bool:
    """Whether an affinity to other pods names namespaces."""
    for affinity in _AFFINITIES:
        for scheduling in _SCHEDULING:
            for term in maps_at(spec, "affinity", affinity, scheduling):
                inner = child(term, "podAffinityTerm") or term
                if inner.get("namespaces") or inner.get("namespaceSelector") is not None:
                    return True
    return False


# Limits.


def _missing_limits(pod: _Pod, limits: Sequence[NamespaceLimit]) -> Iterator[str]:
    """Fills in defaults; yields where a default limit is below what is requested."""
    for limit in (item for item in limits if item.type == "Container"):
        most, least = _plain(limit.max), _plain(limit.min)
        default = {**most, **_plain(limit.default)}
        request = {**least, **default, **_plain(limit.default_request)}
        for container in pod.containers:
            added = {name: n for name, n in default.items() if name not in container.limits}
            container.limits.update(added)
            for name, nanos in request.items():
                container.requests.setdefault(name, nanos)
            for name in sorted(added):
                if container.requests.get(name, 0) > added[name]:
                    asked = _amount(name, container.requests[name])
                    yield (
                        f"container {container.name} requests {asked} of {name}, and LimitRange "
                        f"{limit.name} limits it to {_amount(name, added[name])} by default"
                    )


def _faults(pod: _Pod, limits: Sequence[NamespaceLimit]) -> Iterator[str]:
    for limit in limits:
        if limit.type == "Pod":
            yield from _outside(limit, "the pod", pod.requests(), pod.limits())
            continue
        for container in pod.containers:
            name = f"container {container.name}"
            yield from _outside(limit, name, container.requests, container.limits)


def _outside(limit: NamespaceLimit, who: str, requests: Nanos, limits: Nanos) -> Iterator[str]:
    """What a LimitRange does not allow of a container or a pod."""
    rule = f"LimitRange {limit.name}"
    for name, least in sorted(_plain(limit.min).items()):
        asked = min(requests.get(name, 0), limits.get(name, least))
        if asked < least:
            has = _amount(name, asked)
            yield f"{rule} requires at least {_amount(name, least)} of {name}; {who} asks for {has}"
    for name, most in sorted(_plain(limit.max).items()):
        if name not in limits:
            yield f"{rule} requires a limit of {name}; {who} sets none"
        elif max(limits[name], requests.get(name, 0)) > most:
            has = _amount(name, max(limits[name], requests.get(name, 0)))
            yield f"{rule} allows at most {_amount(name, most)} of {name}; {who} has {has}"
    for name, ratio in sorted(_plain(limit.max_limit_request_ratio).items()):
        asked, most = requests.get(name, 0), limits.get(name, 0)
        if not asked or not most:
            yield f"{rule} requires a request and a limit of {name}; {who} sets not both"
        elif most * NANO > ratio * asked:
            yield (
                f"{rule} allows a limit of {name} of {Quantity(ratio)} times the request; {who} has"
                f" {_amount(name, most)} for {_amount(name, asked)}"
            )


def _plain(amounts: ResourceList) -> Nanos:
    return {name: quantity.nanos for name, quantity in amounts.items()}


def _amount(resource: str, nanos: int) -> str:
    return str(Quantity(nanos, family_of(resource)))
