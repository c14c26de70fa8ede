"""Works of one workload: which are made, changed, tombstoned or deleted.

There is one work for a workload in a cluster, whatever the attempt. A work is deleted only once
nothing of it is left; everything else that is not wanted any more is tombstoned, and so stopped by
its agent. What an agent brought back is left alone until the workload has a claim again. In a
cluster that is only observed, or that the hub merely shadows, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from typing import Literal

from msgspec.structs import replace

from fairway.api.claim import Claim, Placement
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.meta import JsonObject, ObjectMeta, WorkloadReference
from fairway.api.names import ADOPTED, OVER, work_name, work_namespace
from fairway.api.work import PoolNodes, Stop, Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.lifecycle.case import (
    ClusterFacts,
    Settings,
    WorkObservation,
    lost_action,
    silence_allowed,
)
from fairway.controllers.lifecycle.leaving_replicas import placements_now
from fairway.controllers.scheduling.claims import last_attempt
from fairway.controllers.works import generated
from fairway.controllers.works.adoption import PLACEMENT, is_adopted, is_own, note_of
from fairway.controllers.works.manifests import Surroundings, manifests_of, work_pod_sets
from fairway.controllers.works.revisions import Stages, as_staged, manifests_in_use, pace_of
from fairway.controllers.works.victims import victims_left
from fairway.kinds import permitted, ranges
from fairway.kinds.decision import REVISION
from fairway.kinds.registry import KnownKinds, built_in
from fairway.view.workloads import seconds_left

AVOIDED_NODES = "fairway.dev/avoided-nodes"
Desired = Literal["Run", "Reserve", "Hold"]
_AVOIDED_MOST = 64
_ACCEPTED = "Accepted"  # the condition by which an agent says whether it took a work
_OWN_ANNOTATIONS = (PLACEMENT, AVOIDED_NODES, REVISION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Replaces a work; it carries the version that it was derived from."""

    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Removes a work of which nothing is left."""

    work: Work


WorkWrite = Create | Update | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A workload, and all that its works are derived from."""

    workload: Workload | None  # None: it was removed
    now: float
    term: int
    works: Mapping[str, Work] = field(default_factory=dict)  # by cluster
    seen: Mapping[str, WorkObservation] = field(default_factory=dict)  # by cluster
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    victims: Mapping[str, Workload] = field(default_factory=dict)  # that exist; see `mentioned`
    objects: Sequence[JsonObject] = ()  # dependencies that were found
    settings: Settings = field(default_factory=Settings)
    kinds: KnownKinds = field(default_factory=built_in)
    stages: Stages = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    writes: tuple[WorkWrite, ...] = ()
    faults: tuple[str, ...] = ()  # why the manifests of the workload cannot be sent
    is_held_back: bool = False  # until agents forget an earlier workload of the name


def derive(known: Known) -> Derived:
    """What must be written so that every cluster is told what it is to run."""
    workload = known.workload
    if workload is None:
        return Derived(writes=tuple(_forgotten(known)))
    if _is_behind(known, workload):
        return Derived()
    manifests = manifests_in_use(workload, known.stages)
    claim = workload.status.claim
    faults = permitted.faults(manifests, workload.metadata.namespace)
    if claim is not None:
        names = {placement.cluster for placement in claim.placements}
        placed = [cluster for name, cluster in known.clusters.items() if name in names]
        faults += generated.faults(workload, placed)
        faults += _refused_there(known, manifests, placed)
    writes: list[WorkWrite] = []
    running: set[str] = set()
    is_held_back = False
    if claim is not None and not faults:
        known_claim = with_fields(known, works=_own(known, workload))
        for placement in placements_now(claim, workload.status.releasing):
            if not _may_run(known, workload, placement):
                continue
            running.add(placement.cluster)
            if _is_remembered(known, placement):
                is_held_back = True
            elif known.stages is None or placement.cluster in known.stages:
                there = as_staged(workload, known.stages, placement.cluster)
                writes.extend(_run(known_claim, there, claim, placement))
    writes.extend(_rest(known, workload, running))
    return Derived(writes=tuple(writes), faults=tuple(faults), is_held_back=is_held_back)


def _is_behind(known: Known, workload: Workload) -> bool:
    """Whether its works tell of a later attempt: it was claimed anew, which is told in a moment."""
    last = last_attempt(workload.status)
    return any(
        work.spec.attempt > last and not work.spec.tombstone and not is_adopted(work)
        for work in _own(known, workload).values()
    )


def _refused_there(
    known: Known, manifests: Sequence[JsonObject], placed: Sequence[Cluster]
) -> Iterator[str]:
    """What the clusters of a claim do not permit; agents refuse it as well."""
    along = [*manifests, *known.objects]
    for cluster in placed:
        if cluster.spec.kubernetes is None:
            continue
        faults = permitted.faults_in(along, cluster.spec.kubernetes.permits, known.kinds.of)
        for position, several in faults.items():
            if position < len(manifests):
                where = f"spec.template.manifests[{position}]"
                yield from (f"{where}.{name} (in {cluster.metadata.name})" for name in several)


def _is_remembered(known: Known, placement: Placement) -> bool:
    """Whether its agent has yet to forget what an earlier workload of this name had there."""
    seen = known.seen.get(placement.cluster)
    has_work = placement.cluster in known.works
    return not has_work and seen is not None and seen.attempt >= placement.attempt


def _own(known: Known, workload: Workload) -> dict[str, Work]:
    """Its works, without those of an earlier workload of the same name."""
    return {name: work for name, work in known.works.items() if is_own(work, workload)}


def _is_managed(known: Known, cluster: str) -> bool:
    result = known.clusters.get(cluster)
    return result is not None and result.spec.mode == "Manage"


def _may_run(known: Known, workload: Workload, placement: Placement) -> bool:
    """Whether nothing earlier must be gone first from its place."""
    cluster = placement.cluster
    if not _is_managed(known, cluster):
        return False
    if any(
        other.cluster == cluster and other.attempt != placement.attempt
        for other in workload.status.releasing
    ):
        return False
    work = known.works.get(cluster)
    return work is None or is_own(work, workload)


# What is to run.


def _run(
    known: Known, workload: Workload, claim: Claim, placement: Placement
) -> Iterator[WorkWrite]:
    before = known.works.get(placement.cluster)
    is_sent = before is not None and before.spec.attempt == placement.attempt
    is_sent = is_sent and before is not None and not before.spec.tombstone
    if not is_sent and victims_left(claim, known.victims):
        return
    same = before if is_sent else None
    placement = _with_whole_runs(workload, placement, same)
    work = _work(known, workload, claim, placement, same)
    if before is None:
        yield Create(work=work)
    elif not _is_same(before, work):
        yield Update(work=replace(work, metadata=_keep(before, work)))


def _with_whole_runs(workload: Workload, placement: Placement, same: Work | None) -> Placement:
    """With tasks that are over, where others of their run are not: runs are never cut anew."""
    asked = workload.spec.tasks
    if same is None or asked is None or not same.spec.tasks:
        return placement
    sent, wanted = ranges.parse(same.spec.tasks), ranges.parse(placement.tasks)
    if not set(ranges.numbers(wanted)) - set(ranges.numbers(sent)):
        return _with_tasks(placement, sent)
    runs = {(number - asked.first) // asked.range_size for number in ranges.numbers(wanted)}
    kept = [
        number
        for number in ranges.numbers(sent)
        if (number - asked.first) // asked.range_size in runs
    ]
    return _with_tasks(placement, ranges.union([wanted, ranges.of(kept)]))


def _with_tasks(placement: Placement, tasks: ranges.Ranges) -> Placement:
    """A placement of other tasks, with pods in proportion."""
    before = max(1, ranges.size(ranges.parse(placement.tasks)))
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count * ranges.size(tasks) // before)
        for pod_set in placement.pod_sets
    )
    return replace(placement, tasks=ranges.text(tasks), pod_sets=pod_sets)


def _work(
    known: Known, workload: Workload, claim: Claim, placement: Placement, same: Work | None
) -> Work:
    cluster = known.clusters[placement.cluster]
    name = work_name(workload.metadata.namespace, workload.metadata.name)
    aside = _avoided(known, cluster, same)
    around = Surroundings(
        cluster=cluster,
        kinds=known.kinds,
        flavors=known.flavors,
        objects=known.objects,
        avoided_nodes=aside,
        pace=pace_of(
            workload,
            known.stages,
            known.works.get(placement.cluster),
            cluster=placement.cluster,
            kinds=known.kinds,
        ),
    )
    spec = WorkSpec(
        cluster=placement.cluster,
        workload=_reference(workload),
        attempt=placement.attempt,
        term=known.term,
        desired=_desired(known, workload, claim, same),
        manifests=manifests_of(workload, placement, name, around),
        pod_sets=work_pod_sets(placement, known.flavors),
        tasks=placement.tasks,
        provision=_provision(claim, placement.cluster),
        run_seconds_estimate=seconds_left(workload),
        stop=_stop(workload),
        stop_when_silent_seconds=_silence(known, cluster, same),
    )
    annotations = {PLACEMENT: note_of(placement)}
    if aside:
        annotations[AVOIDED_NODES] = ",".join(aside)
    if around.pace.mark:
        annotations[REVISION] = around.pace.mark
    metadata = ObjectMeta(
        name=name, namespace=work_namespace(placement.cluster), annotations=annotations
    )
    return Work(metadata=metadata, spec=spec)


def _reference(workload: Workload) -> WorkloadReference:
    metadata = workload.metadata
    return WorkloadReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def _avoided(known: Known, cluster: Cluster, same: Work | None) -> tuple[str, ...]:
    """Nodes that an attempt keeps away from, as when it was first written: pods can't change."""
    if same is not None:
        names = same.metadata.annotations.get(AVOIDED_NODES, "")
        return tuple(names.split(",")) if names else ()
    aside = [
        node.name
        for node in cluster.status.avoided_nodes
        if node.until is None or node.until.timestamp() > known.now
    ]
    return tuple(sorted(aside)[:_AVOIDED_MOST])


def _desired(known: Known, workload: Workload, claim: Claim, same: Work | None) -> Desired:
    """Run; or hold capacity with placeholders until every part of the gang has its own."""
    if same is not None and same.spec.desired == "Run":
        return "Run"
    if any(victim.type == "Data" for victim in claim.waits_for):
        return "Hold"
    gang = workload.spec.gang
    start = (gang.start if gang else None) or known.settings.fleet.defaults.gang_start
    if workload.spec.mode != "Gang" or gang is None or not gang.placeholders or start != "Reserve":
        return "Run"
    are_reserved = all(
        (seen := known.seen.get(placement.cluster)) is not None
        and seen.attempt == placement.attempt
        and seen.phase in ("Reserved", "Running", "Succeeded")
        for placement in claim.placements
    )
    return "Run" if are_reserved else "Reserve"


def _provision(claim: Claim, cluster: str) -> tuple[PoolNodes, ...]:
    return tuple(
        PoolNodes(pool=victim.pool, count=victim.count)
        for victim in claim.waits_for
        if victim.type == "Provision" and victim.cluster == cluster and victim.pool
    )


def _stop(workload: Workload) -> Stop:
    checkpoint = workload.spec.checkpoint
    if checkpoint is None:
        return Stop()
    return Stop(signal=checkpoint.signal, grace_seconds=checkpoint.grace_seconds)


def _silence(known: Known, cluster: Cluster, same: Work | None) -> int | None:
    """What the agent is told to bear; a cluster that does not listen knows what it was told."""
    if same is not None and cluster.status.phase in ("Unready", "Lost"):
        return same.spec.stop_when_silent_seconds
    place = ClusterFacts(when_lost=cluster.spec.when_lost)
    if lost_action(known.settings, place) != "StopAndMove" or _is_reached_from_here(cluster):
        return None
    return silence_allowed(known.settings, place)


def _is_reached_from_here(cluster: Cluster) -> bool:
    """Whether its agent runs in the hub: when the way there is cut, nobody can stop anything.

    A promise to stop after a while would be empty then, so what is there is waited for.
    """
    settings = cluster.spec.kubernetes
    return settings is not None and settings.connection == "Push"


def _is_same(before: Work, after: Work) -> bool:
    """Whether a work says the same already; the term is that of whoever wrote it last."""
    return (
        replace(before.spec, term=0) == replace(after.spec, term=0)
        and not is_adopted(before)
        and not is_refused(before)
        and all(_note(before, key) == _note(after, key) for key in _OWN_ANNOTATIONS)
    )


def is_refused(work: Work) -> bool:
    """Whether its agent did not take it as it is now, since it knew of a higher term.

    Works are written one by one as terms go on. One who was away, or busy with this work, hears of
    a later one first; the leader's word of today is then to be said again in the term of today.
    """
    return any(
        condition.type == _ACCEPTED
        and condition.status == "False"
        and condition.reason == "TermTooLow"
        and condition.observed_generation == work.metadata.generation
        for condition in work.status.conditions
    )


def _note(work: Work, key: str) -> str:
    return work.metadata.annotations.get(key, "")


def _keep(before: Work, after: Work) -> ObjectMeta:
    """What others wrote there stays."""
    others = {
        key: value
        for key, value in before.metadata.annotations.items()
        if key not in _OWN_ANNOTATIONS
    }
    labels = {key: value for key, value in before.metadata.labels.items() if key != ADOPTED}
    annotations = {**others, **after.metadata.annotations}
    return replace(before.metadata, labels=labels, annotations=annotations)


# What is not to run any more.


def _rest(known: Known, workload: Workload, running: set[str]) -> Iterator[WorkWrite]:
    """Works that no placement of the claim asks for."""
    status = workload.status
    claimed = (
        {placement.cluster for placement in status.claim.placements} if status.claim else set()
    )
    leaving = {
        placement.cluster: placement
        for placement in status.releasing
        if placement.cluster not in running
    }
    for cluster, placement in leaving.items():
        if cluster not in known.works and _is_managed(known, cluster):
            yield Create(work=_tombstone(known, workload, placement))
    for cluster in sorted(set(known.works) - running):
        work = known.works[cluster]
        if cluster not in leaving and _is_done_with(known, workload, work):
            yield Delete(work=work)
        elif not _is_managed(known, cluster):
            continue
        elif cluster in leaving:
            # What was never sent leaves as well: its agent must answer for that attempt.
            is_its = is_own(work, workload)
            yield from _stopped(known, work, leaving[cluster].attempt if is_its else 0)
        elif cluster not in claimed and (
            (work.spec.tombstone and is_refused(work)) or _is_surplus(known, workload, work)
        ):
            yield from _stopped(known, work)


def _is_done_with(known: Known, workload: Workload | None, work: Work) -> bool:
    """Whether nothing is left of a work, or nothing that anybody would ask for."""
    cluster = work.spec.cluster
    if cluster not in known.clusters:
        return True
    seen = known.seen.get(cluster)
    if seen is None or seen.attempt < work.spec.attempt:
        return False
    if seen.is_over and (workload is None or not is_own(work, workload)):
        return True
    return work.spec.tombstone and seen.phase == "Gone"


def _is_surplus(known: Known, workload: Workload, work: Work) -> bool:
    """Whether a work runs, or may run, that nobody decided on; what is over is kept for its logs.

    One that an agent brought back is not: the workload takes it over.
    """
    seen = known.seen.get(work.spec.cluster)
    if seen is not None and seen.attempt >= work.spec.attempt and seen.is_over:
        return False
    if workload.status.phase in OVER:
        return seen is not None and seen.phase != "Gone"
    return not is_adopted(work)


def _stopped(known: Known, work: Work, attempt: int = 0) -> Iterator[WorkWrite]:
    """A work with a tombstone, of at least an attempt."""
    attempt = max(attempt, work.spec.attempt)
    if not work.spec.tombstone or attempt > work.spec.attempt or is_refused(work):
        spec = replace(work.spec, desired="Stop", tombstone=True, attempt=attempt, term=known.term)
        yield Update(work=replace(work, spec=spec))


def _tombstone(known: Known, workload: Workload, placement: Placement) -> Work:
    """A work that was never made is refused once and for all, whoever may yet try to make it."""
    spec = WorkSpec(
        cluster=placement.cluster,
        workload=_reference(workload),
        attempt=placement.attempt,
        term=known.term,
        desired="Stop",
        stop=_stop(workload),
        tombstone=True,
    )
    metadata = ObjectMeta(
        name=work_name(workload.metadata.namespace, workload.metadata.name),
        namespace=work_namespace(placement.cluster),
    )
    return Work(metadata=metadata, spec=spec)


def _forgotten(known: Known) -> Iterator[WorkWrite]:
    """Works of a workload that was removed: what is over goes, what runs is left alone.

    So does what its agent never took and tells nothing of, as one does that lost its disk and heard
    a later term first. Nothing is stopped by that: an agent that has it after all puts it back.
    """
    for cluster in sorted(known.works):
        work = known.works[cluster]
        was_never_taken = is_refused(work) and cluster not in known.seen
        if _is_done_with(known, None, work) or (was_never_taken and not work.spec.tombstone):
            yield Delete(work=work)
        elif work.spec.tombstone and is_refused(work):
            yield from _stopped(known, work)
