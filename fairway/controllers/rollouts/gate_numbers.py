"""Asks gates for their numbers."""

from __future__ import annotations

from fairway.api.rollout import Gate, Rollout, RolloutStatus
from fairway.controllers.metric_sources import Measuring
from fairway.controllers.rollouts.register import workload_of
from fairway.metrics.interface import MetricsFault, value
from fairway.serving.rollout.case import Answer
from fairway.serving.rollout.gates import due_at

_HEARD = ("Soaking", "AwaitingApproval")


def due(rollout: Rollout, status: RolloutStatus, now: float) -> list[Gate]:
    """Gates to be asked now; only a healthy batch can pass one."""
    if status.phase not in _HEARD:
        return []
    gates = rollout.spec.strategy.gates
    return [gate for gate in gates if due_at(gate, status.gates) <= now]


def filled_in(query: str, rollout: Rollout, status: RolloutStatus) -> str:
    """A query about this revision."""
    namespace, workload = workload_of(rollout)
    clusters = [cluster.cluster for cluster in status.clusters if cluster.mark == status.target]
    words = {
        "${revision}": status.target,
        "${namespace}": namespace,
        "${workload}": workload,
        "${clusters}": "|".join(clusters),
    }
    for word, meaning in words.items():
        query = query.replace(word, meaning)
    return query


async def ask(
    measuring: Measuring, rollout: Rollout, status: RolloutStatus, gate: Gate, *, now: float
) -> Answer:
    """The answer of a gate; a source that does not respond is an answer too."""
    try:
        source = await measuring.source(gate.prometheus, rollout.metadata.namespace)
        number = await value(source, filled_in(gate.query, rollout, status), at=now)
    except MetricsFault as fault:
        return Answer(gate=gate.name, value=None, at=now, message=str(fault))
    return Answer(gate=gate.name, value=number, at=now)
