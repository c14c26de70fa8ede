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
from fairway.core.planning_round import Desk
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


def decide(desk: Desk, workload: Workload) -> Outcome:
    """Finds a place for a gang; what it takes stays charged in the ledger."""
    verdict = Outcome()
    for form in _forms(desk, workload, verdict):
        if _climb(desk, workload, form, verdict):
            return verdict
    for form in _forms(desk, workload, Outcome()):
        if _is_elastic(form) and _shrink(desk, workload, form, verdict):
            return verdict
    return verdict


def _forms(desk: Desk, workload: Workload, verdict: Outcome) -> Iterator[Form]:
    """The forms whose time has come."""
    waited = max(0.0, desk.now - workload.queued_at)
    for form in workload.forms:
        if form.after_seconds <= waited:
            yield form
        else:
            until = workload.queued_at + form.after_seconds
            verdict.reasons.append(Reason(code=Code.HOLDING_OUT, other=form.name, until=until))


def _is_elastic(form: Form) -> bool:
    return any(pod_set.least < pod_set.count for pod_set in form.pod_sets)


def _climb(desk: Desk, workload: Workload, form: Form, verdict: Outcome) -> bool:
    """Tries a form on every step of the ladder."""
    options = desk.assignments(workload, form)
    if not options:
        verdict.reasons.append(Reason(code=Code.NO_FLAVOR, queue=workload.queue))
        return False
    if not desk.has_clusters:
        return _by_quota_alone(desk, workload, form, options, verdict)
    candidates = desk.candidates(workload)
    if candidates.refused:
        verdict.reasons.later(MayNotUse(refused=candidates.refused))
    if not candidates.allowed:
        verdict.reasons.append(Reason(code=Code.NO_CLUSTER))
        return False
    policy = desk.snapshot.policy(workload)
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
            and desk.stopped_by("Provision") is None
            and prefers_provision(desk, workload, form, options, names)
            and _provision(desk, attempt, verdict)
        ):
            return True
        stopped = desk.stopped_by(rung)
        if stopped is not None:
            verdict.reasons.append(stopped)
            continue
        if _RUNGS[rung](desk, attempt, verdict):
            return True
        if rung == "Idle" and _split(desk, attempt, verdict):
            return True
    if not is_any_tried:
        verdict.reasons.append(Reason(code=Code.NO_CLUSTER))  # no group of the ladder has any
    return False


def _idle(desk: Desk, attempt: Attempt, verdict: Outcome) -> bool:
    """Takes what nobody uses."""
    workload, form = attempt.workload, attempt.form
    for option in by_preference(desk, workload, form, attempt.options):
        usage = full_usage(form, option)
        reason = quota_reason(desk, workload, usage, option)
        if reason is not None:
            verdict.reasons.append(reason)
            continue
        ranked = desk.ranked(attempt.clusters, workload, desk.snapshot.policy(workload))
        chance = desk.stock.chance(option, form)
        refused: dict[str, Reason] = {}
        for cluster in _worth_trying(desk, ranked, chance):
            room = desk.ledger.rooms[cluster]
            packed = pack.pack(room, desk.wants(cluster, option, form), workload.domain)
            if isinstance(packed, pack.Packed):
                scores = _totals(ranked) if len(ranked) > 1 else None
                placed = placed_of(cluster, attempt.group, form, option, packed)
                admit = Admit(
                    workload=workload.key, placed=(placed,), form=form.name, scores=scores
                )
                _admit(desk, workload, admit, packed, verdict)
                return True
            desk.stock.look_again(cluster, option, form)
            refused[cluster] = kept_reason(
                desk, workload, form, option, (attempt.group, cluster)
            ) or shortage_reason(cluster, attempt.group, "Idle", option, packed)
        verdict.reasons.later(
            NoRoom(
                group=attempt.group,
                option=option,
                ranked=ranked,
                chance=chance,
                position=desk.stock.position,
                refused=refused,
            )
        )
    return False


def _worth_trying(
    desk: Desk, ranked: Sequence[ranking.Ranked], chance: fit_bounds.Chance
) -> Iterator[str]:
    """Those of which the bounds promise room, best first."""
    if isinstance(ranked, BalancedOrder):
        return ranked.best(chance.fits)
    position = desk.stock.position
    return (
        ranked_cluster.cluster
        for ranked_cluster in ranked
        if chance.fits[position[ranked_cluster.cluster]]
    )


def _totals(ranked: Sequence[ranking.Ranked]) -> Mapping[str, int]:
    if isinstance(ranked, BalancedOrder):
        return Totals(ranked)
    return {ranked_cluster.cluster: ranked_cluster.total for ranked_cluster in ranked}


def _split(desk: Desk, attempt: Attempt, verdict: Outcome) -> bool:
    """Puts the members of a gang that may split into several clusters."""
    workload, form = attempt.workload, attempt.form
    if not can_split(workload, form):
        return False
    for option in by_preference(desk, workload, form, attempt.options):
        if quota_reason(desk, workload, full_usage(form, option), option) is not None:
            continue
        ranked = desk.ranked(attempt.clusters, workload, desk.snapshot.policy(workload))
        parts = split(
            desk, workload, form, option, tuple(ranked_cluster.cluster for ranked_cluster in ranked)
        )
        if parts is None:
            continue
        placed = []
        for part in parts:
            placement = placed_of(part.cluster, attempt.group, part.form, option, part.packed)
            charge(desk, workload, placement, part.packed)
            placed.append(placement)
        verdict.steps.append(Admit(workload=workload.key, placed=tuple(placed), form=form.name))
        verdict.reasons.clear()
        return True
    return False


def _preempt(desk: Desk, attempt: Attempt, verdict: Outcome) -> bool:
    """Takes from those who must yield: the least harmful set of victims in one cluster."""
    workload, form = attempt.workload, attempt.form
    best: Victims | None = None
    for option in attempt.options:
        usage = full_usage(form, option)
        reason = user_reason(desk, workload, usage)
        if reason is not None:
            verdict.reasons.append(reason)
            continue
        searched = clusters_to_search(desk, workload, form, (option, usage), attempt.clusters)
        for cluster in searched:
            victims = find_victims(desk, workload, form, option, cluster)
            if victims is not None and (best is None or victims.harm < best.harm):
                best = victims
        if best is not None:
            break
        verdict.reasons.extend(desk.no_victims(attempt.group, attempt.clusters))
    if best is None:
        return False
    evict(desk, workload, best, verdict)
    placed = placed_of(best.cluster, attempt.group, form, best.assignment, best.packed)
    _admit(desk, workload, _after(workload, form, placed), best.packed, verdict)
    return True


def _after(workload: Workload, form: Form, placed: Placed) -> Admit:
    """The claim of one who starts when its victims are gone."""
    return Admit(
        workload=workload.key,
        placed=(placed,),
        form=form.name,
        rung="Preempt",
    )


def _provision(desk: Desk, attempt: Attempt, verdict: Outcome) -> bool:
    """Asks for nodes of an elastic pool."""
    workload, form = attempt.workload, attempt.form
    for option in by_preference(desk, workload, form, attempt.options):
        usage = full_usage(form, option)
        reason = quota_reason(desk, workload, usage, option)
        if reason is not None:
            if not verdict.reasons.has_said(reason):
                verdict.reasons.append(reason)
            continue
        ranked = desk.ranked(attempt.clusters, workload, desk.snapshot.policy(workload))
        if not desk.has_pools(attempt.clusters):
            verdict.reasons.later(NoPools(ranked=ranked))
            continue
        for ranked_cluster in ranked:
            provisioned = find_pool(desk, workload, form, option, ranked_cluster.cluster)
            if isinstance(provisioned, Reason):
                verdict.reasons.append(provisioned)
                continue
            desk.ledger.provision(ranked_cluster.cluster, provisioned.pool, provisioned.count)
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
            _admit(desk, workload, admit, provisioned.on_existing, verdict)
            return True
    return False


_RUNGS = {"Idle": _idle, "Preempt": _preempt, "Provision": _provision}


def _by_quota_alone(
    desk: Desk, workload: Workload, form: Form, options: list[Assignment], verdict: Outcome
) -> bool:
    """Without any cluster, quota decides."""
    for option in by_preference(desk, workload, form, options):
        reason = quota_reason(desk, workload, full_usage(form, option), option)
        if reason is None:
            placed = placed_of("", "", form, option, None)
            admit = Admit(workload=workload.key, placed=(placed,), form=form.name)
            _admit(desk, workload, admit, None, verdict)
            return True
        verdict.reasons.append(reason)
    for option in options:
        if user_reason(desk, workload, full_usage(form, option)) is not None:
            continue
        victims = find_victims(desk, workload, form, option, "")
        if victims is not None:
            evict(desk, workload, victims, verdict)
            placed = placed_of("", "", form, option, None)
            _admit(desk, workload, _after(workload, form, placed), None, verdict)
            return True
    return False


def _shrink(desk: Desk, workload: Workload, form: Form, verdict: Outcome) -> bool:
    """Fewer pods, where nothing else helped: as many as fit somewhere, at least the least."""
    shrunk = most_of(desk, workload, form)
    if shrunk is None:
        return False
    group = desk.candidates(workload).group_of().get(shrunk.cluster, "")
    placed = placed_of(shrunk.cluster, group, shrunk.form, shrunk.option, shrunk.packed)
    admit = Admit(workload=workload.key, placed=(placed,), form=form.name)
    _admit(desk, workload, admit, shrunk.packed, verdict)
    return True


# Quota.


def by_preference(
    desk: Desk, workload: Workload, form: Form, options: list[Assignment]
) -> list[Assignment]:
    """The order of flavors: as listed; where borrowing is to be avoided, those without it first."""
    if desk.queue(workload).fungibility.when_can_borrow == "Borrow" or len(options) == 1:
        return options
    tree = desk.ledger.tree
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
    desk: Desk,
    workload: Workload,
    admit: Admit,
    packed: pack.Packed | None,
    verdict: Outcome,
) -> None:
    """Charges what a step takes, and puts the step into the plan."""
    for placed in admit.placed:
        charge(desk, workload, placed, packed)
    verdict.steps.append(admit)
    verdict.reasons.clear()


def charge(desk: Desk, workload: Workload, placed: Placed, packed: pack.Packed | None) -> None:
    """Takes quota and room for a placement."""
    usage = usage_of(placed)
    if packed is None:
        desk.take(workload, usage)
    else:
        requests = {pods.name: pods.shape.requests for pods in placed.pods}
        desk.take(workload, usage, placed.cluster, packed.packing, requests)
        desk.hold(placed.cluster)
        started = Started(workload=workload, packing=packed.packing, requests=requests)
        desk.reservations.started(placed.cluster, started)


def evict(desk: Desk, workload: Workload, victims: Victims, verdict: Outcome) -> None:
    """Takes the claims from the victims, in the ledger and in the plan."""
    for victim in victims.victims:
        desk.preempted.add(victim.key)
        _forget_claim(desk, desk.snapshot.facts.workloads[victim.key])
        verdict.steps.append(
            Preempt(
                workload=victim.key,
                for_=workload.key,
                cluster=victims.cluster,
                lost_seconds=victim.lost_seconds,
                reasons=(Reason(code=victim.code, queue=workload.queue, other=workload.key),),
            )
        )
    victims.remove(desk)


def _forget_claim(desk: Desk, victim: Workload) -> None:
    assert victim.held is not None, "only what runs can be a victim"
    queue = queue_of(victim)
    usage = usage_of(*victim.held.placed)
    desk.leaving.add(victim, usage)
    desk.claims.count(queue, victim.user, -1)
    desk.claims.add(queue, victim.user, usage, -1)
