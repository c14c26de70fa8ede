"""The fleet after a plan is carried out, and the workloads as soon as a plan is decided.

`after` is for where one plan follows another: forecasts, what-if, and tests that look for a fixed
point. Victims, and others that an admission waits for, are gone at once; victims wait again; the
workloads admitted in their place have started.

`apply_plan` gives the state from the moment in which a plan is decided: claims are held and nothing
has started; victims have lost their claims, and are charged for what they release until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fairway.core.model import Held, Placed, Workload
from fairway.core.plan import Admit, Move, Plan, Preempt
from fairway.core.seats import are_alike
from fairway.core.snapshot import Facts

_NO_ATTEMPT = -1  # the attempt of a claim that is not stored yet


def after(facts: Facts, plan: Plan) -> Facts:
    """The facts after every step of a plan."""
    workloads = dict(facts.workloads)
    for step in plan.steps:
        match step:
            case Preempt():
                workloads[step.workload] = _requeue(workloads[step.workload])
            case Admit():
                workloads[step.workload] = _admit(workloads[step.workload], step, facts.now)
                for key in step.waits_for:
                    workloads[key] = replace(workloads[key], releasing=())
            case Move():
                workloads[step.workload] = _move(workloads[step.workload], step, facts.now)
            case _:
                continue  # nodes that are on their way change no claim
    places = {
        reservation.workload: (reservation.cluster, reservation.flavors)
        for reservation in plan.reservations
    }
    for key, workload in workloads.items():
        if workload.reservation != places.get(key):
            workloads[key] = replace(workload, reservation=places.get(key))
    return replace(facts, workloads=workloads)


def apply_plan(workloads: Mapping[str, Workload], plan: Plan) -> dict[str, Workload]:
    """The workloads that a plan changes, as soon as it is decided."""
    result: dict[str, Workload] = {}
    for step in plan.steps:
        before = result.get(step.workload) or workloads.get(step.workload)
        if before is None:
            continue  # it was deleted while the plan was made
        match step:
            case Preempt() if before.held is not None:
                result[step.workload] = _leaving(before, before.held)
            case Admit():
                waits_for = tuple(_awaited(key, result, workloads) for key in step.waits_for)
                result[step.workload] = _claim(before, step, plan.now, waits_for)
            case Move() if before.held is not None:
                source = _source(before.held, step)
                attempt = source.attempt or before.held.attempt
                part = _part(source, step.count)
                is_charged = not (step.stops_first and are_alike(part, step.placed))
                left = replace(
                    part,
                    bound={},
                    attempt=attempt,
                    is_charged=is_charged,
                    stays=not step.stops_first,
                )
                moved = _move(before, step, plan.now)
                result[step.workload] = replace(moved, releasing=(*moved.releasing, left))
            case _:
                continue
    return result


def _leaving(workload: Workload, held: Held) -> Workload:
    """A victim waits again, and is charged for what it held until that is gone."""
    left = (
        replace(placement, attempt=placement.attempt or held.attempt) for placement in held.placed
    )
    before = (replace(placement, stays=False) for placement in workload.releasing)
    return replace(_requeue(workload), releasing=(*before, *left))


def _awaited(
    key: str, body: Mapping[str, Workload], workloads: Mapping[str, Workload]
) -> tuple[str, int]:
    """A victim, with its last attempt that must be gone."""
    victim = body.get(key) or workloads.get(key)
    return key, max(
        (placement.attempt for placement in victim.stopping), default=0
    ) if victim else 0


def _claim(
    workload: Workload, step: Admit, now: float, waits_for: tuple[tuple[str, int], ...]
) -> Workload:
    admitted = _admit(workload, step, now)
    assert admitted.held is not None, "it was just admitted"
    before = workload.held
    held = replace(
        admitted.held,
        attempt=before.attempt if before else _NO_ATTEMPT,
        started_at=before.started_at if before else None,
        has_begun=before is not None,
        waits_for_victims=waits_for,
    )
    taken = _taken_away(before, step.placed) if before else ()
    left = tuple(replace(part, stays=bool(step.leaving)) for part in taken)
    return replace(admitted, held=held, reservation=None, releasing=(*workload.releasing, *left))


def _taken_away(before: Held, after: Sequence[Placed]) -> Iterator[Placed]:
    """What must stop, by cluster: it is charged until it is gone.

    Tasks are left out: those that are no longer placed have ended.
    """
    now = {placement.cluster: placement for placement in after}
    for old in before.placed:
        new = now.get(old.cluster)
        counts = {pod.name: pod.count for pod in new.pods} if new else {}
        pods = tuple(
            replace(pod, count=pod.count - counts.get(pod.name, 0), level="", domains=())
            for pod in old.pods
            if pod.count > counts.get(pod.name, 0)
        )
        if pods and not old.tasks:
            replicas = old.replicas - (new.replicas if new else 0)
            attempt = old.attempt or before.attempt
            yield replace(old, pods=pods, replicas=replicas, bound={}, attempt=attempt)


def _requeue(workload: Workload) -> Workload:
    """A victim waits again and keeps its age."""
    return replace(workload, held=None, was_preempted=True)


def _admit(workload: Workload, step: Admit, now: float) -> Workload:
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
        missing_copies=step.missing_copies,
    )
    rebalanced_at = now if step.is_rebalanced else workload.rebalanced_at
    return replace(workload, held=held, tasks=tasks, rebalanced_at=rebalanced_at)


def _move(workload: Workload, step: Move, now: float) -> Workload:
    assert workload.held is not None, "only what runs can move"
    placed = {placement.cluster: placement for placement in workload.held.placed}
    source = _source(workload.held, step)
    left = source.replicas - step.count
    if left:
        # Which replicas leave, and from which nodes and domains, is not known.
        stays = _part(source, left)
        pods = tuple(replace(pod, level="", domains=()) for pod in stays.pods)
        placed[step.source] = replace(stays, pods=pods, bound={})
    else:
        del placed[step.source]
    placed[step.placed.cluster] = step.placed
    ordered = tuple(placed[name] for name in sorted(placed))
    # A move counts as a decision, so the next one is not due before its time.
    held = replace(workload.held, placed=ordered, decided_at=now)
    rebalanced_at = now if step.is_rebalanced else workload.rebalanced_at
    return replace(workload, held=held, rebalanced_at=rebalanced_at)


def _source(held: Held, step: Move) -> Placed:
    return next(placement for placement in held.placed if placement.cluster == step.source)


def _part(source: Placed, replicas: int) -> Placed:
    """The part of a placement that has this many replicas."""
    pods = tuple(replace(pod, count=pod.count * replicas // source.replicas) for pod in source.pods)
    return replace(source, replicas=replicas, pods=pods)
