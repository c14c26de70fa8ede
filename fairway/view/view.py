"""The facts, maintained object by object.

An event costs what it changes: a workload is read anew alone, a cluster with its reports alone.
What many things hang on (the fleet's settings, queues, policies, labels of clusters) makes those
things be read anew, when next asked for. After any sequence of events the facts equal those made
from scratch of the same objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.api.fleet import FleetSpec
from fairway.core import model, nodes
from fairway.core.snapshot import Facts
from fairway.view import clusters, policies, queues, workloads
from fairway.view.objects import Objects, settings_of
from fairway.view.selecting import ClusterFacts


class View:
    """API objects in, facts out."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._workloads: dict[str, model.Workload] = {}
        self._clusters: dict[str, nodes.Cluster] = {}
        self._selectable: dict[str, ClusterFacts] = {}
        self._queues: dict[str, model.Queue] | None = None
        self._policies: dict[str, model.Policy] | None = None
        self._flavors: dict[str, model.Flavor] = {}
        self._stale_workloads: set[str] = set()
        self._stale_clusters: set[str] = set()

    def put(self, plain: Mapping[str, Any]) -> None:
        """An object was made or changed."""
        self._objects.put(plain)
        self._touch(plain)

    def remove(self, plain: Mapping[str, Any]) -> None:
        """An object is gone."""
        self._objects.remove(plain)
        self._touch(plain)

    def _touch(self, plain: Mapping[str, Any]) -> None:
        metadata = plain.get("metadata") or {}
        name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace", ""))
        match plain.get("kind"):
            case "Workload":
                self._stale_workloads.add(f"{namespace}/{name}")
            case "Cluster":
                self._stale_clusters.add(name)
            case "ClusterReport":
                self._stale_clusters.add(str((plain.get("spec") or {}).get("cluster", "")))
            case "Flavor":
                self._flavors.pop(name, None)
            case "Queue":
                self._queues = None
                self._stale_workloads.update(self._objects.workloads)
            case "PlacementPolicy":
                self._policies = None
                self._stale_workloads.update(self._objects.workloads)
            case "Fleet" | "PriorityClass":
                self._stale_workloads.update(self._objects.workloads)
            case _:
                return

    def facts(self, now: float) -> Facts:
        """All that a decision at `now` may look at."""
        self._refresh_clusters(now)
        self._refresh_workloads()
        objects = self._objects
        if self._queues is None:
            self._queues = queues.queues_of(objects.queues, self._selectable)
        if self._policies is None:
            self._policies = {
                key: policies.policy_of(objects.policies[key], self._selectable)
                for key in sorted(objects.policies)
            }
        for name, flavor in objects.flavors.items():
            if name not in self._flavors:
                self._flavors[name] = queues.flavor_of(flavor)
        return Facts(
            now=now,
            queues=self._queues,
            flavors={name: self._flavors[name] for name in sorted(objects.flavors)},
            policies=self._policies,
            clusters={name: self._clusters[name] for name in sorted(self._clusters)},
            workloads={key: self._workloads[key] for key in sorted(self._workloads)},
            settings=settings_of(self._fleet()),
            default_policy=policies.DEFAULT,
        )

    def _fleet(self) -> FleetSpec:
        return self._objects.fleet.spec if self._objects.fleet is not None else FleetSpec()

    def _refresh_clusters(self, now: float) -> None:
        """Reads changed clusters anew; where labels or claims changed, so do all selectors."""
        objects = self._objects
        # A node that was set aside for a while comes back by time alone.
        timed = {name for name, one in objects.clusters.items() if one.status.avoided_nodes}
        for name in sorted(self._stale_clusters | timed):
            cluster = objects.clusters.get(name)
            before = self._selectable.get(name)
            if cluster is None:
                self._clusters.pop(name, None)
                self._selectable.pop(name, None)
            else:
                reports = objects.reports_of(name)
                self._clusters[name] = clusters.cluster_of(cluster, reports, now)
                self._selectable[name] = clusters.facts_of(cluster)
            if self._selectable.get(name) != before:
                self._queues = self._policies = None
        self._stale_clusters.clear()

    def _refresh_workloads(self) -> None:
        objects = self._objects
        defaults = workloads.Defaults(
            fleet=self._fleet(),
            queues=objects.queues,
            policies=objects.policies,
            priority_classes=objects.priority_classes,
        )
        for key in self._stale_workloads:
            workload = objects.workloads.get(key)
            if workload is None or workloads.is_over(workload):
                self._workloads.pop(key, None)
            else:
                self._workloads[key] = workloads.workload_of(workload, defaults)
        self._stale_workloads.clear()
