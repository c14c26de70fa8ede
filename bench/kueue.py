"""The load of Kueue's own performance test, on our core alone.

Queues in cohorts, three classes of one-pod workloads that arrive at fixed intervals, run for a
fixed time once admitted, and begin again when evicted. Quota alone decides: no clusters, no fair
sharing, any borrower may be reclaimed from, lower priority yields within a queue. On a virtual
clock the core decides every tenth of a second, which shows the quality of its decisions; on the
real clock it decides whenever it is done with the last cycle.

Kueue's figures are means of its own continuous integration, on other hardware, with a real API
server and a client limited to 50 writes a second. They say what users see today; they were not
measured here and are not a like-for-like comparison of schedulers.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bench.figures import Report
from fairway.core import model
from fairway.core.cycle import plan
from fairway.core.model import Form, PodSet, Shape, Workload
from fairway.core.plan import Admit, Preempt
from fairway.core.snapshot import Facts, Settings, Snapshot

CPU, FLAVOR = "cpu", "rf"
TICK = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Workloads of one size."""

    name: str
    count: int
    every: float  # seconds before each creation
    runs: float
    priority: int
    cpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    name: str
    cohorts: int
    queues: int  # of each cohort
    classes: tuple[Class, ...]
    published: dict[str, float]  # of Kueue: wall seconds, share of use, seconds to admission


def _classes(*rows: tuple[int, float, float]) -> tuple[Class, ...]:
    fixed = (("small", 50, 1), ("medium", 100, 5), ("large", 200, 20))
    return tuple(
        Class(name=name, count=count, every=every, runs=runs, priority=priority, cpus=cpus)
        for (name, priority, cpus), (count, every, runs) in zip(fixed, rows, strict=True)
    )


BASELINE = Config(
    name="baseline",
    cohorts=5,
    queues=6,
    classes=_classes((350, 0.1, 0.2), (100, 0.5, 0.5), (50, 1.2, 1.0)),
    published={"wall": 351.1, "use": 55.9, "large": 16.5, "medium": 76.8, "small": 215.5},
)
LARGE_SCALE = Config(
    name="large-scale",
    cohorts=10,
    queues=100,
    classes=_classes((35, 0.06, 0.15), (11, 0.3, 0.35), (4, 0.7, 0.7)),
    published={"wall": 1179.4, "use": 38.6, "large": 105.6, "medium": 256.4, "small": 700.4},
)


def queues_of(config: Config) -> dict[str, model.Queue]:
    group = model.ResourceGroup(resources=(CPU,), flavors=(FLAVOR,))
    found = {}
    for cohort in range(config.cohorts):
        parent = f"cohort-{cohort}"
        found[parent] = model.Queue(name=parent)
        for number in range(config.queues):
            name = f"queue-{number:03}-{parent}"
            found[name] = model.Queue(
                name=name,
                parent=parent,
                groups=(group,),
                quotas={(FLAVOR, CPU): model.Quota(nominal=20_000, borrowing_limit=100_000)},
                preemption=model.PreemptionRules(within_queue="LowerPriority", reclaim="Any"),
            )
    return found


def arrivals_of(config: Config, scale: float) -> Iterator[tuple[float, Class, Workload]]:
    for queue in queues_of(config):
        if not queue.startswith("queue"):
            continue
        for class_ in config.classes:
            shape = Shape(requests=((CPU, class_.cpus * 1000),))
            pods = PodSet(name="main", shape=shape, count=1, least=1)
            for number in range(max(1, round(class_.count * scale))):
                at = (number + 1) * class_.every
                key = f"{queue}/{class_.name}-{number:04}"
                yield (
                    at,
                    class_,
                    Workload(
                        key=key,
                        queue=queue,
                        priority=class_.priority,
                        queued_at=at,
                        forms=(Form(pod_sets=(pods,)),),
                    ),
                )


@dataclass(slots=True)
class Run:
    """One run: what is to come, what runs, and what was seen."""

    config: Config
    snapshot: Snapshot
    coming: list[tuple[float, str]]
    classes: dict[str, Class]
    created: dict[str, Workload]
    ends: list[tuple[float, str, float]] = field(default_factory=list)
    admitted_at: dict[str, float] = field(default_factory=dict)
    running: int = 0  # thousandths of CPUs
    used: float = 0.0  # their integral over time
    evictions: int = 0
    seen: float = 0.0
    cycles: int = 0
    left: int = 0

    @classmethod
    def of(cls, config: Config, scale: float) -> Run:
        rows = list(arrivals_of(config, scale))
        facts = Facts(
            now=0.0,
            queues=queues_of(config),
            flavors={FLAVOR: model.Flavor(name=FLAVOR)},
            settings=Settings(fair_sharing=False, reserves=False),
        )
        return cls(
            config=config,
            snapshot=Snapshot(facts),
            coming=sorted(((at, value.key) for at, _, value in rows), reverse=True),
            classes={value.key: kind for _, kind, value in rows},
            created={value.key: value for _, _, value in rows},
            left=len(rows),
        )

    def advance(self, now: float) -> bool:
        """Lets time pass: ends, then arrivals; whether anything changed."""
        changed = False
        while self.ends and self.ends[0][0] <= now:
            at, key, admitted = heapq.heappop(self.ends)
            if self.admitted_at.get(key) != admitted:
                continue  # it was evicted since
            self._count(at, -self.classes[key].cpus)
            self.snapshot.remove(key)
            self.left -= 1
            changed = True
        while self.coming and self.coming[-1][0] <= now:
            _, key = self.coming.pop()
            self.snapshot.put(self.created[key])
            changed = True
        self.snapshot.advance(now)
        return changed

    def _count(self, at: float, cpus: int) -> None:
        self.used += self.running * max(0.0, at - self.seen)
        self.seen = max(self.seen, at)
        self.running += cpus

    def decide(self, now: float) -> None:
        found, _ = plan(self.snapshot)
        self.cycles += 1
        for step in found.steps:
            workload = self.snapshot.facts.workloads[step.workload]
            if isinstance(step, Preempt):
                self._count(now, -self.classes[step.workload].cpus)
                self.admitted_at.pop(step.workload)
                self.evictions += 1
                self.snapshot.put(replace(workload, held=None))
            elif isinstance(step, Admit):
                self._count(now, self.classes[step.workload].cpus)
                self.admitted_at[step.workload] = now
                held = model.Held(
                    queue=workload.queue, placed=step.placed, decided_at=now, started_at=now
                )
                self.snapshot.put(replace(workload, held=held))
                end = now + self.classes[step.workload].runs
                heapq.heappush(self.ends, (end, step.workload, now))

    def seconds_to_admission(self, name: str) -> float:
        waits = [
            at - self.created[key].queued_at
            for key, at in self.admitted_at.items()
            if self.classes[key].name == name
        ]
        return sum(waits) / max(1, len(waits))


def on_virtual_clock(run: Run) -> float:
    now = 0.0
    while run.left:
        now = round(now + TICK, 3)
        if run.advance(now):
            run.decide(now)
    return now


def on_real_clock(run: Run) -> float:
    started = time.perf_counter()
    while run.left:
        now = time.perf_counter() - started
        if run.advance(now):
            run.decide(now)
        else:
            time.sleep(0.001)
    return time.perf_counter() - started


def measure(report: Report, config: Config, scale: float) -> None:
    # Their figures say nothing about a smaller load.
    published = config.published if scale == 1.0 else {}
    for name, drive in (("virtual", on_virtual_clock), ("real", on_real_clock)):
        run = Run.of(config, scale)
        count = run.left
        cpu = time.process_time()
        seconds = drive(run)
        cpu = time.process_time() - cpu
        quota = 20 * config.cohorts * config.queues
        label = f"{config.name}, {name} clock"
        report.add(f"{label}: all {count:,} done after", seconds, "s", **_kueue(published, "wall"))
        use = 100 * run.used / (quota * seconds)
        report.add(f"{label}: use of quota, %", use, "", **_kueue(published, "use"))
        for class_ in reversed(config.classes):
            waited = run.seconds_to_admission(class_.name)
            kueue = _kueue(published, class_.name)
            report.add(f"{label}: {class_.name}, seconds to admission", waited, "s", **kueue)
        report.add(f"{label}: CPU time of the core", cpu, "s", cycles=run.cycles)
        report.add(f"{label}: decisions/s of CPU time", count / cpu, "/s")


def _kueue(published: dict[str, float], name: str) -> dict[str, float]:
    return {"kueue": published[name]} if published else {}


def run(report: Report, *, scale: float = 1.0) -> None:
    print("Kueue's load on our core; its figures are upstream means on other hardware")
    for config in (BASELINE, LARGE_SCALE):
        measure(report, config, scale)
