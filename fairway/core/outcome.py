"""What the fleet would be once a plan is carried out.

Used where a plan is followed by another: forecasts, simulation, and the tests that look for a fixed
point. Victims are gone at once and wait again; what they left room for has started.
"""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Held, Workload
from fairway.core.snapshot import Facts
from fairway.core.steps import Admit, Move, Plan, Preempt


def after(facts: Facts, plan: Plan) -> Facts:
    """The facts after every step of a plan."""
    workloads = dict(facts.workloads)
    for step in plan.steps:
        match step:
            case Preempt():
                workloads[step.workload] = _requeued(workloads[step.workload])
            case Admit():
                workloads[step.workload] = _admitted(workloads[step.workload], step, facts.now)
            case Move():
                workloads[step.workload] = _moved(workloads[step.workload], step, facts.now)
            case _:
                continue  # nodes on their way change nothing that is claimed
    places = {one.workload: (one.cluster, one.flavors) for one in plan.reservations}
    for key, workload in workloads.items():
        if workload.reservation != places.get(key):
            workloads[key] = replace(workload, reservation=places.get(key))
    return replace(facts, workloads=workloads)


def _requeued(workload: Workload) -> Workload:
    """A victim waits again, as old as it was."""
    return replace(workload, held=None, was_preempted=True)


def _admitted(workload: Workload, step: Admit, now: float) -> Workload:
    before = workload.held
    tasks = workload.tasks
    held = Held(
        attempt=before.attempt if before else 1,
        queue=workload.queue,
        placed=step.placed,
        form=step.form,
        rung=step.rung,
        decided_at=before.decided_at if before else now,
        started_at=before.started_at if before else now,
    )
    return replace(workload, held=held, tasks=tasks)


def _moved(workload: Workload, step: Move, now: float) -> Workload:
    assert workload.held is not None, "only what runs can move"
    placed = {one.cluster: one for one in workload.held.placed}
    source = placed[step.source]
    left = source.replicas - step.count
    if left:
        # Which of them leave, and from which nodes and domains, is not known.
        pods = tuple(
            replace(one, count=one.count * left // source.replicas, level="", domains=())
            for one in source.pods
        )
        placed[step.source] = replace(source, replicas=left, pods=pods, bound={})
    else:
        del placed[step.source]
    placed[step.placed.cluster] = step.placed
    ordered = tuple(placed[name] for name in sorted(placed))
    # A move is a decision: the next one waits its time.
    return replace(workload, held=replace(workload.held, placed=ordered, decided_at=now))
