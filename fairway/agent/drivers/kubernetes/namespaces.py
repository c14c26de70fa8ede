"""ResourceQuotas and LimitRanges of the cluster's namespaces, and what pods of others use of them.

A quota says what all pods use. The part of pods of works is computed from their specs, as the
cluster counts them, and subtracted. Pods and quotas arrive on different watches: for a moment the
difference may be off by a pod that was just made.

A report holds so many namespaces, quotas and limits, by name. What is beyond that is left out and
named: the cluster itself still applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from fairway.agent.drivers.kubernetes.devices import ObjectName
from fairway.agent.drivers.kubernetes.pods import OwnPod
from fairway.api.amounts import Quantity, QuantityError, family_of
from fairway.api.cluster import UNCOUNTED_RULES_MAX
from fairway.api.meta import RESOURCES_MAX
from fairway.api.namespaces import (
    LIMITS_MAX,
    NAMESPACES_MAX,
    QUOTAS_MAX,
    SCOPES_MAX,
    VALUES_MAX,
    NamespaceLimit,
    NamespaceQuota,
    NamespaceRules,
    QuotaScope,
    QuotaScopeName,
)
from fairway.kinds.namespace_rules import limits_pods, used_of
from fairway.kinds.pods import nanos_of
from fairway.store.interface import ResourceKey

QUOTAS = ResourceKey("", "v1", "resourcequotas")
LIMITS = ResourceKey("", "v1", "limitranges")
_SYSTEM = "kube-"  # namespaces of the cluster itself
_LIMITED = ("Container", "Pod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota: its limits for pods, and what all pods use of them, in nanos."""

    quota: NamespaceQuota
    used: Mapping[str, int] = field(default_factory=dict)


class _Match(msgspec.Struct, rename="camel"):
    scope_name: str = ""
    operator: str = "Exists"
    values: list[str] = []


class _Selector(msgspec.Struct, rename="camel"):
    match_expressions: list[_Match] = []


class _Name(msgspec.Struct):
    name: str = ""


class _QuotaSpec(msgspec.Struct, rename="camel"):
    hard: dict[str, Any] = {}
    scopes: list[str] = []
    scope_selector: _Selector = msgspec.field(default_factory=_Selector)


class _QuotaStatus(msgspec.Struct):
    hard: dict[str, Any] = {}
    used: dict[str, Any] = {}


class _Quota(msgspec.Struct):
    metadata: _Name
    spec: _QuotaSpec = msgspec.field(default_factory=_QuotaSpec)
    status: _QuotaStatus = msgspec.field(default_factory=_QuotaStatus)


class _Limit(msgspec.Struct, rename="camel"):
    type: str = ""
    min: dict[str, Any] = {}
    max: dict[str, Any] = {}
    default: dict[str, Any] = {}
    default_request: dict[str, Any] = {}
    max_limit_request_ratio: dict[str, Any] = {}


class _LimitSpec(msgspec.Struct):
    limits: list[_Limit] = []


class _LimitRange(msgspec.Struct):
    metadata: _Name
    spec: _LimitSpec = msgspec.field(default_factory=_LimitSpec)


_decode_quota = msgspec.json.Decoder(_Quota).decode
_decode_limits = msgspec.json.Decoder(_LimitRange).decode
_decode_pod = msgspec.json.Decoder().decode


def read_quota(raw: bytes) -> Quota | None:
    """A quota; None if it limits no pods."""
    body = _decode_quota(raw)
    hard = {
        name: amount
        for name, amount in _amounts(body.status.hard or body.spec.hard).items()
        if limits_pods(name)
    }
    scopes = [_Match(scope_name=name) for name in body.spec.scopes]
    scopes += body.spec.scope_selector.match_expressions
    if not hard or any(scope.scope_name not in get_args(QuotaScopeName) for scope in scopes):
        return None  # the scopes that are not known select no pods
    return Quota(
        quota=NamespaceQuota(
            name=body.metadata.name,
            hard=hard,
            scopes=tuple(
                QuotaScope(
                    name=scope.scope_name,  # type: ignore[arg-type] # checked above
                    operator=scope.operator,  # type: ignore[arg-type] # checked by the cluster
                    values=tuple(sorted(scope.values)),
                )
                for scope in scopes
            ),
        ),
        used={name: nanos for name, nanos in nanos_of(body.status.used).items() if name in hard},
    )


def read_limits(raw: bytes) -> tuple[NamespaceLimit, ...]:
    """The entries of a LimitRange for containers and pods."""
    body = _decode_limits(raw)
    return tuple(
        NamespaceLimit(
            name=body.metadata.name,
            type="Pod" if limit.type == "Pod" else "Container",
            min=_amounts(limit.min),
            max=_amounts(limit.max),
            default=_amounts(limit.default),
            default_request=_amounts(limit.default_request),
            max_limit_request_ratio=_amounts(limit.max_limit_request_ratio),
        )
        for limit in body.spec.limits
        if limit.type in _LIMITED
    )


def _amounts(given: Mapping[str, Any]) -> dict[str, Quantity]:
    result = {}
    for name in sorted(given):
        try:
            result[name] = Quantity.of(given[name])
        except QuantityError:
            continue
    return result


class Namespaces:
    """The rules of all namespaces, and the pods of works in them."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._quotas: dict[str, dict[str, Quota]] = {}
        self._limits: dict[str, dict[str, tuple[NamespaceLimit, ...]]] = {}
        # Pods of works by namespace, as many as have each spec.
        self._pods: dict[str, dict[bytes, int]] = {}
        self._stale: set[str] = set()
        self._known: dict[str, NamespaceRules] = {}
        self._listed: tuple[NamespaceRules, ...] = ()
        self._left_out: dict[str, tuple[str, ...]] = {}  # by namespace, its rules

    def take_quota(self, place: ObjectName, quota: Quota | None) -> None:
        """Takes a quota, or its deletion."""
        self._take(self._quotas, place, quota)

    def take_limits(self, place: ObjectName, limits: tuple[NamespaceLimit, ...] | None) -> None:
        """Takes the entries of a LimitRange, or its deletion."""
        self._take(self._limits, place, limits or None)

    def _take(self, into: dict[str, dict[str, Any]], place: ObjectName, value: Any) -> None:
        namespace, name = place
        here = into.get(namespace, {})
        if namespace.startswith(_SYSTEM) or here.get(name) == value:
            return
        here.pop(name, None)
        if value is not None:
            here[name] = value
        into.pop(namespace, None)
        if here:
            into[namespace] = here
        self._stale.add(namespace)
        self._changed()

    def take_pod(self, pod: OwnPod, sign: int) -> None:
        """Counts a pod of a work in its namespace; with sign -1, no longer."""
        if not pod.counted:
            return
        here = self._pods.setdefault(pod.namespace, {})
        here[pod.counted] = here.get(pod.counted, 0) + sign
        if not here[pod.counted]:
            del here[pod.counted]
        if not here:
            del self._pods[pod.namespace]
        if pod.namespace in self._quotas:
            self._stale.add(pod.namespace)
            self._changed()

    def rules(self) -> tuple[NamespaceRules, ...]:
        """The rules of all namespaces that have any, by name; the same value until one changes."""
        if self._stale:
            for namespace in self._stale:
                self._known.pop(namespace, None)
                self._left_out.pop(namespace, None)
                if namespace in self._quotas or namespace in self._limits:
                    self._known[namespace] = self._rules(namespace)
            self._stale.clear()
            names = sorted(self._known)[:NAMESPACES_MAX]
            listed = tuple(self._known[name] for name in names)
            self._listed = self._listed if listed == self._listed else listed
        return self._listed

    def left_out(self) -> tuple[str, ...]:
        """Rules that are not among `rules`, since there are too many: namespaces, or rules of one.

        At most as many as a status holds.
        """
        whole = sorted(self._known)[NAMESPACES_MAX:]
        parts = {name: self._left_out[name] for name in self._left_out.keys() - set(whole)}
        names = [*whole, *(f"{name}/{rule}" for name in sorted(parts) for rule in parts[name])]
        return tuple(names[:UNCOUNTED_RULES_MAX])

    def _rules(self, namespace: str) -> NamespaceRules:
        quotas = self._quotas.get(namespace, {})
        limits = self._limits.get(namespace, {})
        entries = [entry for name in sorted(limits) for entry in limits[name]]
        fitting = [name for name in sorted(quotas) if _fits_report(quotas[name].quota)]
        del fitting[QUOTAS_MAX:]
        missing = [
            *(f"ResourceQuota {name}" for name in sorted(quotas.keys() - set(fitting))),
            *(
                f"LimitRange {name}"
                for name in sorted({each.name for each in entries[LIMITS_MAX:]})
            ),
        ]
        if missing:
            self._left_out[namespace] = tuple(missing)
        pods = [(_decode_pod(spec), count) for spec, count in self._pods.get(namespace, {}).items()]
        return NamespaceRules(
            name=namespace,
            quotas=tuple(_less_own(quotas[name], pods) for name in fitting),
            limits=tuple(entries[:LIMITS_MAX]),
        )


def _fits_report(quota: NamespaceQuota) -> bool:
    return (
        len(quota.hard) <= RESOURCES_MAX
        and len(quota.scopes) <= SCOPES_MAX
        and all(len(scope.values) <= VALUES_MAX for scope in quota.scopes)
    )


def _less_own(quota: Quota, pods: Iterable[tuple[dict[str, Any], int]]) -> NamespaceQuota:
    """A quota with what pods of no work use of it."""
    others = dict(quota.used)
    for spec, count in pods:
        for name, nanos in used_of(quota.quota, spec).items():
            others[name] = others.get(name, 0) - nanos * count
    used = {
        name: Quantity(nanos, family_of(name))
        for name, nanos in sorted(others.items())
        if nanos > 0
    }
    return msgspec.structs.replace(quota.quota, others=used)
