"""Which Rollout a service has, and which revision each of its clusters is to have by it.

Of several Rollouts for one service the oldest counts, so that one made by mistake changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from fairway.api.names import native_workload_name, revision_name
from fairway.api.rollout import ClusterRevision, Revision, Rollout
from fairway.api.workload import Template, Workload
from fairway.controllers.cache import Cache
from fairway.kinds.registry import KnownKinds
from fairway.kinds.updates import Pace, mark_of
from fairway.store.interface import Stored
from fairway.store.keys import REVISIONS, ROLLOUTS
from fairway.store.mirrors import Name

RegisterFollower = Callable[[Name], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a cluster is to have of a service with a Rollout."""

    template: Template
    pace: Pace
    second: Second | None = None  # what a second object runs beside the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """Replicas of a cluster that a second object runs."""

    template: Template
    pace: Pace
    replicas: int


class Register:
    """Rollouts by their workload."""

    def __init__(self, cache: Cache) -> None:
        self.followers: list[RegisterFollower] = []  # called with workloads
        self._cache = cache
        self._by_workload: dict[Name, set[Name]] = {}
        self._workloads: dict[Name, Name] = {}  # by rollout
        for kind, follow in ((ROLLOUTS, self._rollout_changed), (REVISIONS, self._revise)):
            mirror = cache.mirror(kind)
            mirror.followers.append(follow)
            for name, stored in mirror.items():
                follow(name, stored)

    def of(self, workload: Workload) -> Rollout | None:
        """The Rollout that counts for a workload; only Divided workloads have one."""
        if workload.spec.mode != "Divided" or workload.spec.template is None:
            return None
        name = (workload.metadata.namespace, workload.metadata.name)
        rollouts = [
            self._cache.get(Rollout, pair[1], pair[0]) for pair in self._by_workload.get(name, ())
        ]
        there = [rollout for rollout in rollouts if rollout is not None]
        return min(there, key=_age, default=None)

    def rollouts_of(self, workload: Name) -> list[Name]:
        return sorted(self._by_workload.get(workload, ()))

    def _rollout_changed(self, name: Name, stored: Stored | None) -> None:
        before = self._workloads.pop(name, None)
        if before is not None:
            self._by_workload[before].discard(name)
            if not self._by_workload[before]:
                del self._by_workload[before]
        rollout = self._cache.get(Rollout, name[1], name[0]) if stored is not None else None
        after = workload_of(rollout) if rollout is not None else None
        if after is not None:
            self._workloads[name] = after
            self._by_workload.setdefault(after, set()).add(name)
        self._tell({pair for pair in (before, after) if pair is not None})

    def _revise(self, name: Name, stored: Stored | None) -> None:
        revision = self._cache.get(Revision, name[1], name[0]) if stored is not None else None
        if revision is not None:
            self._tell({(name[0], revision.spec.workload)})

    def _tell(self, workloads: set[Name]) -> None:
        for workload in sorted(workloads):
            for follow in self.followers:
                follow(workload)


def workload_of(rollout: Rollout) -> Name:
    """The workload that a Rollout is for."""
    reference = rollout.spec.workload
    if reference.kind == "Workload":
        return (rollout.metadata.namespace, reference.name)
    return (rollout.metadata.namespace, native_workload_name(reference.kind, reference.name))


def stages_of(
    cache: Cache, rollout: Rollout, workload: Workload, kinds: KnownKinds
) -> dict[str, Stage]:
    """What each cluster is to have; a cluster that is missing waits until that is decided.

    For the workload's present revision its own template counts: fields that do not affect pods may
    have changed since.
    """
    namespace, template = workload.metadata.namespace, workload.spec.template
    assert template is not None, "only workloads with a template have Rollouts that count"
    own = mark_of(template.manifests, kinds)
    unmarked = {revision.mark for revision in rollout.status.history if revision.is_unmarked}
    templates = {own: template}
    stages = {}
    for cluster in rollout.status.clusters:
        marks = {cluster.mark, cluster.base or cluster.mark}
        for mark in marks - templates.keys():
            revision = cache.get(Revision, revision_name(rollout.metadata.name, mark), namespace)
            if revision is not None:
                templates[mark] = revision.spec.template
        if not marks <= templates.keys():
            continue  # it is written before it is referred to; the mirror will see it soon
        stages[cluster.cluster] = _stage(cluster, templates, unmarked)
    return stages


def _stage(
    cluster: ClusterRevision, templates: Mapping[str, Template], unmarked: Set[str]
) -> Stage:
    def pace_of(mark: str, share: int | None) -> Pace:
        label = "" if mark in unmarked else mark
        return Pace(mark=label, share=share, allowance=cluster.allowance)

    second = None
    if cluster.beside:
        pace = pace_of(cluster.mark, None)
        second = Second(template=templates[cluster.mark], pace=pace, replicas=cluster.beside)
    mark = cluster.base or cluster.mark
    pace = pace_of(mark, None if cluster.base else cluster.share)
    return Stage(template=templates[mark], pace=pace, second=second)


def _age(rollout: Rollout) -> tuple[str, str]:
    made = rollout.metadata.creation_timestamp
    return (made.isoformat() if made else "", rollout.metadata.name)
