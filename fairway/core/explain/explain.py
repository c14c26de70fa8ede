"""Why one workload waits: computed on request, by the planner itself.

Reasons come from a plan in which the workload waits alone, beside what runs and what has a
reservation. If it would start there, other workloads are before it, and the plan for all says why
it does not start. Remedies are found by trying small changes to the workload or its queue. Each
change is followed by a plan for the workload alone and, if it starts there, by a plan with the
workloads before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from fairway.api.amounts import is_accelerator
from fairway.api.explanations import (
    Explanation,
    Nearest,
    Needs,
    Remedy,
    ScoredCluster,
    sentence,
)
from fairway.api.reasons import Code, Reason, violation_reason
from fairway.core.clusters.candidates import Forbidden, ladder
from fairway.core.cycle import plan
from fairway.core.explain.shortfalls import with_shortfalls
from fairway.core.forecast.ever_possible import impossible
from fairway.core.forecast.starts import expected_start, heads
from fairway.core.model import Flavor, Form, PodSet, Queue, Quota, Shape, Workload, unit_nanos
from fairway.core.packing import pack
from fairway.core.packing.near_fit import offers
from fairway.core.placement_request import PlacementRequest
from fairway.core.plan import Admit, Plan
from fairway.core.planning_round import PlanningRound
from fairway.core.quota.flavors import Assignment, groups_of
from fairway.core.quota.limits import limits_waiting
from fairway.core.reasons import place_reason, quota_reason, refusal_reason
from fairway.core.snapshot import Facts, Snapshot, precedence

__all__ = ["Explanation", "explain", "sentence"]

_DEPTH_MAX = 100  # workloads of each queue with which a remedy is tried
_PLACES_MAX = 500
_WHOLE_NANOS = 1_000_000_000


def explain(facts: Facts, key: str) -> Explanation:
    """The full explanation of one workload."""
    workload = facts.workloads[key]
    base = Explanation(now=facts.now, workload=key, state="Waits", queue=workload.queue)
    if workload.held is not None:
        clusters = tuple(placement.cluster for placement in workload.held.placed)
        reasons = dict.fromkeys((*_forbidden(workload), *_lacking(facts, workload)))
        return replace(
            base,
            state="Runs",
            clusters=clusters,
            reasons=tuple(reasons),
            ranking=_ranking(PlanningRound(Snapshot(facts)), workload),
        )
    never = None if workload.is_refused else impossible(facts, workload)
    if never is not None:
        return replace(base, state="Impossible", reasons=(never,))
    if any(map(limits_waiting, facts.queues.values())):
        full = place_reason(PlanningRound(Snapshot(facts)), workload)
        if full is not None:
            return replace(base, reasons=(full,))
    alone = _alone(facts, workload)
    tried = alone
    step, made = _decision(tried, key)
    is_held_up = step is not None  # by other workloads that wait
    if step is not None:
        tried = facts
        step, made = _decision(tried, key)
    if step is not None:
        clusters = tuple(placement.cluster for placement in step.placed)
        ranking = _ranking(PlanningRound(Snapshot(facts)), workload)
        return replace(base, state="Starts", clusters=clusters, ranking=ranking)
    line = sorted(
        (
            other
            for other in facts.workloads.values()
            if other.is_waiting and other.queue == workload.queue
        ),
        key=precedence,
    )
    position = 1 + [workload.key for workload in line].index(key)
    expected = expected_start(facts, workload)
    base = _with_room(base, alone, workload)
    trial = _Trial(alone, heads(facts, min(position, _DEPTH_MAX)))
    return replace(
        base,
        position=position,
        waiting=len(line),
        reasons=(*base.reasons, *_reasons(tried, made, key)),
        start=expected.start,
        earliest=expected.earliest,
        latest=expected.latest,
        because=expected.because,
        is_guess=expected.is_guess,
        remedies=() if is_held_up else tuple(_remedies(trial, workload, base.nearest)),
    )


def _forbidden(workload: Workload) -> Iterator[Reason]:
    """The enforced rules of fleet policies that a running workload breaks."""
    placed = workload.held.placed if workload.held is not None else ()
    for policy in workload.fleet_policies:
        if not policy.is_enforced:
            continue
        for violation in workload.violations:
            if violation.policy == policy.name:
                yield violation_reason(violation)
        for placement in placed:
            if policy.clusters is not None and placement.cluster not in policy.clusters:
                yield refusal_reason(placement.cluster, Forbidden(policy.name))


def _lacking(facts: Facts, workload: Workload) -> tuple[Reason, ...]:
    """Why some replicas of a service are not placed while others run."""
    placed = sum(placement.replicas for placement in workload.held.placed) if workload.held else 0
    if workload.mode != "Divided" or placed >= workload.replicas:
        return ()
    made, _ = plan(Snapshot(_alone(facts, workload)))
    return _reasons(facts, made, workload.key)


def _alone(facts: Facts, workload: Workload) -> Facts:
    """The fleet as if no other workload waited, except those with a reservation."""
    kept = {
        key: value
        for key, value in facts.workloads.items()
        if not value.is_waiting or value.releasing or value.reservation or key == workload.key
    }
    return replace(facts, workloads={**kept, workload.key: workload})


def _decision(facts: Facts, key: str) -> tuple[Admit | None, Plan]:
    """The admission of a workload, if it starts, and the plan that was made."""
    made, _ = plan(Snapshot(facts))
    for step in made.steps:
        if isinstance(step, Admit) and step.workload == key:
            return step, made
    return None, made


def _reasons(facts: Facts, made: Plan, key: str) -> tuple[Reason, ...]:
    """Why a workload waits in a plan, with the missing amounts."""
    waiting = tuple(
        waiting_workload for waiting_workload in made.waiting if waiting_workload.workload == key
    )
    plan = with_shortfalls(facts, replace(made, waiting=waiting))
    return tuple(plan.waiting[0].reasons) if plan.waiting else ()


# What the workload needs, and what is available.


def _with_room(base: Explanation, facts: Facts, workload: Workload) -> Explanation:
    if workload.queue not in facts.queues:
        return base
    planning = PlanningRound(Snapshot(facts))
    planning.turn_to(workload)
    form = workload.forms[0]
    options = planning.assignments(workload, form)
    if not options:
        return base
    option = options[0]
    quota = [quota_reason(planning, PlacementRequest(workload, form, option)) for option in options]
    is_short = all(reason is not None and reason.code == Code.QUOTA_EXCEEDED for reason in quota)
    places = _places(planning, workload, form, options)
    names = ",".join(dict.fromkeys(name for option in options for name in option.names))
    if names and not places and planning.candidates(workload).allowed:
        base = replace(base, reasons=(Reason(code=Code.NO_CLUSTER, flavor=names),))
    groups = tuple(name for name, _ in planning.candidates(workload).groups)
    return replace(
        base,
        ranking=_ranking(planning, workload),
        needs=_needs(workload, form, option),
        # If it fits somewhere, room is not what it lacks.
        nearest=None if not places or places[0].fits else places[0],
        places=places[:_PLACES_MAX],
        ladder=ladder(planning.snapshot.policy(workload), groups) if places else (),
        quota=quota[0] if is_short else None,
    )


def _ranking(planning: PlanningRound, workload: Workload) -> tuple[ScoredCluster, ...]:
    planning.turn_to(workload)
    allowed = planning.candidates(workload).allowed
    policy = planning.snapshot.policy(workload)
    return planning.scored(planning.rank(allowed, workload, policy), workload) if allowed else ()


def _leading(form: Form) -> str:
    """The accelerator of which a form requests most; empty: none."""
    total: dict[str, int] = {}
    for pod_set in form.pod_sets:
        for resource, amount in pod_set.shape.requests:
            if is_accelerator(resource):
                total[resource] = total.get(resource, 0) + amount * pod_set.count
    return max(sorted(total), key=lambda resource: total[resource], default="")


def _amount(form: Form, resource: str, counts: dict[str, int]) -> int:
    """The amount of a resource in these pods, in nanos; without a resource, the pods."""
    if not resource:
        return sum(counts.values()) * _WHOLE_NANOS
    return sum(
        amount * counts[pod_set.name] * unit_nanos(name)
        for pod_set in form.pod_sets
        for name, amount in pod_set.shape.requests
        if name == resource
    )


def _needs(
    workload: Workload, form: Form, option: Assignment, counts: dict[str, int] | None = None
) -> Needs:
    counts = counts or {pod_set.name: pod_set.count for pod_set in form.pod_sets}
    resource = _leading(form)
    what = "pod" if sum(counts.values()) == 1 else "pods"
    for pod_set in form.pod_sets:
        if resource in dict(pod_set.shape.requests):
            what = option.flavors[pod_set.name].get(resource) or resource
    clusters_max = workload.clusters_max if workload.mode == "Gang" else 0
    nanos = _amount(form, resource, counts)
    return Needs(nanos=nanos, what=what, clusters_max=clusters_max)


def _places(
    planning: PlanningRound, workload: Workload, form: Form, options: list[Assignment]
) -> tuple[Nearest, ...]:
    """The allowed clusters that have its flavors: where it fits, then those that lack least."""
    resource = _leading(form)
    full = _amount(form, resource, {pod_set.name: pod_set.count for pod_set in form.pod_sets})
    best: dict[str, tuple[tuple[bool, int, int], Nearest]] = {}
    for order, option in enumerate(options):
        request = PlacementRequest(workload, form, option)
        for cluster in planning.candidates(workload).allowed:
            if not _offers(planning, cluster, request):
                continue
            room, wants = planning.ledger.rooms[cluster], planning.wants(cluster, request)
            fits = isinstance(pack.pack(room, wants, workload.domain), pack.Packed)
            counts = {want.name: min(want.count, pack.placeable(room, want)) for want in wants}
            free = full if fits else _amount(form, resource, counts)
            nearest = Nearest(
                cluster=cluster,
                free_nanos=free,
                short_nanos=full - free,
                fits=fits,
                flavor=",".join(option.names),
            )
            lacks = (not fits, full - free, order)
            if cluster not in best or lacks < best[cluster][0]:
                best[cluster] = (lacks, nearest)
    return tuple(value for _, value in sorted(best.values(), key=itemgetter(0)))


def _offers(planning: PlanningRound, cluster: str, request: PlacementRequest) -> bool:
    """Whether a cluster has the flavors of a request at all, free or not."""
    flavors = planning.snapshot.facts.flavors
    return all(
        offers(
            planning.cluster(cluster),
            pod_set.shape,
            [flavors[name] for name in request.assignment.kinds(pod_set.name)],
        )
        for pod_set in request.form.pod_sets
    )


# What would let the workload start.


@dataclass(frozen=True, slots=True)
class _Trial:
    """The fleet on which changes are tried: with the workload alone, and with those before it."""

    facts: Facts
    crowd: Facts

    def starts(self, workload: Workload, queue: Queue | None = None) -> Admit | None:
        """The admission of a changed workload, with its queue changed as well if one is given."""
        admit: Admit | None = None
        for facts in (self.facts, self.crowd):
            queues = {**facts.queues, queue.name: queue} if queue is not None else facts.queues
            workloads = {**facts.workloads, workload.key: workload}
            changed = replace(facts, queues=queues, workloads=workloads)
            admit, _ = _decision(changed, workload.key)
            if admit is None:
                break
        return admit


def _remedies(trial: _Trial, workload: Workload, nearest: Nearest | None) -> Iterator[Remedy]:
    facts = trial.facts
    is_kept_out = workload.queue not in facts.queues or workload.is_held or workload.is_refused
    if is_kept_out or workload.mode != "Gang":
        return
    yield from _without_holding_out(trial, workload)
    yield from _other_flavors(trial, workload)
    if nearest is not None:
        yield from _fewer_pods(trial, workload, nearest)
    yield from _more_quota(trial, workload)


def _without_holding_out(trial: _Trial, workload: Workload) -> Iterator[Remedy]:
    waited = trial.facts.now - workload.queued_at
    for form in workload.forms:
        if form.after_seconds > waited:
            changed = replace(workload, forms=(replace(form, after_seconds=0),))
            if trial.starts(changed) is not None:
                yield Remedy(kind="Alternative", name=form.name)


def _other_flavors(trial: _Trial, workload: Workload) -> Iterator[Remedy]:
    """Flavors of its queue that the workload does not accept, but on which it would start."""
    facts = trial.facts
    snapshot = Snapshot(facts)
    planning, form = PlanningRound(snapshot), workload.forms[0]
    known = {
        name for assignment in planning.assignments(workload, form) for name in assignment.names
    }
    resource = _leading(form)
    for group in groups_of(planning.queue(workload), snapshot.above(workload.queue)):
        if resource and resource not in group.resources:
            continue
        for name in group.flavors:
            if name in known or name not in facts.flavors:
                continue
            kept = tuple(other for other in known if other not in group.flavors)
            changed = _on_flavor(form, facts.flavors[name], (*sorted(kept), name))
            step = trial.starts(replace(workload, forms=(changed,)))
            if step is not None:
                needs = _needs(workload, form, _assignment(step))
                yield Remedy(kind="Flavor", name=name, needs=needs)


def _on_flavor(form: Form, flavor: Flavor, allowed: tuple[str, ...]) -> Form:
    """A form that accepts a flavor: selectors on its labels and node affinity are dropped."""
    labels = {key for key, _ in flavor.node_labels}

    def accepting(pod_set: PodSet) -> PodSet:
        shape: Shape = replace(
            pod_set.shape,
            node_selector=tuple(
                pair for pair in pod_set.shape.node_selector if pair[0] not in labels
            ),
            node_affinity=(),
            tolerations=(*pod_set.shape.tolerations, *flavor.tolerations),
        )
        return replace(pod_set, shape=shape)

    return replace(
        form, flavors=allowed, pod_sets=tuple(accepting(pod_set) for pod_set in form.pod_sets)
    )


def _fewer_pods(trial: _Trial, workload: Workload, nearest: Nearest) -> Iterator[Remedy]:
    """Fewer pods: as many as fit in the cluster that lacks least."""
    form = workload.forms[0]
    elastic = tuple(replace(pod_set, least=min(1, pod_set.count)) for pod_set in form.pod_sets)
    fewer = replace(form, pod_sets=elastic)
    changed = replace(workload, forms=(fewer,), pinned_to=nearest.cluster)
    step = trial.starts(changed)
    if step is not None and len(step.placed) == 1:
        counts = {pods.name: pods.count for pods in step.placed[0].pods}
        needs = _needs(workload, form, _assignment(step), counts)
        yield Remedy(kind="FewerPods", needs=needs)


def _more_quota(trial: _Trial, workload: Workload) -> Iterator[Remedy]:
    """More nominal quota for its queue: as much as is missing."""
    facts = trial.facts
    planning, form = PlanningRound(Snapshot(facts)), workload.forms[0]
    for option in planning.assignments(workload, form):
        usage = option.full_usage(form)
        missing = planning.ledger.tree.shortfall(workload.queue, usage)
        if not missing:
            continue
        queue = facts.queues[workload.queue]
        quotas = dict(queue.quotas)
        for pair, amount in missing.items():
            before = quotas.get(pair, Quota())
            quotas[pair] = replace(before, nominal=before.nominal + amount)
        if trial.starts(workload, replace(queue, quotas=quotas)) is not None:
            short: dict[str, int] = {}
            for (_, resource), amount in missing.items():
                short[resource] = short.get(resource, 0) + amount * unit_nanos(resource)
            yield Remedy(kind="Quota", name=queue.name, short=tuple(sorted(short.items())))
            return


def _assignment(step: Admit) -> Assignment:
    flavors = {pods.name: dict(pods.flavors) for pods in step.placed[0].pods}
    names = sorted({flavor for entry in flavors.values() for flavor in entry.values() if flavor})
    return Assignment(flavors=flavors, names=tuple(names))
