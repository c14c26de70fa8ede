"""A set of API objects, and the facts made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.fleet import BreakerStatus, Fleet, FleetSpec
from fairway.api.governance import GOVERNANCE_GROUP, FleetPolicy
from fairway.api.kindrule import KINDS_GROUP, KindRule
from fairway.api.kinds import BY_NAME
from fairway.api.meta import GROUP, JsonObject
from fairway.api.names import FINISHED
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.report import ClusterReport
from fairway.api.scores import SCORES_GROUP, ClusterScore
from fairway.api.workload import Workload
from fairway.core import model
from fairway.core.snapshot import Facts, Settings
from fairway.kinds.device_claims import ClaimName, is_claim
from fairway.kinds.native import as_workload
from fairway.kinds.plain import annotation
from fairway.kinds.registry import Kinds, built_in
from fairway.kinds.rules import kinds_of
from fairway.kinds.volumes import BOUND_IN, CLAIM
from fairway.view import clusters, policies, queues, workloads
from fairway.view.admission import Rules, by_namespace
from fairway.view.devices import classes_of
from fairway.view.fleet_policies import Governing, governing_of
from fairway.view.scores import scores_of
from fairway.view.seen_pods import as_running, bind, join_strays, unclaimed_pods, work_of
from fairway.view.selectors import facts_of
from fairway.view.workloads import Defaults

_GROUPS = (GROUP, KINDS_GROUP, GOVERNANCE_GROUP, SCORES_GROUP)
_OTHERS = ("PriorityClass", "Namespace", CLAIM)  # of other groups
_POD = "Pod"
_NAMESPACED = ("Workload", "PlacementPolicy")


Given = Mapping[str, Any] | bytes  # an object: a plain manifest, or its JSON


class _Head(msgspec.Struct, rename="camel"):
    """As much of an object as says what it is."""

    api_version: str = ""
    kind: str = ""


_read_head = msgspec.json.Decoder(_Head).decode


def _plain(given: Given) -> Mapping[str, Any]:
    return msgspec.json.decode(given) if isinstance(given, bytes) else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """An object that was added, changed or removed."""

    kind: str
    key: str
    before: Any  # None: it did not exist
    after: Any


@dataclass(slots=True)
class Objects:
    """The objects that decisions depend on, by name."""

    fleet: Fleet | None = None
    clusters: dict[str, Cluster] = field(default_factory=dict)
    reports: dict[str, ClusterReport] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    policies: dict[str, PlacementPolicy] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    priority_classes: dict[str, int] = field(default_factory=dict)
    volumes: dict[str, dict[str, str]] = field(default_factory=dict)  # of bound claims
    claims: dict[str, dict[ClaimName, JsonObject]] = field(default_factory=dict)
    # of devices, and their templates, by namespace
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)  # labels by name
    rules: dict[str, KindRule] = field(default_factory=dict)
    fleet_policies: dict[str, FleetPolicy] = field(default_factory=dict)
    scores: dict[str, ClusterScore] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=built_in)
    keys: dict[str, str] = field(default_factory=dict)  # of workloads, by UID

    @classmethod
    def of(cls, plain: Iterable[Mapping[str, Any]]) -> Objects:
        """Objects from plain manifests; kinds that do not affect decisions are skipped.

        Native objects come last, since rules say what they are; a native object that a Workload
        stands for already is not counted twice.
        """
        objects = cls()
        natives = [entry for entry in plain if not objects._is_put(entry)]
        known = {_source_of(workload) for workload in objects.workloads.values()}
        for native in natives:
            if _identity_of(native) not in known:
                objects.put(native)
        return objects

    def _is_put(self, plain: Mapping[str, Any]) -> bool:
        """Adds an object, unless it is of a kind that rules may describe."""
        is_own = _group_of(plain) in _GROUPS or plain.get("kind") in _OTHERS or is_claim(plain)
        if is_own:
            self.put(plain)
        return is_own

    def put(self, given: Given) -> Touched | None:
        """Adds or replaces an object; returns what changed."""
        if isinstance(given, bytes):
            head = _read_head(given)
            if head.api_version.partition("/")[0] in _GROUPS and head.kind in BY_NAME:
                return self._put(codec.decode(given, BY_NAME[head.kind].struct))
        plain = _plain(given)
        api_version, kind = str(plain.get("apiVersion", "")), str(plain.get("kind", ""))
        if kind == "PriorityClass":
            name = str(plain["metadata"]["name"])
            before = self.priority_classes.get(name)
            value = self.priority_classes[name] = int(plain.get("value", 0))
            return Touched(kind=kind, key=name, before=before, after=value)
        if (api_version, kind) == ("v1", "Namespace"):
            name = str(plain["metadata"]["name"])
            known = self.namespaces.get(name)
            labels = self.namespaces[name] = dict(plain["metadata"].get("labels") or {})
            return Touched(kind=kind, key=name, before=known, after=labels)
        if (api_version, kind) == ("v1", CLAIM):
            return self._put_volume(plain, is_removed=False)
        if is_claim(plain):
            return self._put_claim(plain, is_removed=False)
        if api_version.partition("/")[0] in _GROUPS and kind in BY_NAME:
            return self._put(codec.decode(plain, BY_NAME[kind].struct))
        if annotation(dict(plain), FINISHED):
            return None  # a native object that has ended runs no more
        if (workload := as_workload(dict(plain), self.kinds)) is not None:
            return self._put(codec.decode(workload, Workload))
        return None

    def _put(self, item: Any) -> Touched | None:
        if isinstance(item, Fleet):
            before, self.fleet = self.fleet, item
            return Touched(kind=item.kind, key=item.metadata.name, before=before, after=item)
        if isinstance(item, KindRule):
            return self._put_rule(item.metadata.name, item)
        shelf = self._shelf(item.kind)
        if shelf is None:
            return None
        key = _key(item.kind, item.metadata.namespace, item.metadata.name)
        touched = Touched(kind=item.kind, key=key, before=shelf.get(key), after=item)
        shelf[key] = item
        self._note_uid(touched)
        return touched

    def _put_volume(self, plain: Mapping[str, Any], *, is_removed: bool) -> Touched:
        metadata = plain.get("metadata") or {}
        namespace, name = str(metadata.get("namespace", "")), str(metadata.get("name", ""))
        bound = {} if is_removed else metadata.get("annotations") or {}
        after = str(bound.get(BOUND_IN, "")) or None
        shelf = self.volumes.setdefault(namespace, {})
        before = shelf.pop(name, None)
        if after is not None:
            shelf[name] = after
        if not shelf:
            del self.volumes[namespace]
        return Touched(kind=CLAIM, key=f"{namespace}/{name}", before=before, after=after)

    def _put_claim(self, plain: Mapping[str, Any], *, is_removed: bool) -> Touched:
        """Takes a claim of devices, or a template; claims that were made for a pod do not count."""
        metadata = plain.get("metadata") or {}
        namespace = str(metadata.get("namespace", "")) or "default"
        name = (str(plain["kind"]), str(metadata.get("name", "")))
        is_made = any(owner.get("kind") == _POD for owner in metadata.get("ownerReferences") or ())
        after = None
        if not is_removed and not is_made:
            after = {key: plain[key] for key in ("apiVersion", "kind", "spec") if key in plain}
        shelf = self.claims.setdefault(namespace, {})
        before = shelf.pop(name, None)
        if after is not None:
            shelf[name] = after
        if not shelf:
            del self.claims[namespace]
        key = f"{namespace}/{name[1]}"
        return Touched(kind=name[0], key=key, before=before, after=after)

    def _put_rule(self, name: str, rule: KindRule | None) -> Touched:
        before = self.rules.pop(name, None)
        if rule is not None:
            self.rules[name] = rule
        if before is None or rule is None or before.spec != rule.spec:
            self.kinds = built_in().plus(kinds_of(self.rules.values()).kinds)
        return Touched(kind="KindRule", key=name, before=before, after=rule)

    def remove(self, given: Given) -> Touched | None:
        """Removes an object; returns what it was."""
        plain = _plain(given)
        if (plain.get("apiVersion"), plain.get("kind")) == ("v1", CLAIM):
            return self._put_volume(plain, is_removed=True)
        if is_claim(plain):
            return self._put_claim(plain, is_removed=True)
        if _group_of(plain) not in _GROUPS:
            plain = as_workload(dict(plain), self.kinds) or plain
        kind = str(plain.get("kind", ""))
        metadata = plain.get("metadata") or {}
        name = str(metadata.get("name", ""))
        if kind == "KindRule":
            return self._put_rule(name, None)
        if kind == "Fleet":
            before, self.fleet = self.fleet, None
            return Touched(kind=kind, key=name, before=before, after=None)
        shelf = self._shelf(kind)
        if shelf is None:
            return None
        key = _key(kind, str(metadata.get("namespace", "")), name)
        touched = Touched(kind=kind, key=key, before=shelf.pop(key, None), after=None)
        self._note_uid(touched)
        return touched

    def _note_uid(self, touched: Touched) -> None:
        """Indexes workloads by UID: claims refer to workloads of other namespaces by it."""
        if touched.kind != "Workload":
            return
        if touched.before is not None:
            self.keys.pop(touched.before.metadata.uid, None)
        if touched.after is not None and touched.after.metadata.uid:
            self.keys[touched.after.metadata.uid] = touched.key

    def _shelf(self, kind: str) -> dict[str, Any] | None:
        shelves: dict[str, dict[str, Any]] = {
            "Cluster": self.clusters,
            "ClusterReport": self.reports,
            "Flavor": self.flavors,
            "Queue": self.queues,
            "PlacementPolicy": self.policies,
            "Workload": self.workloads,
            "PriorityClass": self.priority_classes,
            "Namespace": self.namespaces,
            "FleetPolicy": self.fleet_policies,
            "ClusterScore": self.scores,
        }
        return shelves.get(kind)

    def reports_of(self, cluster: str) -> list[ClusterReport]:
        """The chunks of a cluster's report."""
        return [report for report in self.reports.values() if report.spec.cluster == cluster]

    def defaults(
        self, fleet_policies: tuple[Governing, ...] = (), rules: Rules | None = None
    ) -> Defaults:
        """The sources of defaults; policies and rules need the clusters: the caller reads them."""
        return Defaults(
            fleet=self.fleet.spec if self.fleet is not None else FleetSpec(),
            queues=self.queues,
            policies=self.policies,
            priority_classes=self.priority_classes,
            volumes=self.volumes,
            kinds=self.kinds,
            keys=self.keys,
            namespaces=self.namespaces,
            fleet_policies=fleet_policies,
            claims=self.claims,
            rules=rules or {},
        )

    def facts(self, now: float, assumed: Mapping[str, model.Workload] | None = None) -> Facts:
        """All that a decision at `now` depends on; `assumed` workloads replace the stored ones."""
        selectable = {name: facts_of(cluster) for name, cluster in self.clusters.items()}
        classes = classes_of(self.defaults().fleet)
        readings = {
            name: clusters.read(self.clusters[name], self.reports_of(name), now, classes=classes)
            for name in sorted(self.clusters)
        }
        rules = by_namespace({name: reading.rules for name, reading in readings.items()})
        defaults = self.defaults(governing_of(self.fleet_policies, selectable), rules)
        result = {
            key: workloads.workload_of(workload, defaults)
            for key, workload in self.workloads.items()
            if not workloads.is_past(workload)
        }
        result.update(assumed or {})
        seen = {name: reading.seen for name, reading in readings.items()}
        strays = {
            name: {work: unclaimed_pods(some) for work, some in works.items()}
            for name, works in seen.items()
        }
        heard = [name for name, reading in readings.items() if reading.is_heard]
        for key in sorted(result):
            work = work_of(key)
            result[key] = as_running(result[key], (name for name in heard if work in seen[name]))
            result[key], left = bind(result[key], seen)
            for name in left.keys() & strays.keys():
                strays[name][work_of(key)] = left[name]
        return Facts(
            now=now,
            queues=queues.queues_of(self.queues, selectable),
            flavors={name: queues.flavor_of(self.flavors[name]) for name in sorted(self.flavors)},
            policies={
                key: policies.policy_of(self.policies[key], selectable)
                for key in sorted(self.policies)
            },
            clusters={name: reading.cluster for name, reading in readings.items()},
            workloads={key: result[key] for key in sorted(result)},
            strays={name: join_strays(some) for name, some in strays.items() if join_strays(some)},
            scores={name: scores_of(self.scores[name]) for name in sorted(self.scores)},
            settings=settings_of(self.fleet),
            default_policy=policies.DEFAULT,
        )


def settings_of(stored: Fleet | None) -> Settings:
    fleet = stored.spec if stored is not None else FleetSpec()
    breakers = stored.status.breakers if stored is not None else ()
    share, held = fleet.fair_share, fleet.reservations
    return Settings(
        fair_sharing=share.enabled,
        half_life_seconds=float(share.usage_half_life_seconds),
        preemption_tests=tuple(share.preemption_tests),
        reserves=held.enabled,
        reserve_after_seconds=float(held.after_seconds),
        reservations_per_flavor=held.per_flavor,
        backfills=held.backfill,
        is_paused=fleet.paused,
        open_breakers=frozenset(
            breaker.name for breaker in breakers if breaker.open_since is not None
        ),
        money=_money(fleet, breakers),
        forecast_depth=fleet.forecast_depth,
        resource_weights={name: weight.nanos for name, weight in share.resource_weights.items()},
    )


def _money(fleet: FleetSpec, breakers: Sequence[BreakerStatus]) -> tuple[int, int] | None:
    """Hourly cost of elastic nodes and its limit, in nanos, while the price breaker is open."""
    limit = fleet.breakers.price_per_hour
    breaker_status = next(
        (breaker for breaker in breakers if breaker.name == "Price" and breaker.open_since), None
    )
    return (
        (breaker_status.past_hour.nanos, limit.nanos)
        if breaker_status and limit is not None
        else None
    )


def _group_of(plain: Mapping[str, Any]) -> str:
    return str(plain.get("apiVersion", "")).partition("/")[0]


def _identity_of(native: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = native.get("metadata") or {}
    namespace = metadata.get("namespace") or "default"
    result = (native.get("apiVersion"), native.get("kind"), namespace, metadata.get("name"))
    return tuple(str(item) for item in result)


def _source_of(workload: Workload) -> tuple[str, ...]:
    source = workload.spec.source
    if source is None:
        return ()
    return (source.api_version, source.kind, workload.metadata.namespace, source.name)


def _key(kind: str, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if kind in _NAMESPACED else name


def is_newer(version: str, than: str) -> bool:
    """Compares object versions as numbers; if they are not numbers, another version is newer."""
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return version != than or not version
