"""Gangs: all pods of a workload, or none, in one cluster.

The search goes form by form (the first, then alternatives whose time has come), up the ladder of
(group, rung), flavor by flavor in the queue's order, and cluster by cluster from the best. What is
tried and refused is a reason. A gang that may shrink does so only when nothing else helped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairway.api.reasons import Code, Reason
from fairway.core.clusters import fit_bounds, ranking
from fairway.core.clusters.balance_order import BalancedOrder, Totals
from fairway.core.clusters.candidates import Names, ladder
from fairway.core.explain.reasons import (
    MayNotUse,
    NoPools,
    NoRoom,
    Reasons,
    kept_reason,
    quota_reason,
    shortage_reason,
    user_reason,
)
from fairway.core.forecast.future_room import Started
from fairway.core.model import Form, Placed, PlacedPods, Workload, usage_of
from fairway.core.modes.forms import full_usage
from fairway.core.modes.gang_sizes import most_of
from fairway.core.modes.gang_split import can_split, split
from fairway.core.packing import pack
from fairway.core.plan import Admit, Preempt, Provision, Step
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims, find_victims
from fairway.core.preemption.freed_bounds import clusters_to_search
from fairway.core.preemption.handover import queue_of
from fairway.core.provisioning.pools import find_pool
from fairway.core.provisioning.price import prefers_provision
from fairway.core.quota.flavors import Assignment


@dataclass(slots=True)
class Outcome:
    """What was decided on a workload: steps, or the reasons why there are none."""

    steps: list[Step] = field(default_factory=list)
    reasons: Reasons = field(default_factory=Reasons)

    @property
    def is_decided(self) -> bool:
        return bool(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A form on one step of the ladder: whose it is, its flavors, and the clusters of the group."""

    workload: Workload
    form: Form
    options: list[Assignment]
    group: str
    clusters: Names


def decide(planning: PlanningRound, workload: Workload) -> Outcome:
    """Finds a place for a gang; what it takes stays charged in the ledger."""
    verdict = Outcome()
    for form in _forms(planning, workload, verdict):
        if _climb(planning, workload, form, verdict):
            return verdict
    for form in _forms(planning, workload, Outcome()):
        if _is_elastic(form) and _shrink(planning, workload, form, verdict):
            return verdict
    return verdict


def _forms(planning: PlanningRound, workload: Workload, verdict: Outcome) -> Iterator[Form]:
    """The forms whose time has come."""
    waited = max(0.0, planning.now - workload.queued_at)
    for form in workload.forms:
        if form.after_seconds <= waited:
            yield form
        else:
            until = workload.queued_at + form.after_seconds
            verdict.reasons.append(Reason(code=Code.HOLDING_OUT, other=form.name, until=until))


def _is_elastic(form: Form) -> bool:
    return any(pod_set.least < pod_set.count for pod_set in form.pod_sets)


def _climb(planning: PlanningRound, workload: Workload, form: Form, verdict: Outcome) -> bool:
    """Tries a form on every step of the ladder."""
    options = planning.assignments(workload, form)
    if not options:
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=workload.queue))
        return False
    if not planning.has_clusters:
        return _by_quota_alone(planning, workload, form, options, verdict)
    candidates = planning.candidates(workload)
    if candidates.refused:
        verdict.reasons.later(MayNotUse(refused=candidates.refused))
    if not candidates.allowed:
        verdict.reasons.append(Reason(code=Code.NO_CLUSTER))
        return False
    policy = planning.snapshot.policy(workload)
    groups = tuple(name for name, _ in candidates.groups)
    is_any_tried = False
    for group, rung in ladder(policy, groups):
        names = candidates.in_group(group)
        if not names:
            continue
        is_any_tried = True
        attempt = Attempt(
            workload=workload, form=form, options=options, group=group, clusters=names
        )
        if (
            rung == "Preempt"
            and policy.weighs_price
            and planning.stopped_by("Provision") is None
            and prefers_provision(planning, workload, form, options, names)
            and _provision(planning, attempt, verdict)
        ):
            return True
        stopped = planning.stopped_by(rung)
        if stopped is not None:
            verdict.reasons.append(stopped)
            continue
        if _RUNGS[rung](planning, attempt, verdict):
            return True
        if rung == "Idle" and _split(planning, attempt, verdict):
            return True
    if not is_any_tried:
        verdict.reasons.append(Reason(code=Code.NO_CLUSTER))  # no group of the ladder has any
    return False


def _idle(planning: PlanningRound, attempt: Attempt, verdict: Outcome) -> bool:
    """Takes what nobody uses."""
    workload, form = attempt.workload, attempt.form
    for option in by_preference(planning, workload, form, attempt.options):
        usage = full_usage(form, option)
        reason = quota_reason(planning, workload, usage, option)
        if reason is not None:
            verdict.reasons.append(reason)
            continue
        ranked = planning.ranked(attempt.clusters, workload, planning.snapshot.policy(workload))
        chance = planning.stock.chance(option, form)
        refused: dict[str, Reason] = {}
        for cluster in _worth_trying(planning, ranked, chance):
            room = planning.ledger.rooms[cluster]
            packed = pack.pack(room, planning.wants(cluster, option, form), workload.domain)
            if isinstance(packed, pack.Packed):
                scores = _totals(ranked) if len(ranked) > 1 else None
                placed = placed_of(cluster, attempt.group, form, option, packed)
                admit = Admit(
                    workload=workload.key, placed=(placed,), form=form.name, scores=scores
                )
                _admit(planning, workload, admit, packed, verdict)
                return True
            planning.stock.look_again(cluster, option, form)
            refused[cluster] = kept_reason(
                planning, workload, form, option, (attempt.group, cluster)
            ) or shortage_reason(cluster, attempt.group, "Idle", option, packed)
        verdict.reasons.later(
            NoRoom(
                group=attempt.group,
                option=option,
                ranked=ranked,
                chance=chance,
                position=planning.stock.position,
                refused=refused,
            )
        )
    return False


def _worth_trying(
    planning: PlanningRound, ranked: Sequence[ranking.Ranked], chance: fit_bounds.Chance
) -> Iterator[str]:
    """Those of which the bounds promise room, best first."""
    if isinstance(ranked, BalancedOrder):
        return ranked.best(chance.fits)
    position = planning.stock.position
    return (
        ranked_cluster.cluster
        for ranked_cluster in ranked
        if chance.fits[position[ranked_cluster.cluster]]
    )


def _totals(ranked: Sequence[ranking.Ranked]) -> Mapping[str, int]:
    if isinstance(ranked, BalancedOrder):
        return Totals(ranked)
    return {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}


def _split(planning: PlanningRound, attempt: Attempt, verdict: Outcome) -> bool:
    """Puts the members of a gang that may split into several clusters."""
    workload, form = attempt.workload, attempt.form
    if not can_split(workload, form):
        return False
    for option in by_preference(planning, workload, form, attempt.options):
        if quota_reason(planning, workload, full_usage(form, option), option) is not None:
            continue
        ranked = planning.ranked(attempt.clusters, workload, planning.snapshot.policy(workload))
        parts = split(
            planning,
            workload,
            form,
            option,
            tuple(ranked_cluster.cluster for ranked_cluster in ranked),
        )
        if parts is None:
            continue
        placed = []
        for part in parts:
            placement = placed_of(part.cluster, attempt.group, part.form, option, part.packed)
            charge(planning, workload, placement, part.packed)
            placed.append(placement)
        verdict.steps.append(Admit(workload=workload.key, placed=tuple(placed), form=form.name))
        verdict.reasons.clear()
        return True
    return False


def _preempt(planning: PlanningRound, attempt: Attempt, verdict: Outcome) -> bool:
    """Takes from those who must yield: the least harmful set of victims in one cluster."""
    workload, form = attempt.workload, attempt.form
    best: Victims | None = None
    for option in attempt.options:
        usage = full_usage(form, option)
        reason = user_reason(planning, workload, usage)
        if reason is not None:
            verdict.reasons.append(reason)
            continue
        searched = clusters_to_search(planning, workload, form, (option, usage), attempt.clusters)
        for cluster in searched:
            victims = find_victims(planning, workload, form, option, cluster)
            if victims is not None and (best is None or victims.harm < best.harm):
                best = victims
        if best is not None:
            break
        verdict.reasons.extend(planning.no_victims(attempt.group, attempt.clusters))
    if best is None:
        return False
    evict(planning, workload, best, verdict)
    placed = placed_of(best.cluster, attempt.group, form, best.assignment, best.packed)
    _admit(planning, workload, _after(workload, form, placed), best.packed, verdict)
    return True


def _after(workload: Workload, form: Form, placed: Placed) -> Admit:
    """The claim of one who starts when its victims are gone."""
    return Admit(
        workload=workload.key,
        placed=(placed,),
        form=form.name,
        rung="Preempt",
    )


def _provision(planning: PlanningRound, attempt: Attempt, verdict: Outcome) -> bool:
    """Asks for nodes of an elastic pool."""
    workload, form = attempt.workload, attempt.form
    for option in by_preference(planning, workload, form, attempt.options):
        usage = full_usage(form, option)
        reason = quota_reason(planning, workload, usage, option)
        if reason is not None:
            if not verdict.reasons.has_said(reason):
                verdict.reasons.append(reason)
            continue
        ranked = planning.ranked(attempt.clusters, workload, planning.snapshot.policy(workload))
        if not planning.has_pools(attempt.clusters):
            verdict.reasons.later(NoPools(ranked=ranked))
            continue
        for ranked_cluster in ranked:
            provisioned = find_pool(planning, workload, form, option, ranked_cluster.cluster)
            if isinstance(provisioned, Reason):
                verdict.reasons.append(provisioned)
                continue
            planning.ledger.provision(ranked_cluster.cluster, provisioned.pool, provisioned.count)
            verdict.steps.append(
                Provision(
                    workload=workload.key,
                    cluster=ranked_cluster.cluster,
                    pool=provisioned.pool,
                    count=provisioned.count,
                )
            )
            placed = placed_of(
                ranked_cluster.cluster, attempt.group, form, option, provisioned.packed
            )
            admit = Admit(workload=workload.key, placed=(placed,), form=form.name, rung="Provision")
            _admit(planning, workload, admit, provisioned.on_existing, verdict)
            return True
    return False


_RUNGS = {"Idle": _idle, "Preempt": _preempt, "Provision": _provision}


def _by_quota_alone(
    planning: PlanningRound,
    workload: Workload,
    form: Form,
    options: list[Assignment],
    verdict: Outcome,
) -> bool:
    """Without any cluster, quota decides."""
    for option in by_preference(planning, workload, form, options):
        reason = quota_reason(planning, workload, full_usage(form, option), option)
        if reason is None:
            placed = placed_of("", "", form, option, None)
            admit = Admit(workload=workload.key, placed=(placed,), form=form.name)
            _admit(planning, workload, admit, None, verdict)
            return True
        verdict.reasons.append(reason)
    for option in options:
        if user_reason(planning, workload, full_usage(form, option)) is not None:
            continue
        victims = find_victims(planning, workload, form, option, "")
        if victims is not None:
            evict(planning, workload, victims, verdict)
            placed = placed_of("", "", form, option, None)
            _admit(planning, workload, _after(workload, form, placed), None, verdict)
            return True
    return False


def _shrink(planning: PlanningRound, workload: Workload, form: Form, verdict: Outcome) -> bool:
    """Fewer pods, where nothing else helped: as many as fit somewhere, at least the least."""
    shrunk = most_of(planning, workload, form)
    if shrunk is None:
        return False
    group = planning.candidates(workload).group_of().get(shrunk.cluster, "")
    placed = placed_of(shrunk.cluster, group, shrunk.form, shrunk.option, shrunk.packed)
    admit = Admit(workload=workload.key, placed=(placed,), form=form.name)
    _admit(planning, workload, admit, shrunk.packed, verdict)
    return True


# Quota.


def by_preference(
    planning: PlanningRound, workload: Workload, form: Form, options: list[Assignment]
) -> list[Assignment]:
    """The order of flavors: as listed; where borrowing is to be avoided, those without it first."""
    if planning.queue(workload).fungibility.when_can_borrow == "Borrow" or len(options) == 1:
        return options
    tree = planning.ledger.tree
    return sorted(
        options, key=lambda option: tree.borrow_level(workload.queue, full_usage(form, option))
    )


# Keeping what was found.


def placed_of(
    cluster: str, group: str, form: Form, option: Assignment, packed: pack.Packed | None
) -> Placed:
    pods = []
    for pod_set in form.pod_sets:
        count = pod_set.count
        if packed is not None:
            count = sum(packed.packing.get(pod_set.name, {}).values())
        pods.append(
            PlacedPods(
                name=pod_set.name,
                count=count,
                shape=pod_set.shape,
                flavors=option.flavors_of(pod_set.name),
                level=packed.levels.get(pod_set.name, "") if packed else "",
                domains=packed.domains.get(pod_set.name, ()) if packed else (),
            )
        )
    return Placed(cluster=cluster, group=group, pods=tuple(pods))


def _admit(
    planning: PlanningRound,
    workload: Workload,
    admit: Admit,
    packed: pack.Packed | None,
    verdict: Outcome,
) -> None:
    """Charges what a step takes, and puts the step into the plan."""
    for placed in admit.placed:
        charge(planning, workload, placed, packed)
    verdict.steps.append(admit)
    verdict.reasons.clear()


def charge(
    planning: PlanningRound, workload: Workload, placed: Placed, packed: pack.Packed | None
) -> None:
    """Takes quota and room for a placement."""
    usage = usage_of(placed)
    if packed is None:
        planning.take(workload, usage)
    else:
        requests = {pods.name: pods.shape.requests for pods in placed.pods}
        planning.take(workload, usage, placed.cluster, packed.packing, requests)
        planning.hold(placed.cluster)
        started = Started(workload=workload, packing=packed.packing, requests=requests)
        planning.reservations.started(placed.cluster, started)


def evict(planning: PlanningRound, workload: Workload, victims: Victims, verdict: Outcome) -> None:
    """Takes the claims from the victims, in the ledger and in the plan."""
    for victim in victims.victims:
        planning.preempted.add(victim.key)
        _forget_claim(planning, planning.snapshot.facts.workloads[victim.key])
        verdict.steps.append(
            Preempt(
                workload=victim.key,
                for_=workload.key,
                cluster=victims.cluster,
                lost_seconds=victim.lost_seconds,
                reasons=(Reason(code=victim.code, queue=workload.queue, other=workload.key),),
            )
        )
    victims.remove(planning)


def _forget_claim(planning: PlanningRound, victim: Workload) -> None:
    assert victim.held is not None, "only what runs can be a victim"
    queue = queue_of(victim)
    usage = usage_of(*victim.held.placed)
    planning.leaving.add(victim, usage)
    planning.claims.count(queue, victim.user, -1)
    planning.claims.add(queue, victim.user, usage, -1)
