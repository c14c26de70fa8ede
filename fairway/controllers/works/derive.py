"""Which works of a workload are created, updated, tombstoned or deleted.

A workload has one work per cluster, for all attempts. A work is deleted only once nothing of it is
left; any other work that is no longer wanted is tombstoned, so that its agent stops it. A work that
an agent brought back is left alone until the workload has a claim again. A work that the hub did
not decide counts for nothing: it is replaced when its place is needed. Nothing is written for
clusters that are only observed or shadowed.
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
from fairway.api.governance import FleetPolicySpec
from fairway.api.meta import JsonObject, ObjectMeta, WorkloadReference
from fairway.api.names import ADOPTED, OVER, PLACEMENT, PROOF, work_name, work_namespace
from fairway.api.work import PoolNodes, Stop, Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.adoption import is_adopted, is_later, is_own, note_of
from fairway.controllers.lifecycle.case import (
    ClusterFacts,
    Settings,
    WorkObservation,
    lost_action,
    silence_allowed,
)
from fairway.controllers.lifecycle.leaving_replicas import placements_now
from fairway.controllers.proofs import Proofs
from fairway.controllers.works.manifests import Surroundings, manifests_of, work_pod_sets
from fairway.controllers.works.refusals import new_violations, refused_there
from fairway.controllers.works.revisions import Stages, as_staged, manifests_in_use, pace_of
from fairway.controllers.works.sweeps import with_whole_runs
from fairway.controllers.works.verdicts import is_not_there, is_outdated, is_refused
from fairway.controllers.works.victims import victims_left
from fairway.governance.works import work_policies
from fairway.kinds import permitted
from fairway.kinds.decision import REVISION
from fairway.kinds.registry import KnownKinds, built_in
from fairway.view.workloads import last_attempt, seconds_left

AVOIDED_NODES = "fairway.dev/avoided-nodes"
Desired = Literal["Run", "Reserve"]
_AVOIDED_MOST = 64
_OWN_ANNOTATIONS = (PLACEMENT, PROOF, AVOIDED_NODES, REVISION)


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
    """A workload, and everything that its works are derived from."""

    workload: Workload | None  # None: it was removed
    now: float
    term: int
    proofs: Proofs
    works: Mapping[str, Work] = field(default_factory=dict)  # by cluster
    strangers: Mapping[str, Work] = field(default_factory=dict)  # that the hub did not decide
    seen: Mapping[str, WorkObservation] = field(default_factory=dict)  # by cluster
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    flavors: Mapping[str, Flavor] = field(default_factory=dict)
    victims: Mapping[str, Workload] = field(default_factory=dict)  # that exist; by `mention`
    objects: Sequence[JsonObject] = ()  # dependencies that were found
    settings: Settings = field(default_factory=Settings)
    kinds: KnownKinds = field(default_factory=built_in)
    stages: Stages = None
    policies: Mapping[str, FleetPolicySpec] = field(default_factory=dict)  # enforced, by name
    closed: frozenset[str] = frozenset()  # clusters that get nothing new of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    writes: tuple[WorkWrite, ...] = ()
    faults: tuple[str, ...] = ()  # why the manifests of the workload cannot be sent
    withheld: tuple[str, ...] = ()  # why a change of a running work is not sent
    refused_in: frozenset[str] = frozenset()  # clusters to blame for that; none: all would refuse
    is_held_back: bool = False  # until agents forget an earlier workload of this name


def derive(known: Known) -> Derived:
    """The writes after which every cluster has the works that it is to run."""
    workload = known.workload
    outdated = [Delete(work=work) for work in known.works.values() if is_outdated(work)]
    if outdated:
        # This stops nothing: an agent brings back what it has in place of what it refused.
        return Derived(writes=tuple(outdated))
    if workload is None:
        return Derived(writes=tuple(_forgotten(known)))
    if _is_behind(known, workload):
        return Derived()
    manifests = manifests_in_use(workload, known.stages)
    claim = workload.status.claim
    faults = permitted.faults(manifests, workload.metadata.namespace)
    refused_in: frozenset[str] = frozenset()
    if claim is not None and not faults:
        names = {placement.cluster for placement in claim.placements}
        placed = [cluster for name, cluster in known.clusters.items() if name in names]
        faults, refused_in = refused_there(
            workload, manifests, known.objects, placed, known.works, kinds=known.kinds
        )
    writes: list[WorkWrite] = []
    withheld: list[str] = []
    running: set[str] = set()
    is_held_back = False
    if claim is not None and not faults:
        known_claim = with_fields(known, works=_own(known, workload))
        for placement in placements_now(claim, workload.status.releasing):
            if not _may_run(known, workload, placement):
                continue
            running.add(placement.cluster)
            if placement.cluster in known.closed:
                withheld.append(f"{placement.cluster} gets nothing new: it may not run there now")
            elif _is_remembered(known, placement):
                is_held_back = True
            elif known.stages is None or placement.cluster in known.stages:
                there = as_staged(workload, known.stages, placement.cluster)
                for write in _run(known_claim, there, claim, placement):
                    refused = new_violations(
                        write.work.spec, known_claim.works.get(placement.cluster)
                    )
                    withheld += refused
                    writes += [] if refused else [write]
    writes.extend(_rest(known, workload, running))
    return Derived(
        writes=tuple(writes),
        faults=tuple(faults),
        withheld=tuple(withheld),
        refused_in=refused_in,
        is_held_back=is_held_back,
    )


def _is_behind(known: Known, workload: Workload) -> bool:
    """Whether its works have a later attempt: its new claim is not delivered yet."""
    last = last_attempt(workload.status)
    return any(
        work.spec.attempt > last and not work.spec.tombstone and not is_adopted(work)
        for work in _own(known, workload).values()
    )


def _is_remembered(known: Known, placement: Placement) -> bool:
    """Whether the agent still remembers a work of an earlier workload of this name."""
    seen = known.seen.get(placement.cluster)
    has_work = placement.cluster in known.works
    return not has_work and seen is not None and seen.attempt >= placement.attempt


def _own(known: Known, workload: Workload) -> dict[str, Work]:
    """Its works, without those of an earlier workload of the same name."""
    return {name: work for name, work in known.works.items() if is_own(work, workload, known.kinds)}


def _is_managed(known: Known, cluster: str) -> bool:
    result = known.clusters.get(cluster)
    return result is not None and result.spec.mode == "Manage"


def _may_run(known: Known, workload: Workload, placement: Placement) -> bool:
    """Whether no earlier attempt or workload must first be gone from its cluster."""
    cluster = placement.cluster
    if not _is_managed(known, cluster):
        return False
    if any(
        other.cluster == cluster and other.attempt != placement.attempt
        for other in workload.status.releasing
    ):
        return False
    work = known.works.get(cluster)
    return work is None or is_own(work, workload, known.kinds)


# Works that are to run.


def _run(
    known: Known, workload: Workload, claim: Claim, placement: Placement
) -> Iterator[WorkWrite]:
    before = known.works.get(placement.cluster)
    is_sent = before is not None and before.spec.attempt == placement.attempt
    is_sent = is_sent and before is not None and not before.spec.tombstone
    if not is_sent and victims_left(claim, known.victims, known.now):
        return
    same = before if is_sent else None
    placement = with_whole_runs(workload, placement, same)
    work = _work(known, workload, claim, placement, same)
    if before is None:
        yield _first(known, work)
    elif not _is_same(before, work):
        yield Update(work=replace(work, metadata=_keep(before, work)))


def _first(known: Known, work: Work) -> WorkWrite:
    """The first write of a work; one that the hub did not decide may be in its place."""
    stranger = known.strangers.get(work.spec.cluster)
    if stranger is None:
        return Create(work=work)
    return Update(work=replace(work, metadata=_keep(stranger, work)))


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
        second=known.stages[placement.cluster].second if known.stages is not None else None,
    )
    spec = WorkSpec(
        cluster=placement.cluster,
        workload=_reference(workload),
        attempt=placement.attempt,
        term=known.term,
        desired=_desired(known, workload, claim, same),
        manifests=manifests_of(workload, placement, name, around),
        pod_sets=work_pod_sets(placement),
        tasks=placement.tasks,
        provision=_provision(claim, placement.cluster),
        run_seconds_estimate=seconds_left(workload),
        stop=_stop(workload),
        stop_when_silent_seconds=_silence(known, cluster, same),
        policies=work_policies(
            known.policies,
            cluster.spec.profile.mirrors,
            has_template=workload.spec.template is not None,
        ),
    )
    annotations = {PLACEMENT: note_of(placement)}
    if aside:
        annotations[AVOIDED_NODES] = ",".join(aside)
    if around.pace.mark:
        annotations[REVISION] = around.pace.mark
    metadata = ObjectMeta(
        name=name, namespace=work_namespace(placement.cluster), annotations=annotations
    )
    return _with_proof(known, Work(metadata=metadata, spec=spec))


def _with_proof(known: Known, work: Work) -> Work:
    """A work with the proof of what it says; only for what this hub has decided."""
    annotations = {**work.metadata.annotations, PROOF: known.proofs.of(work)}
    return replace(work, metadata=replace(work.metadata, annotations=annotations))


def _reference(workload: Workload) -> WorkloadReference:
    metadata = workload.metadata
    return WorkloadReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def _avoided(known: Known, cluster: Cluster, same: Work | None) -> tuple[str, ...]:
    """Nodes that an attempt avoids, as in its first write: pods cannot change later."""
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
    """Run, or Reserve until every placement has its placeholders."""
    if same is not None and same.spec.desired == "Run":
        return "Run"
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
    """Silence after which the agent stops the work; unchanged while the cluster is silent."""
    if same is not None and cluster.status.phase in ("Unready", "Lost"):
        return same.spec.stop_when_silent_seconds
    place = ClusterFacts(when_lost=cluster.spec.when_lost)
    if lost_action(known.settings, place) != "StopAndMove" or _is_reached_from_here(cluster):
        return None
    return silence_allowed(known.settings, place)


def _is_reached_from_here(cluster: Cluster) -> bool:
    """Whether its agent runs in the hub, and so cannot stop anything once the connection is lost.

    It could not keep a promise to stop after a while, so what runs there is waited for.
    """
    settings = cluster.spec.kubernetes
    return settings is not None and settings.connection == "Push"


def _is_same(before: Work, after: Work) -> bool:
    """Whether a work needs no update; the term or changed policies alone are no reason for one."""
    return (
        replace(before.spec, term=0, policies=()) == replace(after.spec, term=0, policies=())
        and not is_adopted(before)
        and not is_refused(before)
        and all(_note(before, key) == _note(after, key) for key in _OWN_ANNOTATIONS)
    )


def _note(work: Work, key: str) -> str:
    return work.metadata.annotations.get(key, "")


def _keep(before: Work, after: Work) -> ObjectMeta:
    """Metadata that keeps the labels and annotations of other writers."""
    others = {
        key: value
        for key, value in before.metadata.annotations.items()
        if key not in _OWN_ANNOTATIONS
    }
    labels = {key: value for key, value in before.metadata.labels.items() if key != ADOPTED}
    annotations = {**others, **after.metadata.annotations}
    return replace(before.metadata, labels=labels, annotations=annotations)


# Works that are no longer to run.


def _rest(known: Known, workload: Workload, running: set[str]) -> Iterator[WorkWrite]:
    """Stops or deletes works that no placement of the claim needs."""
    status = workload.status
    claimed = (
        {placement.cluster for placement in status.claim.placements} if status.claim else set()
    )
    claimed.update(status.succeeded_clusters)  # the works of copies that are over stay
    leaving = {
        placement.cluster: placement
        for placement in status.releasing
        if placement.cluster not in running
    }
    for cluster, placement in leaving.items():
        if cluster not in known.works and _is_managed(known, cluster):
            yield _first(known, _tombstone(known, workload, placement))
    for cluster in sorted(set(known.works) - running):
        work = known.works[cluster]
        is_its = is_own(work, workload, known.kinds)
        is_needed = is_its and cluster in leaving
        if not is_needed and _is_done_with(known, work, is_its=is_its):
            yield Delete(work=work)
        elif not _is_managed(known, cluster) or _is_left_to(known, workload, work):
            continue
        elif cluster in leaving:
            # Also for an attempt that was never sent: its agent must confirm that it is gone.
            yield from _stopped(known, work, leaving[cluster].attempt if is_its else 0)
        elif cluster not in claimed and (
            (work.spec.tombstone and is_refused(work))
            or _is_surplus(known, workload, work, is_its=is_its)
        ):
            yield from _stopped(known, work)


def _is_left_to(known: Known, workload: Workload, work: Work) -> bool:
    """Whether a workload that stops has yet to take over a later attempt that was brought back."""
    return workload.status.phase == "Stopping" and is_later(work, workload, known.kinds)


def _is_done_with(known: Known, work: Work, *, is_its: bool) -> bool:
    """Whether nothing is left of a work, or nothing that is still needed.

    A work of no workload, or of an earlier one of that name, is also done with if its agent refused
    it and does not report it, as an agent does that has forgotten it, and saw a later term first.
    Its removal stops nothing: an agent that does run it brings it back.
    """
    cluster = work.spec.cluster
    if cluster not in known.clusters:
        return True
    seen = known.seen.get(cluster)
    if seen is None and not is_its and is_not_there(work) and not work.spec.tombstone:
        return True
    if seen is None or seen.attempt < work.spec.attempt:
        return False
    is_gone = seen.phase == "Gone"
    if (seen.is_over or is_gone) and not is_its:
        return True
    return work.spec.tombstone and is_gone


def _is_surplus(known: Known, workload: Workload, work: Work, *, is_its: bool) -> bool:
    """Whether a work runs, or may run, without a decision; finished works stay for their logs.

    A work that an agent brought back is no surplus if the workload takes it over. It does not take
    over an attempt that it knows, and has elsewhere or has ended; a service adds what still runs,
    by its proof. Nor does it take over what runs of an earlier workload unlike it: it waits for
    that to be gone.
    """
    seen = known.seen.get(work.spec.cluster)
    if seen is not None and seen.attempt >= work.spec.attempt and seen.is_over:
        return False
    if workload.status.phase in OVER:
        return seen is not None and seen.phase != "Gone"
    is_known = work.spec.attempt <= last_attempt(workload.status)
    is_added = workload.spec.mode == "Divided" and known.proofs.holds(work)
    is_unlike = seen is not None and not is_its
    return not is_adopted(work) or (is_known and not is_added) or is_unlike


def _stopped(known: Known, work: Work, attempt: int = 0) -> Iterator[WorkWrite]:
    """Tombstones a work, with at least the given attempt."""
    attempt = max(attempt, work.spec.attempt)
    if not work.spec.tombstone or attempt > work.spec.attempt or is_refused(work):
        spec = replace(work.spec, desired="Stop", tombstone=True, attempt=attempt, term=known.term)
        yield Update(work=_with_proof(known, replace(work, spec=spec)))


def _tombstone(known: Known, workload: Workload, placement: Placement) -> Work:
    """A tombstone for a work that was never created, so that a late write cannot start it."""
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
    return _with_proof(known, Work(metadata=metadata, spec=spec))


def _forgotten(known: Known) -> Iterator[WorkWrite]:
    """Works of a removed workload: deletes those that are over, leaves running ones alone."""
    for cluster in sorted(known.works):
        work = known.works[cluster]
        if _is_done_with(known, work, is_its=False):
            yield Delete(work=work)
        elif work.spec.tombstone and is_refused(work):
            yield from _stopped(known, work)
