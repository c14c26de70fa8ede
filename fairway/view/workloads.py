"""Workloads as the core's plain values, with every default resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from fairway.api.claim import Claim, PastAttempt, PlacedPodSet, Placement, WorkloadMention
from fairway.api.fleet import FleetSpec
from fairway.api.names import OVER
from fairway.api.podset import PodSet
from fairway.api.queue import Queue
from fairway.api.reasons import REFUSALS
from fairway.api.submission import (
    CREATED_BY,
    SUBMITTED_BY,
    Submission,
    refusing_queue,
    user_of,
)
from fairway.api.workload import Workload, WorkloadStatus
from fairway.core import model
from fairway.core.seats import are_alike
from fairway.kinds import growth, ranges
from fairway.kinds.device_claims import Claims
from fairway.kinds.disruption import budget_of
from fairway.kinds.native import DEFAULT_QUEUE
from fairway.kinds.registry import Kinds, KnownKinds, built_in
from fairway.kinds.volumes import pinned_to
from fairway.view.admission import Rules, admitted_forms, refusing_clusters
from fairway.view.charges import counts_as
from fairway.view.devices import classes_of, completed, counted_devices, taken_beside
from fairway.view.fleet_policies import Governing, broken_rules, capped, limited, that_apply
from fairway.view.forms import Forms, forms_of
from fairway.view.pod_counts import count_pods
from fairway.view.queues import line_of, named_line_of, request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The sources of defaults for fields that a workload leaves out."""

    fleet: FleetSpec = field(default_factory=FleetSpec)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    policies: Mapping[str, object] = field(default_factory=dict)  # by namespace/name
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    volumes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # namespace -> {volume claim: cluster in which it is bound}
    kinds: Kinds = field(default_factory=built_in)
    keys: Mapping[str, str] = field(default_factory=dict)  # of workloads, by UID
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # labels by name
    fleet_policies: tuple[Governing, ...] = ()
    claims: Mapping[str, Claims] = field(default_factory=dict)  # of devices, by namespace
    rules: Rules = field(default_factory=dict)  # of clusters for namespaces


def key_of(workload: Workload) -> str:
    return f"{workload.metadata.namespace}/{workload.metadata.name}"


def is_over(workload: Workload) -> bool:
    """Whether there is nothing more to decide on it."""
    ends = is_unwanted(workload) and workload.status.claim is None
    return workload.status.phase in OVER or ends


def is_unwanted(workload: Workload) -> bool:
    """Whether it is to end: it keeps what it holds until its pods are gone, and gets no more."""
    return workload.spec.cancelled or workload.metadata.deletion_timestamp is not None


def is_past(workload: Workload) -> bool:
    """Whether it is over and nothing of it is left to be charged."""
    return is_over(workload) and not workload.status.releasing


def queue_name(workload: Workload, defaults: Defaults) -> str:
    """The queue of a workload: its own, else the default of its namespace, else of the fleet."""
    labels = defaults.namespaces.get(workload.metadata.namespace, {})
    return (
        workload.spec.queue
        or workload.status.queue
        or labels.get(DEFAULT_QUEUE, "")
        or defaults.fleet.defaults.queue
    )


def workload_of(workload: Workload, defaults: Defaults) -> model.Workload:
    spec, status = workload.spec, workload.status
    queue = queue_name(workload, defaults)
    tasks = spec.tasks
    run, namespace = spec.run_seconds, workload.metadata.namespace
    priority = _priority(workload, queue, defaults)
    labels = defaults.namespaces.get(namespace, {})
    governing = that_apply(defaults.fleet_policies, namespace, labels)
    forms = _forms(workload, defaults)
    return model.Workload(
        key=key_of(workload),
        queue=queue,
        priority=capped(priority, governing),
        queued_at=_queued_at(workload),
        mode=spec.mode,
        forms=forms.forms,
        policy=_policy(workload, queue, defaults),
        clusters_max=spec.gang.clusters_max if spec.gang else 1,
        domain=spec.gang.domain if spec.gang else "",
        unavailable_max=_unavailable_max(workload),
        is_ready=status.pods.ready >= status.pods.wanted,
        replicas=replicas_wanted(workload),
        ends=ends(workload, defaults.kinds),
        copies_over=status.succeeded_clusters if spec.mode == "Divided" else (),
        tasks=tasks.count if tasks else 0,
        first_task=tasks.first if tasks else 0,
        tasks_over=_tasks_over(workload),
        task_range=tasks.range_size if tasks else 1,
        concurrency=(tasks.concurrency or 0) if tasks else 0,
        kinds=_kinds(workload),
        pinned_to=pinned_to(workload, defaults.volumes.get(namespace, {}), defaults.kinds),
        user=user_of(workload.metadata.annotations),
        refused_by=_refused_by(workload, queue, defaults),
        is_on_trial=_is_on_trial(workload, queue, defaults),
        fleet_policies=tuple(item.policy for item in governing),
        violations=tuple(broken_rules(governing, spec, priority)),
        uncounted=forms.uncounted,
        not_admitted=refusing_clusters(forms.forms) if namespace in defaults.rules else (),
        preemptible=spec.preemptible,
        is_held=spec.hold != "None" or is_unwanted(workload),
        not_before=_seconds(status.requeue.not_before) if status.requeue else 0.0,
        avoids=_avoided(workload),
        refusals=_refusals(workload),
        run_seconds=seconds_left(
            workload, default=_inherited("run_seconds_estimate", queue, defaults)
        ),
        limit_seconds=limited(
            _inherited("run_seconds_limit", queue, defaults) if run.limit is None else run.limit,
            governing,
        ),
        ran_seconds=float(status.ran_seconds),
        was_preempted=any(attempt.preempted_by for attempt in status.history[-1:]),
        checkpoint_seconds=spec.checkpoint.interval_seconds if spec.checkpoint else None,
        saves_when_asked=bool(spec.checkpoint and spec.checkpoint.signal),
        held=_hold(status.claim, workload, forms, defaults)
        if status.claim and not is_over(workload)
        else None,
        releasing=tuple(
            _leaving_part(placement, status, forms, defaults.fleet)
            for placement in status.releasing
        ),
        rebalance_at=_seconds(spec.rebalance_at),
        rebalanced_at=_seconds(status.rebalanced_at),
        reservation=(status.reservation.cluster, status.reservation.flavors)
        if status.reservation
        else None,
        data=tuple(entry.dataset or entry.location for entry in spec.data),
        is_over=is_over(workload),
        grows=grows(workload),
    )


def _forms(workload: Workload, defaults: Defaults) -> Forms:
    pods = count_pods(workload, defaults.kinds)
    claims = defaults.claims.get(workload.metadata.namespace, {})
    counted = counted_devices(workload, pods.pod_sets, claims, defaults.kinds)
    forms = forms_of(workload, pods, defaults.fleet, counted)
    rules = defaults.rules.get(workload.metadata.namespace)
    if not rules:
        return forms
    admitted = admitted_forms(workload, forms.forms, rules, defaults.kinds)
    return replace(forms, forms=admitted)


def _as_admitted(placed: model.Placed, forms: Forms, name: str) -> model.Placed:
    """A placement whose pods are admitted as those of the form that it was made of."""
    form = next((form for form in forms.forms if form.name == name), forms.forms[0])
    admitted = {pods.name: pods.shape.admitted for pods in form.pod_sets if pods.shape.admitted}
    if not admitted:
        return placed
    pods = (
        replace(item, shape=replace(item.shape, admitted=admitted.get(item.name, ())))
        for item in placed.pods
    )
    return replace(placed, pods=tuple(pods))


def _inherited(field: str, queue: str, defaults: Defaults) -> int | None:
    """A default of a queue, or of the nearest ancestor that has one."""
    values = (getattr(other.defaults, field) for other in line_of(defaults.queues, queue))
    return next((value for value in values if value is not None), None)


def replicas_wanted(workload: Workload) -> int:
    """Replicas of a service: those asked for, plus the surge of a rollout."""
    asked = workload.spec.replicas
    return (1 if asked is None else asked) + workload.status.surge_replicas


def ends(workload: Workload, kinds: KnownKinds) -> bool:
    """Whether each copy of a Divided workload runs to completion: its kind is not a service's."""
    template = workload.spec.template
    if workload.spec.mode != "Divided" or template is None:
        return False
    kind = kinds.of(template.manifests[0])
    return kind is None or kind.mode(template.manifests[0]) != "Divided"


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def _queued_at(workload: Workload) -> float:
    """Its place in time: when more was last asked for, else when it was queued or created."""
    status = workload.status
    return _seconds(status.increased_at or status.queued_at or workload.metadata.creation_timestamp)


def _priority(workload: Workload, queue: str, defaults: Defaults) -> int:
    spec = workload.spec
    if spec.priority is not None:
        return spec.priority
    if spec.priority_class in defaults.priority_classes:
        return defaults.priority_classes[spec.priority_class]
    for other in line_of(defaults.queues, queue):
        if other.defaults.priority is not None:
            return other.defaults.priority
    return workload.status.priority


def _refused_by(workload: Workload, queue: str, defaults: Defaults) -> str:
    """The queue, its own or one above it, whose submitters do not include it."""
    line = named_line_of(defaults.queues, queue)
    if all(spec.submitters is None for _, spec in line):
        return ""
    namespace, annotations = workload.metadata.namespace, workload.metadata.annotations
    submission = Submission.read(
        namespace=namespace,
        labels=defaults.namespaces.get(namespace, {}),
        note=annotations.get(SUBMITTED_BY),
        creator=annotations.get(CREATED_BY, ""),
    )
    return refusing_queue(((name, spec.submitters) for name, spec in line), submission)


def _is_on_trial(workload: Workload, queue: str, defaults: Defaults) -> bool:
    """Whether its queue may still refuse it: nothing was said of it yet, so it is not accepted."""
    is_new = workload.status.phase is None and workload.status.queued_at is None
    return is_new and any(spec.refuse_impossible for spec in line_of(defaults.queues, queue))


def _policy(workload: Workload, queue: str, defaults: Defaults) -> str:
    name = workload.spec.policy
    system = defaults.fleet.system_namespace
    if name:
        own = f"{workload.metadata.namespace}/{name}"
        return own if own in defaults.policies else f"{system}/{name}"
    for other in line_of(defaults.queues, queue):
        if other.defaults.policy:
            return f"{system}/{other.defaults.policy}"
    name = defaults.fleet.defaults.policy
    return f"{system}/{name}" if name else ""


def grows(workload: Workload) -> bool:
    """Whether it is a running gang in one cluster that can take in more pods."""
    claim, template = workload.status.claim, workload.spec.template
    if workload.spec.mode != "Gang" or workload.status.phase != "Running" or claim is None:
        return False
    if len(claim.placements) != 1 or claim.alternative or workload.status.releasing:
        return False
    return template is None or growth.grows(template.manifests[0])


def last_attempt(status: WorkloadStatus) -> int:
    """The highest attempt so far."""
    known = [attempt.attempt for attempt in status.history]
    known.extend(placement.attempt for placement in status.releasing)
    if status.claim is not None:
        known.append(status.claim.attempt)
    return max(known, default=0)


def seconds_left(workload: Workload, *, default: int | None = None) -> int | None:
    """Its expected run time; a workload with checkpoints continues from the last one."""
    spec = workload.spec
    estimate = default if spec.run_seconds.estimate is None else spec.run_seconds.estimate
    if estimate is None or spec.checkpoint is None or spec.mode != "Gang":
        return estimate
    return max(1, estimate - sum(_saved_seconds(attempt) for attempt in workload.status.history))


def _saved_seconds(past: PastAttempt) -> int:
    """The run time of an attempt that was not lost."""
    if past.started_at is None or past.ended_at is None:
        return 0
    ran = int((past.ended_at - past.started_at).total_seconds())
    return max(0, ran - past.lost_seconds)


def _kinds(workload: Workload) -> tuple[str, ...]:
    if workload.spec.template is None:
        return (model.PODS_ALONE,)
    return tuple(
        sorted(
            {
                f"{manifest.get('apiVersion')}/{manifest.get('kind')}"
                for manifest in workload.spec.template.manifests
            }
        )
    )


def _tasks_over(workload: Workload) -> str:
    """Tasks that succeeded or failed for good, as ranges; empty if they are malformed."""
    status = workload.status
    if workload.spec.tasks is None or not (status.succeeded_tasks or status.failed_tasks):
        return ""
    try:
        over = [ranges.parse(name) for name in (status.succeeded_tasks, status.failed_tasks)]
    except ValueError:
        return ""
    first = workload.spec.tasks.first
    known = (first, first + workload.spec.tasks.count - 1)
    return ranges.text(ranges.within(ranges.union(over), known))


def _avoided(workload: Workload) -> tuple[str, ...]:
    """Clusters where it failed by fault of the place; the list is cleared when it expires."""
    requeue = workload.status.requeue
    return tuple(sorted(requeue.avoid)) if requeue else ()


def _refusals(workload: Workload) -> tuple[tuple[str, str], ...]:
    """What the clusters that it avoids said when they refused its template, the latest last."""
    avoided = _avoided(workload)
    said: dict[str, str] = {}
    for attempt in workload.status.history:
        for cluster in attempt.clusters:
            said.pop(cluster, None)
            if attempt.reason in REFUSALS and cluster in avoided:
                said[cluster] = attempt.message
    return tuple(said.items())


def _unavailable_max(workload: Workload) -> int:
    budget = budget_of(workload) if workload.spec.mode == "Divided" else None
    return 1 if budget is None else budget


def waits_by_uid(workload: Workload) -> bool:
    """Whether it waits for victims that its claim knows by UID alone."""
    claim = workload.status.claim
    return claim is not None and any(
        victim.workload is not None and not victim.workload.name for victim in claim.waits_for
    )


def _victim(mention: WorkloadMention, keys: Mapping[str, str]) -> str:
    """The key of a victim; a victim that is gone keeps its UID, which is no workload's key."""
    if mention.name:
        return f"{mention.namespace}/{mention.name}"
    return keys.get(mention.uid, mention.uid)


def _hold(claim: Claim, workload: Workload, forms: Forms, defaults: Defaults) -> model.Held:
    victims = tuple(
        (_victim(victim.workload, defaults.keys), victim.attempt)
        for victim in claim.waits_for
        if victim.type == "Preemption" and victim.workload is not None
    )
    started = workload.status.started_at if workload.status.phase == "Running" else None
    return model.Held(
        attempt=claim.attempt,
        queue=claim.queue or workload.spec.queue,
        placed=tuple(
            _held_part(placement, claim, forms, defaults.fleet) for placement in claim.placements
        ),
        form=claim.alternative,
        rung=claim.rung,
        decided_at=claim.decided_at.timestamp(),
        started_at=_seconds(claim.ready_at or started) or None,
        has_begun=claim.begun,
        missing_copies=claim.missing_copies,
        waits_for_victims=victims,
    )


def _held_part(placement: Placement, claim: Claim, forms: Forms, fleet: FleetSpec) -> model.Placed:
    """A placement that stays keeps its attempt, though the claim's attempt has increased."""
    own = placement.attempt if placement.attempt != claim.attempt else 0
    placed = _place(placement, forms.given, fleet)
    return replace(_as_admitted(placed, forms, claim.alternative), attempt=own)


def _leaving_part(
    placement: Placement, status: WorkloadStatus, forms: Forms, fleet: FleetSpec
) -> model.Placed:
    """A placement that is released; if its own replacement is alike, only that is charged."""
    claim, stays = status.claim, placement not in status.stopping
    placed = _as_admitted(
        _place(placement, forms.given, fleet), forms, claim.alternative if claim else ""
    )
    result = replace(placed, attempt=placement.attempt, stays=stays)
    for other in claim.placements if claim and placement.gives_way_to else ():
        if other.cluster == placement.gives_way_to:
            is_charged = not are_alike(result, _place(other, forms.given, fleet))
            return replace(result, is_charged=is_charged)
    return result


def _place(placement: Placement, given: Mapping[str, PodSet], fleet: FleetSpec) -> model.Placed:
    return model.Placed(
        cluster=placement.cluster,
        pods=tuple(
            _placed_pods(pod_set, given.get(pod_set.name), fleet) for pod_set in placement.pod_sets
        ),
        group=placement.group,
        replicas=placement.replicas or 0,
        tasks=placement.tasks,
    )


def _placed_pods(pods: PlacedPodSet, given: PodSet | None, fleet: FleetSpec) -> model.PlacedPods:
    given_requests = request_of(given.requests) if given else ()
    classes = classes_of(fleet)
    requests = completed(request_of(pods.requests), given_requests, classes)
    charges = counts_as(requests, fleet)
    return model.PlacedPods(
        name=pods.name,
        count=max(0, pods.count - pods.finished),
        finished=pods.finished,
        shape=model.Shape(
            requests=requests,
            beside=taken_beside(requests, classes),
            counts_as=charges,
            node_selector=tuple(sorted(given.node_selector.items())) if given else (),
            node_affinity=given.node_affinity if given else (),
            tolerations=given.tolerations if given else (),
        ),
        flavors=tuple(sorted({**_known_flavors(pods, charges or ()), **pods.flavors}.items())),
        level=pods.topology_level,
        domains=tuple(sorted(pods.domains.items())),
    )


def _known_flavors(pods: PlacedPodSet, charges: model.Request) -> dict[str, str]:
    """Flavors of what pods are charged by rules that are newer than their claim."""
    names = set(pods.flavors.values())
    if len(names) != 1 or any(resource in pods.flavors for resource, _ in charges):
        return {}
    return dict.fromkeys((resource for resource, _ in charges), names.pop())
