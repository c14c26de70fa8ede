"""Policies: the clusters that each chooses, published in its status for others to use.

A choice is stable: a cluster is replaced only by one that scores better by the policy's margin. A
policy that is invalid, or whose spread rules cannot hold, keeps its last choice, with a condition.
Scores change all the time: a status in which only scores and their order differ is written at most
once a minute.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from operator import attrgetter

from msgspec.structs import replace

from fairway.api import codec
from fairway.api.errors import ApiError
from fairway.api.meta import Condition
from fairway.api.names import namespace_and_name
from fairway.api.policy import Decision, PlacementPolicy, PlacementPolicyStatus
from fairway.controllers.context import Context
from fairway.controllers.scheduling.questions import PolicyChoices
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.statuses import with_condition, with_status
from fairway.core.clusters.choice import Choice
from fairway.core.model import Spread
from fairway.core.modes.policy_clusters import PolicyChoice
from fairway.store.interface import Write
from fairway.store.keys import POLICIES

_log = logging.getLogger(__name__)

_WRITE = Write(user="system:fairway", manager="fairway-policies")
_SCORE_SECONDS = 60.0
_SATISFIED = "Satisfied"
_DECISIONS_MOST = 512  # as many as a status may list


class Policies:
    """The controller of policy statuses."""

    def __init__(self, context: Context, *, scheduler: Scheduler, look_seconds: float) -> None:
        self._look_seconds = look_seconds
        self._store = context.store
        self._cache = context.cache
        self._scheduler = scheduler
        self._clock = context.clock
        self._written_at: dict[str, float] = {}

    async def run(self) -> None:
        """Asks what policies choose and publishes it, until cancelled."""
        while True:
            await self._clock.sleep(self._look_seconds)
            if not len(self._cache.mirror(POLICIES)):
                continue
            try:
                choices = await self._scheduler.ask(PolicyChoices())
            except ApiError as fault:
                _log.info("what policies choose is not known: %s", fault)
                continue
            for choice in choices:
                try:
                    await self._write(choice)
                except (ApiError, OSError) as fault:
                    _log.info("the status of policy %s was not written: %s", choice.policy, fault)

    async def _write(self, chosen: PolicyChoice) -> None:
        stored = self._cache.mirror(POLICIES).get(namespace_and_name(chosen.policy))
        if stored is None:
            return
        body, now = stored.object(), self._clock.now()
        policy = codec.decode(body, PlacementPolicy)
        status = status_of(policy, chosen.choice, now)
        if status == policy.status:
            return
        due = self._written_at.get(chosen.policy, float("-inf")) + _SCORE_SECONDS
        if _without_scores(status) == _without_scores(policy.status) and now < due:
            return
        self._written_at[chosen.policy] = now
        await self._store.update(
            POLICIES,
            with_status(body, status),
            namespace=policy.metadata.namespace,
            subresource="status",
            write=_WRITE,
        )


def status_of(policy: PlacementPolicy, choice: Choice, now: float) -> PlacementPolicyStatus:
    """The status after a choice; clusters that stay chosen keep their time."""
    moment = datetime.fromtimestamp(int(now), UTC)
    since = {decision.cluster: decision.chosen_at for decision in policy.status.decisions}
    size = policy.spec.clusters_per_batch or max(len(choice.chosen), 1)
    decisions = tuple(
        Decision(
            cluster=chosen.cluster,
            group=chosen.group,
            score=chosen.score,
            batch=position // size,
            chosen_at=since.get(chosen.cluster, moment),
        )
        for position, chosen in enumerate(choice.chosen[:_DECISIONS_MOST])
    )
    reason, fault = _verdict(choice)
    total, listed = len(choice.chosen), len(decisions)
    note = f"the best {listed} of {total} chosen clusters are listed" if listed < total else ""
    condition = Condition(
        type=_SATISFIED,
        status="False" if fault else "True",
        reason=reason,
        message=fault or note,
        observed_generation=policy.metadata.generation,
        last_transition_time=moment,
    )
    return replace(
        policy.status,
        observed_generation=policy.metadata.generation,
        chosen=total,
        decisions=decisions,
        conditions=with_condition(policy.status.conditions, condition),
    )


def _verdict(choice: Choice) -> tuple[str, str]:
    """A code, and what is wrong; empty if nothing is."""
    kept = "the last choice is kept"
    if choice.faults:
        return "Invalid", f"{', '.join(choice.faults)}: not valid; {kept}"
    if choice.unmet:
        return "SpreadUnmet", f"{', '.join(map(_rule, choice.unmet))}; {kept}"
    if choice.missing:
        return "NotEnoughClusters", f"{choice.missing} more clusters are wanted than match"
    if not choice.chosen:
        return "NoCluster", "no cluster matches"
    return "AllChosen", ""


def _rule(rule: Spread) -> str:
    domains = f"values of {rule.label}" if rule.by == "Label" else f"{rule.by.lower()}s"
    return f"clusters of at least {rule.least} {domains} are needed"


def _without_scores(status: PlacementPolicyStatus) -> PlacementPolicyStatus:
    """A status without what follows from scores alone, if the same clusters are chosen."""
    decisions = [replace(decision, score=0, batch=0) for decision in status.decisions]
    return replace(status, decisions=tuple(sorted(decisions, key=attrgetter("cluster"))))
