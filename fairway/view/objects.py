"""A set of API objects, and the facts made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.fleet import Fleet, FleetSpec
from fairway.api.kinds import BY_NAME
from fairway.api.policy import PlacementPolicy
from fairway.api.queue import Queue
from fairway.api.report import ClusterReport
from fairway.api.workload import Workload
from fairway.core import model
from fairway.core.snapshot import Facts, Settings
from fairway.kinds.native import as_workload
from fairway.kinds.registry import built_in
from fairway.view import clusters, policies, queues, workloads
from fairway.view.binding import bind, joined, unclaimed, work_of
from fairway.view.workloads import Defaults

_GROUP = "fairway.dev"


_NAMESPACED = ("Workload", "PlacementPolicy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """An object that came, changed or went."""

    kind: str
    key: str
    before: Any  # None: it was not there
    after: Any


@dataclass(slots=True)
class Objects:
    """The objects that decisions look at, by name."""

    fleet: Fleet | None = None
    clusters: dict[str, Cluster] = field(default_factory=dict)
    reports: dict[str, ClusterReport] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    policies: dict[str, PlacementPolicy] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    priority_classes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Iterable[Mapping[str, Any]]) -> Objects:
        """Objects from plain manifests; kinds that decide nothing are passed over."""
        found = cls()
        for one in plain:
            found.put(one)
        return found

    def put(self, plain: Mapping[str, Any]) -> Touched | None:
        """Takes an object in; says which one, and what it was before."""
        api_version, kind = str(plain.get("apiVersion", "")), str(plain.get("kind", ""))
        if kind == "PriorityClass":
            name = str(plain["metadata"]["name"])
            before = self.priority_classes.get(name)
            value = self.priority_classes[name] = int(plain.get("value", 0))
            return Touched(kind=kind, key=name, before=before, after=value)
        if api_version.partition("/")[0] == _GROUP and kind in BY_NAME:
            return self._put(codec.decode(plain, BY_NAME[kind].struct))
        if (workload := as_workload(dict(plain), built_in())) is not None:
            return self._put(codec.decode(workload, Workload))
        return None

    def _put(self, one: Any) -> Touched | None:
        if isinstance(one, Fleet):
            before, self.fleet = self.fleet, one
            return Touched(kind=one.kind, key=one.metadata.name, before=before, after=one)
        shelf = self._shelf(one.kind)
        if shelf is None:
            return None
        key = _key(one.kind, one.metadata.namespace, one.metadata.name)
        found = Touched(kind=one.kind, key=key, before=shelf.get(key), after=one)
        shelf[key] = one
        return found

    def remove(self, plain: Mapping[str, Any]) -> Touched | None:
        """Forgets an object; says what it was."""
        if str(plain.get("apiVersion", "")).partition("/")[0] != _GROUP:
            plain = as_workload(dict(plain), built_in()) or plain
        kind = str(plain.get("kind", ""))
        metadata = plain.get("metadata") or {}
        name = str(metadata.get("name", ""))
        if kind == "Fleet":
            before, self.fleet = self.fleet, None
            return Touched(kind=kind, key=name, before=before, after=None)
        shelf = self._shelf(kind)
        if shelf is None:
            return None
        key = _key(kind, str(metadata.get("namespace", "")), name)
        return Touched(kind=kind, key=key, before=shelf.pop(key, None), after=None)

    def _shelf(self, kind: str) -> dict[str, Any] | None:
        shelves: dict[str, dict[str, Any]] = {
            "Cluster": self.clusters,
            "ClusterReport": self.reports,
            "Flavor": self.flavors,
            "Queue": self.queues,
            "PlacementPolicy": self.policies,
            "Workload": self.workloads,
            "PriorityClass": self.priority_classes,
        }
        return shelves.get(kind)

    def reports_of(self, cluster: str) -> list[ClusterReport]:
        """The chunks of a cluster's report."""
        return [one for one in self.reports.values() if one.spec.cluster == cluster]

    def defaults(self) -> Defaults:
        return Defaults(
            fleet=self.fleet.spec if self.fleet is not None else FleetSpec(),
            queues=self.queues,
            policies=self.policies,
            priority_classes=self.priority_classes,
        )

    def facts(self, now: float, assumed: Mapping[str, model.Workload] | None = None) -> Facts:
        """All that a decision at `now` may look at; some workloads are taken to be otherwise."""
        selectable = {name: clusters.facts_of(one) for name, one in self.clusters.items()}
        defaults = self.defaults()
        readings = {
            name: clusters.read(self.clusters[name], self.reports_of(name), now)
            for name in sorted(self.clusters)
        }
        found = {
            key: workloads.workload_of(one, defaults)
            for key, one in self.workloads.items()
            if not workloads.is_past(one)
        }
        found.update(assumed or {})
        seen = {name: one.seen for name, one in readings.items()}
        strays = {
            name: {work: unclaimed(some) for work, some in works.items()}
            for name, works in seen.items()
        }
        for key in sorted(found):
            found[key], left = bind(found[key], seen)
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
            clusters={name: one.cluster for name, one in readings.items()},
            workloads={key: found[key] for key in sorted(found)},
            strays={name: joined(some) for name, some in strays.items() if joined(some)},
            settings=settings_of(defaults.fleet),
            default_policy=policies.DEFAULT,
        )


def settings_of(fleet: FleetSpec) -> Settings:
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
        forecast_depth=fleet.forecast_depth,
    )


def _key(kind: str, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if kind in _NAMESPACED else name
