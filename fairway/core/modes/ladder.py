"""The ladder: every way to get capacity, in order, for gangs, services and sweeps alike.

A workload climbs in one form at a time: the first, then alternatives whose time has come. Each step
is a group of clusters and a rung: take what is idle, take from victims, take new nodes. Each mode
implements `Climber` and decides how much to take: a gang all or nothing, services and sweeps as
much as they get. The rules are the same for all modes:

- a rung whose circuit breaker is open gives nothing, and a reason says so;
- if the policy weighs prices, new nodes that cost less than the lost work come before victims;
- if the queue tries the next flavor before it borrows, its own quota comes first;
- every refusal is a reason, computed only when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from fairway.api.meta import Rung
from fairway.api.reasons import Code, Reason
from fairway.core.clusters.candidates import Names, ladder
from fairway.core.model import Form, Workload
from fairway.core.modes.outcome import Outcome
from fairway.core.planning_round import PlanningRound
from fairway.core.preemption.find import Victims
from fairway.core.provisioning.pools import NoNodes, Provisioned
from fairway.core.provisioning.price import price_of_loss, price_of_nodes
from fairway.core.quota.flavors import Assignment
from fairway.core.reasons import MayNotUse


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStep:
    """Where to take capacity: a group, its clusters, and the flavors in the queue's order."""

    group: str
    clusters: Names
    options: list[Assignment]


class Climber(Protocol):
    """A workload in one form, and what it has taken so far."""

    @property
    def planning(self) -> PlanningRound: ...
    @property
    def workload(self) -> Workload: ...
    @property
    def form(self) -> Form: ...

    def wants(self, rung: Rung) -> bool:
        """Whether the workload would take more on a rung."""

    def take_idle(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes what is idle."""

    def take_from_victims(self, step: LadderStep, outcome: Outcome) -> None:
        """Preempts victims, the least harmful first, and takes what they held."""

    def take_new_nodes(self, step: LadderStep, outcome: Outcome) -> None:
        """Takes nodes of elastic pools."""

    def victims(self, cluster: str, option: Assignment) -> Victims | None:
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


def climb(climber: Climber, outcome: Outcome) -> None:
    """Takes what each step of the ladder offers, until nothing more is wanted."""
    planning, workload = climber.planning, climber.workload
    options = planning.assignments(workload, climber.form)
    if not options:
        outcome.reasons.append(Reason(code=Code.NO_FLAVOR, queue=workload.queue))
        return
    candidates, policy = planning.candidates(workload), planning.snapshot.policy(workload)
    if candidates.refused:
        outcome.reasons.later(MayNotUse(refused=candidates.refused))
    take = {
        "Idle": climber.take_idle,
        "Preempt": climber.take_from_victims,
        "Provision": climber.take_new_nodes,
    }
    is_any_tried = False
    for group, rung in ladder(policy, tuple(name for name, _ in candidates.groups)):
        names = candidates.in_group(group)
        if not names:
            continue
        is_any_tried = True
        step = LadderStep(group=group, clusters=names, options=options)
        if rung == "Preempt" and climber.wants(rung) and _is_cheaper_to_buy(climber, step):
            climber.take_new_nodes(step, outcome)
        if not climber.wants(rung):
            continue
        stopped = planning.stopped_by(rung)
        if stopped is not None:
            outcome.reasons.append(stopped)
        else:
            take[rung](step, outcome)
    if not is_any_tried:
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


def borrows_last(planning: PlanningRound, workload: Workload) -> bool:
    """Whether the next flavor is tried before anything is borrowed."""
    return planning.queue(workload).fungibility.when_can_borrow == "TryNextFlavor"


def borrow_passes(planning: PlanningRound, workload: Workload) -> tuple[bool, ...]:
    """For services and sweeps: whether each pass over the flavors may borrow."""
    return (False, True) if borrows_last(planning, workload) else (True,)
