"""The ladder: every way to get capacity, in order, for gangs, services and sweeps alike.

A workload climbs in one form at a time: the first, then alternatives whose time has come. Each step
is a group of clusters and a rung: take what is idle, take from victims, take new nodes. Each mode
implements `Climber` and decides how much to take: a gang all or nothing, services and sweeps as
much as they get. The rules are the same for all modes:

- a rung whose circuit breaker is open gives nothing, and a reason says so;
- if the policy weighs prices, new nodes that cost less than the lost work come before victims;
- if the queue tries the next flavor before it borrows, its own quota comes first;
- if the queue stops at the first flavor that works, victims on a flavor come before idle capacity
  of the next, where the policy preempts right after it has looked for idle capacity;
- if the queue prefers preemption to borrowing, a group is first tried without borrowing, then with
  quota from ever higher up the tree;
- every refusal is a reason, computed only when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import Names, ladder
from fairway.core.model import Form, Workload
from fairway.core.modes.outcome import Outcome
from fairway.core.placement_request import PlacementRequest
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Ordered, Victims
from fairway.core.preemption.freed_bounds import clusters_to_search
from fairway.core.provisioning.pools import NoNodes, Provisioned
from fairway.core.provisioning.price import price_of_loss, price_of_nodes
from fairway.core.quota.flavors import Assignment
from fairway.core.quota.tree import ANYWHERE
from fairway.core.reasons import MayNotUse, no_flavor, user_reason

NOWHERE: Final = Names(("",))  # where quota alone decides


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStep:
    """Where to take capacity: a group, its clusters, and the flavors in the queue's order.

    `reach` is the height of the subtree, from the queue up, whose quota may be used; 0: its own.
    """

    group: str
    clusters: Names
    options: list[Assignment]
    reach: int = ANYWHERE
    is_narrow: bool = False  # only some flavors of the queue are tried: the others come later


class Climber(Protocol):
    """A workload in one form, and what it has taken so far."""

    @property
    def planning(self) -> PlanningRound: ...
    @property
    def workload(self) -> Workload: ...
    @property
    def form(self) -> Form: ...
    @property
    def needs_all_flavors(self) -> bool:
        """Whether the flavors of a step must be looked at together, whatever the queue says."""

    def wants(self, rung: Rung) -> bool:
        """Whether the workload would take more on a rung."""

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes what is idle."""

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts victims, the least harmful first, and takes what they held."""

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes nodes of elastic pools."""

    def victims(self, cluster: str, option: Assignment, *, reach: int = ANYWHERE) -> Victims | None:
        """The victims in a cluster for the smallest amount that the workload takes."""

    def new_nodes(self, cluster: str, option: Assignment) -> Provisioned | NoNodes:
        """The new nodes in a cluster for the smallest amount that the workload takes."""


def forms_due(planning: PlanningRound, workload: Workload, outcome: Outcome) -> Iterator[Form]:
    """The forms whose time has come; for a workload that holds a claim, the form of the claim."""
    if workload.held is not None:
        yield held_form(workload)
        return
    waited = max(0.0, planning.now - workload.queued_at)
    for form in workload.forms:
        if form.after_seconds <= waited:
            yield form
        else:
            until = workload.queued_at + form.after_seconds
            outcome.reasons.append(Reason(code=Code.HOLDING_OUT, other=form.name, until=until))


def held_form(workload: Workload) -> Form:
    """The form of a workload's claim; the first form if it has none, or its form was removed."""
    name = workload.held.form if workload.held else ""
    return next((form for form in workload.forms if form.name == name), workload.forms[0])


def steps_of(planning: PlanningRound, workload: Workload) -> list[tuple[str, Rung, Names]]:
    """The ladder of a workload: groups with their rungs and the clusters that it may use there."""
    candidates, policy = planning.candidates(workload), planning.snapshot.policy(workload)
    return [
        (group, rung, names)
        for group, rung in ladder(policy, tuple(name for name, _ in candidates.groups))
        if (names := candidates.in_group(group))
    ]


def climb(climber: Climber, outcome: Outcome) -> None:
    """Takes what each step of the ladder offers, until nothing more is wanted."""
    planning, workload = climber.planning, climber.workload
    options = planning.assignments(workload, climber.form)
    if not options:
        outcome.reasons.append(no_flavor(planning, workload, climber.form))
        return
    candidates = planning.candidates(workload)
    if candidates.refused:
        outcome.reasons.later(MayNotUse(refused=candidates.refused))
    take = {
        "Idle": climber.take_idle,
        "Preempt": climber.take_from_victims,
        "Provision": climber.take_new_nodes,
    }
    steps = steps_of(planning, workload)
    preempting = {group for group, rung, _ in steps if rung == "Preempt"}
    for place, (group, rung, names) in enumerate(steps):
        step = LadderStep(group=group, clusters=names, options=options)
        if rung == "Idle" and group in preempting:
            following = steps[place + 1 : place + 2]
            is_next = any(after[:2] == (group, "Preempt") for after in following)
            for part in parts_of(climber, step, preempts_next=is_next):
                _take_part(climber, part, outcome)
        if rung == "Preempt" and climber.wants(rung) and _is_cheaper_to_buy(climber, step):
            climber.take_new_nodes(step, outcome)
        if not climber.wants(rung):
            continue
        stopped = planning.stopped_by(rung)
        if stopped is not None:
            outcome.reasons.append(stopped)
        else:
            take[rung](step, outcome)
    if not steps:
        outcome.reasons.append(Reason(code=Code.NO_CLUSTER))  # no group of the ladder has clusters


def _is_cheaper_to_buy(climber: Climber, step: LadderStep) -> bool:
    """Whether the policy weighs prices and new nodes cost less than the work victims lose."""
    planning, workload = climber.planning, climber.workload
    policy = planning.snapshot.policy(workload)
    if not policy.weighs_price or planning.stopped_by("Provision") is not None:
        return False
    places = [(option, name) for option in step.options for name in step.clusters]
    lost = [
        price
        for option, name in places
        if (victims := climber.victims(name, option)) is not None
        and (price := price_of_loss(planning, victims)) is not None
    ]
    bought = [
        price
        for option, name in places
        if isinstance(nodes := climber.new_nodes(name, option), Provisioned)
        and (price := price_of_nodes(planning, workload, name, nodes)) is not None
    ]
    return bool(lost and bought) and min(bought) < min(lost)


def parts_of(
    climber: Climber, step: LadderStep, *, preempts_next: bool = True
) -> Iterator[LadderStep]:
    """The parts of a step in which idle capacity and victims are tried before the whole step.

    If the queue prefers preemption to borrowing: what is near, then ever more of the quota tree. If
    it stops at the first flavor that works: each flavor, without borrowing if it borrows last.
    """
    planning, workload = climber.planning, climber.workload
    for reach in reaches(planning, workload)[:-1]:
        yield replace(step, reach=reach)
    if preempts_next and len(step.options) > 1 and _stops_search(climber):
        reach = 0 if borrows_last(planning, workload) else ANYWHERE
        for option in step.options:
            yield replace(step, options=[option], reach=reach, is_narrow=True)


def _stops_search(climber: Climber) -> bool:
    """Whether the first flavor that works is taken, be it idle or by preemption."""
    planning, queue = climber.planning, climber.planning.queue(climber.workload)
    return (
        not queue.fungibility.compares_victims
        and not climber.needs_all_flavors
        and (queue.preemption.within_queue != "Never" or queue.preemption.reclaim != "Never")
        and planning.stopped_by("Preempt") is None
    )


def _take_part(climber: Climber, part: LadderStep, outcome: Outcome) -> None:
    """Takes idle capacity, else victims, within a part of a step.

    Reasons are left to the later steps, which look at everything again.
    """
    planning = climber.planning
    takes = [climber.take_idle]
    if planning.stopped_by("Preempt") is None:
        takes.append(climber.take_from_victims)
    for take in takes:
        if climber.wants("Idle"):
            attempt = Outcome()
            with planning.leaving.within(part.reach):
                take(part, attempt)
            outcome.steps.extend(attempt.steps)
            if not climber.wants("Idle"):
                outcome.reasons.clear()
        if part.is_narrow and climber.wants("Idle") and _is_cheaper_to_buy(climber, part):
            return  # this flavor does not stop the search


def offers(
    climber: Climber,
    step: LadderStep,
    request_of: Callable[[Assignment], PlacementRequest],
    outcome: Outcome,
) -> Iterator[Iterator[Victims | None]]:
    """For each flavor, the victims in each cluster; a user's limit may rule a flavor out."""
    planning = climber.planning
    for option in step.options:
        request = request_of(option)
        reason = user_reason(planning, request)
        if reason is not None:
            outcome.reasons.append(reason)
            continue
        names: Sequence[str] = step.clusters
        if names is not NOWHERE:
            names = clusters_to_search(planning, request, names, step.reach)
        yield _victims_in(climber, option, names, reach=step.reach)


def _victims_in(
    climber: Climber, option: Assignment, clusters: Sequence[str], *, reach: int
) -> Iterator[Victims | None]:
    return (climber.victims(name, option, reach=reach) for name in clusters)


def least_harmful(
    planning: PlanningRound,
    workload: Workload,
    offers: Iterable[Iterable[Victims | None]],
) -> Victims | None:
    """The best of all offers of victims: for each flavor, one from each cluster.

    A queue that stops its search takes the best of the first flavor that has victims. Otherwise
    whether quota is only reclaimed and how much is borrowed come before the harm to victims.
    """
    fungibility = planning.queue(workload).fungibility

    def key(victims: Victims) -> tuple[int, int, Ordered]:
        mode = 0 if not victims.victims else 1 if victims.reclaims else 2
        if not fungibility.compares_victims:
            return (0, 0, victims.order)
        if fungibility.prefers_preemption:
            return (victims.borrow_level, mode, victims.order)
        return (mode, victims.borrow_level, victims.order)

    best: Victims | None = None
    for offered in offers:
        some = [each for each in (best, *offered) if each is not None]
        best = min(some, key=key, default=None)
        if best is not None and not fungibility.compares_victims:
            return best
    return best


def borrows_last(planning: PlanningRound, workload: Workload) -> bool:
    """Whether the next flavor is tried before anything is borrowed."""
    return planning.queue(workload).fungibility.borrows_last


def reaches(planning: PlanningRound, workload: Workload) -> tuple[int, ...]:
    """How far each try of idle capacity and victims reaches up the quota tree; the last: anywhere.

    A queue that prefers preemption compares how far it borrows before it compares what yields.
    """
    if not planning.queue(workload).fungibility.prefers_preemption:
        return (ANYWHERE,)
    return (*planning.ledger.tree.heights(workload.queue)[:-1], ANYWHERE)


def borrow_passes(planning: PlanningRound, workload: Workload, step: LadderStep) -> tuple[int, ...]:
    """For services and sweeps: how far each pass over the flavors reaches up the quota tree."""
    if not step.reach or not borrows_last(planning, workload):
        return (step.reach,)
    return (0, step.reach)
