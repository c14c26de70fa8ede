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
from fairway.core.snapshot import Facts, Settings
from fairway.kinds.native import as_workload
from fairway.kinds.registry import built_in
from fairway.view import clusters, policies, queues, workloads

_GROUP = "fairway.dev"


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

    def put(self, plain: Mapping[str, Any]) -> None:
        api_version, kind = str(plain.get("apiVersion", "")), str(plain.get("kind", ""))
        if kind == "PriorityClass":
            self.priority_classes[plain["metadata"]["name"]] = int(plain.get("value", 0))
        if api_version.partition("/")[0] == _GROUP and kind in BY_NAME:
            self._put(codec.decode(plain, BY_NAME[kind].struct))
        elif (workload := as_workload(dict(plain), built_in())) is not None:
            self._put(codec.decode(workload, Workload))

    def _put(self, one: Any) -> None:
        match one:
            case Fleet():
                self.fleet = one
            case Cluster():
                self.clusters[one.metadata.name] = one
            case ClusterReport():
                self.reports[one.metadata.name] = one
            case Flavor():
                self.flavors[one.metadata.name] = one
            case Queue():
                self.queues[one.metadata.name] = one
            case PlacementPolicy():
                self.policies[policies.key_of(one)] = one
            case Workload():
                self.workloads[workloads.key_of(one)] = one
            case _:
                return

    def remove(self, plain: Mapping[str, Any]) -> None:
        """Forgets an object."""
        metadata = plain.get("metadata") or {}
        name = str(metadata.get("name", ""))
        key = f"{metadata.get('namespace', '')}/{name}"
        match plain.get("kind"):
            case "Fleet":
                self.fleet = None
            case "Cluster":
                self.clusters.pop(name, None)
            case "ClusterReport":
                self.reports.pop(name, None)
            case "Flavor":
                self.flavors.pop(name, None)
            case "Queue":
                self.queues.pop(name, None)
            case "PlacementPolicy":
                self.policies.pop(key, None)
            case "Workload":
                self.workloads.pop(key, None)
            case "PriorityClass":
                self.priority_classes.pop(name, None)
            case _:
                return

    def reports_of(self, cluster: str) -> list[ClusterReport]:
        """The chunks of a cluster's report."""
        return [one for one in self.reports.values() if one.spec.cluster == cluster]

    def facts(self, now: float) -> Facts:
        """All that a decision at `now` may look at."""
        selectable = {name: clusters.facts_of(one) for name, one in self.clusters.items()}
        fleet = self.fleet.spec if self.fleet is not None else FleetSpec()
        defaults = workloads.Defaults(
            fleet=fleet,
            queues=self.queues,
            policies=self.policies,
            priority_classes=self.priority_classes,
        )
        return Facts(
            now=now,
            queues=queues.queues_of(self.queues, selectable),
            flavors={name: queues.flavor_of(self.flavors[name]) for name in sorted(self.flavors)},
            policies={
                key: policies.policy_of(self.policies[key], selectable)
                for key in sorted(self.policies)
            },
            clusters={
                name: clusters.cluster_of(self.clusters[name], self.reports_of(name), now)
                for name in sorted(self.clusters)
            },
            workloads={
                key: workloads.workload_of(self.workloads[key], defaults)
                for key in sorted(self.workloads)
                if not workloads.is_over(self.workloads[key])
            },
            settings=settings_of(fleet),
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
