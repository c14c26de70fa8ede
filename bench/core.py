"""The scheduling core at full size: decisions of three kinds, memory, one arrival, growth.

Each kind is planned alone on the same fleet, so that one rate never hides another: what fits and
has one pod set, what fits and has several, and what does not fit. Rates are by CPU time of this
process, since machines are shared; wall time is told beside. One arrival is planned with the
snapshot maintained and the cursor of the cycle before.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from bench import fleets
from bench.figures import Report, percentile, resident_mib
from fairway.core.cycle import START, Cursor, plan
from fairway.core.forecast.judge import Judge
from fairway.core.model import Form, PodSet, Workload
from fairway.core.packing import pack
from fairway.core.plan import Admit, Plan, Preempt
from fairway.core.snapshot import Facts, Snapshot


def size_of(scale: float) -> fleets.Size:
    return fleets.Size(
        clusters=max(4, round(100 * scale)),
        nodes=max(500, round(5_000 * min(1.0, scale * 5))),
        queues=max(30, round(1_000 * scale)),
        waiting=max(500, round(100_000 * scale)),
        held=max(100, round(20_000 * scale)),
        forms=max(300, round(6_000 * scale)),
    )


def timed(snapshot: Snapshot, cursor: Cursor = START) -> tuple[Plan, Cursor, float, float]:
    """A whole cycle, with the seconds of CPU and of the wall that it took."""
    gc.collect()
    gc.freeze()  # as the hub does once it is up: what stays is not looked through again,
    gc.set_threshold(20_000, 20, 100)  # and what is new not so often
    cpu, wall = time.process_time(), time.perf_counter()
    found, cursor = plan(snapshot, cursor)
    return found, cursor, time.process_time() - cpu, time.perf_counter() - wall


def admitted(found: Plan) -> int:
    return sum(isinstance(step, Admit) for step in found.steps)


def only(facts: Facts, kind: str) -> Facts:
    """The same fleet, where only workloads of one kind wait."""
    chosen = {
        key: workload
        for key, workload in facts.workloads.items()
        if workload.held is not None or key.startswith(f"{kind}/")
    }
    return replace(facts, workloads=chosen)


def rates(report: Report, facts: Facts) -> None:
    aims = {"single": ("admits/s", 4_000), "gang": ("gangs of several pod sets/s", 800)}
    for kind, (name, aim) in aims.items():
        found, _, cpu, wall = timed(Snapshot(only(facts, kind)))
        count = admitted(found)
        report.add(name, count / cpu, "/s", aim=aim, decided=count, wall_s=wall)
    found, _, cpu, wall = timed(Snapshot(only(facts, "large")))
    refused = len(found.waiting)
    report.add("refusals/s", refused / cpu, "/s", aim=100_000, refused=refused, wall_s=wall)


def whole(report: Report, facts: Facts) -> tuple[Snapshot, Cursor, float]:
    """Everybody at once, and what the core needs of memory for it."""
    gc.collect()
    cpu = time.process_time()
    snapshot = Snapshot(facts)
    report.add("snapshot from scratch", time.process_time() - cpu, "s")
    found, cursor, cpu, wall = timed(snapshot)
    decided = admitted(found)
    each = cpu / max(1, decided + len(found.waiting))
    share = decided / max(1, decided + len(found.waiting))
    report.add("one cycle of all who wait", cpu, "s", fits=share, wall_s=wall)
    report.add("time per decision", each * 1e6, "us")
    judging(report, snapshot, found)
    return snapshot, cursor, each


def judging(report: Report, snapshot: Snapshot, made: Plan) -> None:
    """What it costs to say which of those that wait can never start: in the plan, and later."""
    judge = Judge()
    cpu = time.process_time()
    judge.judge(snapshot, made)
    report.add("judging a plan of all who wait", time.process_time() - cpu, "s")
    arrival = replace(made, waiting=made.waiting[:1])
    cpu = time.process_time()
    for _ in range(100):
        judge.judge(snapshot, arrival)
    report.add("judging one arrival", (time.process_time() - cpu) * 10, "ms")


# One arrival.


def arrivals(report: Report, snapshot: Snapshot, cursor: Cursor, count: int) -> None:
    random = np.random.default_rng(11)
    waiting = [workload for workload in snapshot.facts.workloads.values() if workload.is_waiting]
    queues = sorted({item.queue for item in waiting})
    known = [waiting[at] for at in random.integers(0, len(waiting), count).tolist()]
    nodes_each = len(next(iter(snapshot.facts.clusters.values())).nodes)
    fresh = [
        replace(
            known[number],
            queue=queues[number % len(queues)],
            forms=(fleets.form_of(1_000_000 + number, nodes_each, random),),
        )
        for number in range(count)
    ]
    stubborn = list(preempting(snapshot, max(5, count // 20)))
    for name, aim, some in (
        ("known shape", 5, known),
        ("new shape", 20, fresh),
        ("preempting", 200, stubborn),
    ):
        taken, steps = arrive(snapshot, cursor, name, some)
        extra = {"preempts": float(sum(isinstance(step, Preempt) for step in steps))}
        label = f"one arrival, {name}"
        report.add(f"{label}, p50", percentile(taken, 0.5) * 1000, "ms", **extra)
        report.add(f"{label}, p99", percentile(taken, 0.99) * 1000, "ms", aim=aim)


def arrive(
    snapshot: Snapshot, cursor: Cursor, name: str, some: Iterable[Workload]
) -> tuple[list[float], list[object]]:
    """Seconds for each: it is put into the snapshot, and a plan made for it alone."""
    taken: list[float] = []
    steps: list[object] = []
    for number, value in enumerate(some):
        workload = replace(value, key=f"{name}/{number}", queued_at=snapshot.now)
        cpu = time.process_time()
        snapshot.put(workload)
        found, _ = plan(snapshot, cursor.wake([workload.key]))
        taken.append(time.process_time() - cpu)
        steps.extend(found.steps)
    return taken, steps


def preempting(snapshot: Snapshot, count: int) -> Iterable[Workload]:
    """Gangs of one pod more than any cluster has room for, and of a shape that a holder gives up.

    The holder is of the same queue and runs in the cluster with most room for that shape.
    """
    made = 0
    for workload in snapshot.facts.workloads.values():
        if workload.held is None or made >= count:
            continue
        placed = workload.held.placed[0]
        shape = placed.pods[0].shape
        if len(shape.requests) < 3:
            continue
        flavor = snapshot.facts.flavors[placed.pods[0].flavors[0][1]]
        room = {
            name: pack.count(room, shape, snapshot.eligibility.of(room.cluster, shape, [flavor]))
            for name, room in snapshot.ledger.rooms.items()
        }
        most = max(room.values())
        if room[placed.cluster] < most or most > 400:
            continue
        made += 1
        pods = PodSet(name="main", shape=shape, count=most + 1, least=most + 1)
        yield Workload(
            key="",
            queue=workload.queue,
            priority=1_000,
            forms=(Form(flavors=(flavor.name,), pod_sets=(pods,)),),
        )


# Growth.


def growth(report: Report, scale: float, each_at_full: float) -> None:
    """Time per decision, as clusters and workloads grow a hundredfold; aims are ratios."""
    base = size_of(scale)
    each = []
    for clusters in (max(2, round(10 * scale)), max(20, round(1_000 * scale))):
        size = replace(
            base, clusters=clusters, nodes=200, waiting=2_000, held=clusters * 4, forms=600
        )
        found, _, cpu, _ = timed(Snapshot(fleets.fleet(size)))
        each.append(cpu / max(1, admitted(found) + len(found.waiting)))
        report.add(f"time per decision, {clusters:,} clusters", each[-1] * 1e6, "us")
    report.add("growth with 100 times the clusters, at most 2", each[1] / each[0], "x")
    few = replace(base, waiting=max(50, base.waiting // 100))
    found, _, cpu, _ = timed(Snapshot(fleets.fleet(few)))
    small = cpu / max(1, admitted(found) + len(found.waiting))
    report.add(f"time per decision, {few.waiting:,} waiting", small * 1e6, "us")
    report.add("growth with 100 times the waiting, at most 2", each_at_full / small, "x")


def run(report: Report, *, scale: float = 1.0) -> None:
    size = size_of(scale)
    print(
        f"Core: {size.clusters:,} clusters x {size.nodes:,} nodes, {size.queues:,} queues, "
        f"{size.waiting:,} waiting, {size.held:,} running"
    )
    gc.collect()
    before = resident_mib()
    facts = fleets.fleet(size)
    snapshot, cursor, each = whole(report, facts)
    gc.collect()
    report.add("memory of facts and snapshot", resident_mib() - before, "MiB", aim=1536)
    arrivals(report, snapshot, cursor, max(20, round(400 * min(1.0, scale * 10))))
    del snapshot, cursor
    rates(report, facts)
    del facts
    growth(report, scale, each)
