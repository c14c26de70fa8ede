"""The facts and the snapshot, maintained object by object.

An event costs what it changes: a workload alone is read again, or a cluster with its reports and
the claims on it. When something that many objects depend on changes (the fleet's settings, queues,
policies, labels of clusters), those objects are read again when next asked for. After any sequence
of events, facts and snapshot equal those made from scratch from the same objects.

Between a decision and the store's answer the decision is assumed: `assume` makes its claims count
at once, and the next version of each object replaces them. If a claim could not be written,
`forget` restores what the object says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fairway.api.fleet import FleetSpec
from fairway.api.workload import Workload
from fairway.core import model
from fairway.core.measured import MeasuredScores
from fairway.core.plan import Plan
from fairway.core.snapshot import Change, Facts, Snapshot, is_same_quota
from fairway.core.transitions import apply_plan
from fairway.view import clusters, policies, queues, workloads
from fairway.view.admission import RuleBook
from fairway.view.devices import classes_of
from fairway.view.fleet_policies import Governing, governing_of
from fairway.view.objects import Given, Objects, Touched, is_newer, settings_of
from fairway.view.reports import SeenWorks
from fairway.view.scores import with_scores
from fairway.view.seen_pods import (
    as_running,
    bind,
    clusters_of,
    join_strays,
    unclaimed_pods,
    work_of,
)
from fairway.view.selectors import ClusterFacts, facts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """The assumed state of a workload until its object changes."""

    workload: model.Workload
    version: str  # of the object that the decision was made on


@dataclass(slots=True)
class _Changed:
    """What the snapshot does not know yet."""

    workloads: set[str] = field(default_factory=set)
    clusters: set[str] = field(default_factory=set)
    strays: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    has_policies: bool = False
    has_scores: bool = False
    has_settings: bool = False
    is_all: bool = True  # the snapshot must be rebuilt


@dataclass(slots=True)
class _Sources:
    """Changed objects from which workloads take defaults."""

    queues: set[str] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)  # by name, in any namespace
    classes: set[str] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=set)  # with changed labels or volumes

    def of(self, stored: Mapping[str, Workload], defaults: workloads.Defaults) -> set[str]:
        """The workloads that may take a default from these objects."""
        if not (self.queues or self.policies or self.classes or self.namespaces):
            return set()
        below = queues.at_or_below(self.queues, defaults.queues)
        return {
            key
            for key, workload in stored.items()
            if workload.spec.policy in self.policies
            or workload.spec.priority_class in self.classes
            or workload.metadata.namespace in self.namespaces
            or workloads.queue_name(workload, defaults) in below
        }


class View:
    """API objects in, facts and snapshot out."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._assumed: dict[str, Assumption] = {}
        # What was read.
        self._workloads: dict[str, model.Workload] = {}
        self._readings: dict[str, clusters.Reading] = {}
        self._seen: dict[str, SeenWorks] = {}
        self._runs_in: dict[str, set[str]] = {}  # by work: reporting clusters where it has pods
        self._keys: dict[str, str] = {}  # workloads by work
        self._selectable: dict[str, ClusterFacts] = {}
        self._queues: dict[str, model.Queue] = {}
        self._policies: dict[str, model.Policy] = {}
        self._flavors: dict[str, model.Flavor] = {}
        self._scores: dict[str, MeasuredScores] = {}  # by cluster
        self._fleet_policies: tuple[Governing, ...] = ()
        self._rules = RuleBook()
        self._settings = settings_of(None)
        # Workloads with placements in a cluster, and the pods there without a claim, by work.
        self._holders: dict[str, dict[str, str]] = {}
        self._strays: dict[str, dict[str, tuple[model.Stray, ...]]] = {}
        # What must be read again.
        self._stale_workloads: set[str] = set()
        self._wait_by_uid: set[str] = set()  # read again as victims come and go
        self._stale_clusters: set[str] = set()
        self._stale_queues: set[str] = set()
        self._sources = _Sources()
        self._are_queues_stale = self._are_policies_stale = True
        self._are_fleet_policies_stale = False
        self._changed = _Changed()
        self._facts: Facts | None = None
        self._snapshot: Snapshot | None = None

    # Events.

    def put(self, given: Given) -> Touched | None:
        """Adds an object, or a new version of it; returns what changed."""
        touched = self._objects.put(given)
        self._touch(touched)
        return touched

    def remove(self, given: Given) -> Touched | None:
        """Removes an object; returns what it was."""
        touched = self._objects.remove(given)
        self._touch(touched)
        return touched

    def workload(self, key: str) -> Workload | None:
        """A workload as it was last put."""
        return self._objects.workloads.get(key)

    def assume(self, plan: Plan) -> None:
        """Assumes a plan: its claims count until the objects change."""
        self._refresh_workloads()
        for key, workload in apply_plan(self._workloads, plan).items():
            stored = self._objects.workloads.get(key)
            if stored is not None:
                version = stored.metadata.resource_version
                self._assumed[key] = Assumption(workload=workload, version=version)
                self._stale_workloads.add(key)

    def forget(self, key: str) -> None:
        """Drops an assumption whose claim could not be written: the object counts again."""
        if self._assumed.pop(key, None) is not None:
            self._stale_workloads.add(key)

    @property
    def assumed(self) -> Mapping[str, Assumption]:
        """The decisions that the store has not answered yet, by workload."""
        return self._assumed

    def _touch(self, touched: Touched | None) -> None:
        if touched is None:
            return
        before, after = touched.before, touched.after
        match touched.kind:
            case "Workload":
                self._stale_workloads.add(touched.key)
                if _uid(before) != _uid(after):
                    self._stale_workloads.update(self._wait_by_uid)
                assumption = self._assumed.get(touched.key)
                if assumption is not None and (
                    after is None or is_newer(after.metadata.resource_version, assumption.version)
                ):
                    del self._assumed[touched.key]
            case "Cluster":
                self._stale_clusters.add(touched.key)
            case "ClusterReport":
                self._stale_clusters.update(item.spec.cluster for item in (before, after) if item)
            case "Queue":
                self._touch_queue(touched)
            case "Flavor" if before is None or after is None or before.spec != after.spec:
                self._flavors.pop(touched.key, None)
                self._changed.is_all, self._facts = True, None
            case "PlacementPolicy":
                self._are_policies_stale = True
                if before is None or after is None:
                    self._sources.policies.add(touched.key.partition("/")[2])
            case "Fleet":
                self._touch_fleet(before.spec if before else FleetSpec())
            case _:
                self._touch_source(touched)

    def _touch_source(self, touched: Touched) -> None:
        """Notes a change in an object that affects workloads only, or how clusters rank."""
        before, after = touched.before, touched.after
        match touched.kind:
            case "PriorityClass" if before != after:
                self._sources.classes.add(touched.key)
            case "PersistentVolumeClaim" | "ResourceClaim" | "ResourceClaimTemplate" if (
                before != after
            ):
                self._sources.namespaces.add(touched.key.partition("/")[0])
            case "Namespace" if before != after:
                self._sources.namespaces.add(touched.key)
            case "FleetPolicy" if before is None or after is None or before.spec != after.spec:
                self._are_fleet_policies_stale = True
            case "ClusterScore":
                self._scores = with_scores(self._scores, touched.key, after)
                self._changed.has_scores, self._facts = True, None
            case "KindRule" if before is None or after is None or before.spec != after.spec:
                self._stale_workloads.update(self._objects.workloads)
            case _:
                return

    def _touch_queue(self, touched: Touched) -> None:
        before, after = touched.before, touched.after
        if before is not None and after is not None and before.spec == after.spec:
            self._stale_queues.add(touched.key)
            return
        self._are_queues_stale = True
        if (
            before is None
            or after is None
            or before.spec.defaults != after.spec.defaults
            or before.spec.parent != after.spec.parent
            or before.spec.submitters != after.spec.submitters
            or before.spec.refuse_impossible != after.spec.refuse_impossible
        ):
            self._sources.queues.add(touched.key)

    def _touch_fleet(self, before: FleetSpec) -> None:
        after = self._objects.defaults().fleet
        if (
            before.defaults,
            before.system_namespace,
            before.ignored_resource_prefixes,
            before.resources,
            before.device_classes,
        ) != (
            after.defaults,
            after.system_namespace,
            after.ignored_resource_prefixes,
            after.resources,
            after.device_classes,
        ):
            self._stale_workloads.update(self._objects.workloads)
        if before.device_classes != after.device_classes:
            self._stale_clusters.update(self._objects.clusters)
        settings = settings_of(self._objects.fleet)
        if settings != self._settings:
            self._settings = settings
            self._changed.has_settings, self._facts = True, None

    # What comes out.

    def facts(self, now: float) -> Facts:
        """All that a decision at `now` depends on."""
        self._refresh(now)
        if self._facts is None:
            self._facts = Facts(
                now=now,
                queues=self._queues,
                flavors={name: self._flavors[name] for name in sorted(self._flavors)},
                policies=self._policies,
                clusters={name: self._readings[name].cluster for name in sorted(self._readings)},
                workloads=dict(self._workloads),
                strays={
                    name: join_strays(some)
                    for name, some in self._strays.items()
                    if join_strays(some)
                },
                scores=self._scores,
                settings=self._settings,
                default_policy=policies.DEFAULT,
            )
        return self._facts if self._facts.now == now else replace(self._facts, now=now)

    def snapshot(self, now: float) -> Snapshot:
        """The fleet at `now`: the same object each time, brought up to date, unless rebuilt."""
        self._refresh(now)
        changed, self._changed = self._changed, _Changed(is_all=False)
        if self._snapshot is None or changed.is_all:
            self._snapshot = Snapshot(self.facts(now))
            return self._snapshot
        self._snapshot.advance(now)
        self._snapshot.change(
            Change(
                workloads={key: self._workloads.get(key) for key in changed.workloads},
                clusters={
                    name: self._readings[name].cluster if name in self._readings else None
                    for name in changed.clusters
                },
                strays={name: join_strays(self._strays.get(name, {})) for name in changed.strays},
                policies=self._policies if changed.has_policies else None,
                scores=self._scores if changed.has_scores else None,
                settings=self._settings if changed.has_settings else None,
                queues={name: self._queues[name] for name in changed.queues},
            )
        )
        return self._snapshot

    # Refreshing what is stale.

    def _refresh(self, now: float) -> None:
        unbound = self._refresh_clusters(now)
        self._refresh_workloads()
        for key in sorted(unbound & self._workloads.keys()):
            self._bind(key, self._workloads[key])
        self._refresh_queues()
        if self._are_policies_stale:
            self._are_policies_stale = False
            self._refresh_policies()
        for name, flavor in self._objects.flavors.items():
            if name not in self._flavors:
                self._flavors[name] = queues.flavor_of(flavor)

    def _refresh_clusters(self, now: float) -> set[str]:
        """Reads changed clusters; returns the workloads whose pods changed there."""
        objects = self._objects
        # An avoided node, or a pool that was out of stock, comes back by time alone.
        timed = {
            name
            for name, cluster in objects.clusters.items()
            if (cluster.status.avoided_nodes or cluster.status.stock)
            and name in self._readings
            and (self._readings[name].away, self._readings[name].doubts)
            != (clusters.avoided_nodes(cluster, now), clusters.doubts(cluster, now))
        }
        unbound: set[str] = set()
        classes = classes_of(objects.defaults().fleet)
        for name in sorted(self._stale_clusters | timed):
            cluster = objects.clusters.get(name)
            before = self._readings.pop(name, None)
            selectable = self._selectable.pop(name, None)
            if cluster is not None:
                reports = objects.reports_of(name)
                reading = clusters.read(cluster, reports, now, before, classes)
                self._readings[name] = reading
                fresh = facts_of(cluster)
                self._selectable[name] = selectable if selectable == fresh else fresh
            after = self._readings.get(name)
            if (before and before.cluster) is not (after and after.cluster):
                self._changed.clusters.add(name)
                self._facts = None
            self._sources.namespaces |= self._rules.take(name, after.rules if after else {})
            if self._selectable.get(name) != selectable:
                # Selectors depend on labels and claims of clusters.
                self._are_queues_stale = self._are_policies_stale = True
                self._are_fleet_policies_stale = True
            unbound |= self._look(name, after.seen if after else {})
            unbound |= self._look_for_running(name, before, after)
        self._stale_clusters.clear()
        return unbound

    def _look(self, cluster: str, seen: SeenWorks) -> set[str]:
        """Takes in the pods seen in a cluster; returns the workloads whose pods changed."""
        before = self._seen.pop(cluster, {})
        if seen:
            self._seen[cluster] = seen
        if seen is before:
            return set()
        holders = self._holders.get(cluster, {})
        unbound: set[str] = set()
        for work in before.keys() | seen.keys():
            if before.get(work) == seen.get(work):
                continue
            if work in holders:
                unbound.add(holders[work])
            else:
                self._leave(cluster, work, unclaimed_pods(seen.get(work, ())))
        return unbound

    def _look_for_running(
        self, cluster: str, before: clusters.Reading | None, after: clusters.Reading | None
    ) -> set[str]:
        """Takes in which works have pods in a cluster; returns the workloads that changed."""
        had: SeenWorks = before.seen if before is not None and before.is_heard else {}
        has: SeenWorks = after.seen if after is not None and after.is_heard else {}
        if had is has:
            return set()
        changed = had.keys() ^ has.keys()
        for work in changed:
            places = self._runs_in.setdefault(work, set())
            if work in has:
                places.add(cluster)
            else:
                places.discard(cluster)
                if not places:
                    del self._runs_in[work]
        return {self._keys[work] for work in changed if work in self._keys}

    def _refresh_workloads(self) -> None:
        objects = self._objects
        self._refresh_fleet_policies()
        defaults = objects.defaults(self._fleet_policies, self._rules.rules)
        sources, self._sources = self._sources, _Sources()
        self._stale_workloads.update(sources.of(objects.workloads, defaults))
        stale, self._stale_workloads = self._stale_workloads, set()
        for key in sorted(stale):
            stored = objects.workloads.get(key)
            if stored is not None and workloads.waits_by_uid(stored):
                self._wait_by_uid.add(key)
            else:
                self._wait_by_uid.discard(key)
            if key in self._assumed:
                self._bind(key, self._assumed[key].workload)
            elif stored is None or workloads.is_past(stored):
                self._bind(key, None)
            else:
                self._bind(key, workloads.workload_of(stored, defaults))

    def _bind(self, key: str, workload: model.Workload | None) -> None:
        """Replaces a workload, with its reported pods."""
        before = self._workloads.get(key)
        strays: dict[str, tuple[model.Stray, ...]] = {}
        work = work_of(key)
        if workload is not None and (workload.held or workload.releasing):
            workload, strays = bind(workload, self._seen)
        elif workload is not None:
            workload = as_running(workload, self._runs_in.get(work, ()))
        for cluster in (clusters_of(before) if before is not None else set()) - strays.keys():
            del self._holders[cluster][work]
            if not self._holders[cluster]:
                del self._holders[cluster]
            self._leave(cluster, work, unclaimed_pods(self._seen.get(cluster, {}).get(work, ())))
        for cluster, some in strays.items():
            self._holders.setdefault(cluster, {})[work] = key
            self._leave(cluster, work, some)
        if workload == before:
            return
        if workload is None:
            del self._workloads[key]
            self._keys.pop(work, None)
        else:
            self._workloads[key] = workload
            self._keys[work] = key
        self._changed.workloads.add(key)
        self._facts = None

    def _leave(self, cluster: str, work: str, strays: tuple[model.Stray, ...]) -> None:
        """Records the pods of a work without a claim."""
        here = self._strays.get(cluster, {})
        if here.get(work, ()) == strays:
            return
        if strays:
            self._strays.setdefault(cluster, here)[work] = strays
        else:
            del here[work]
            if not here:
                del self._strays[cluster]
        self._changed.strays.add(cluster)
        self._facts = None

    def _refresh_queues(self) -> None:
        """Reads changed queues; the tree is rebuilt if names or quotas changed."""
        objects = self._objects
        before = self._queues
        if self._are_queues_stale:
            self._queues = queues.queues_of(objects.queues, self._selectable)
        elif self._stale_queues:
            self._queues = dict(before)
            for name in self._stale_queues & objects.queues.keys():
                self._queues[name] = queues.queue_of(name, objects.queues, self._selectable)
        self._are_queues_stale = False
        self._stale_queues.clear()
        if self._queues is before:
            return
        changed = {name for name, queue in self._queues.items() if before.get(name) != queue}
        if before.keys() != self._queues.keys() or any(
            not is_same_quota(before[name], self._queues[name]) for name in changed
        ):
            self._changed.is_all = True
        self._changed.queues |= changed
        self._facts = None

    def _refresh_fleet_policies(self) -> None:
        """Resolves fleet policies; if any changed, all workloads are read again."""
        if not self._are_fleet_policies_stale:
            return
        self._are_fleet_policies_stale = False
        result = governing_of(self._objects.fleet_policies, self._selectable)
        if result != self._fleet_policies:
            self._fleet_policies = result
            self._stale_workloads.update(self._objects.workloads)

    def _refresh_policies(self) -> None:
        result = {
            key: policies.policy_of(self._objects.policies[key], self._selectable)
            for key in sorted(self._objects.policies)
        }
        if result != self._policies:
            self._policies = result
            self._changed.has_policies, self._facts = True, None


def _uid(workload: Workload | None) -> str:
    return workload.metadata.uid if workload is not None else ""
