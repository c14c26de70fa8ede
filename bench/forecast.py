"""How good forecasts are: a trace replayed through the planner, its starts against what was said.

`python -m bench.forecast [FOLDER] [--jobs 1000] [--samples 40] [--every 5] [--skip 0]`

FOLDER holds `metacentrum-2013/jobs.csv.gz` and `clusters.csv.gz` (two clusters behind one queue;
users gave limits). Without it, a trace is generated from a fixed seed. The replay is the planner
itself at every arrival and end, with true run times and users' limits. Each time a job has to wait,
one in `every` gets its start forecast, at most `samples` of them, in four ways:

- with true run times as estimates: what is left is the error of not knowing later arrivals;
- with users' limits alone, as in production without estimates;
- with the mean share of their limits that jobs which ended before have used;
- naively: jobs before it in the queue, by the rate at which jobs started in the last day.

The error is of the wait. `within 2x`: the wait is between half and twice the forecast; waits below
a minute count as a minute.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.figures import Report
from fairway.core.cycle import plan
from fairway.core.forecast.starts import Expected, forecast
from fairway.core.model import Form, PodSet, Queue, Shape, Workload
from fairway.core.nodes import Cluster, Nodes
from fairway.core.plan import Admit
from fairway.core.snapshot import Facts, Settings, Snapshot, precedence
from fairway.core.transitions import after

_GIB = 1 << 30
_DAY = 86_400.0
_DEPTH = 200  # of the queue that a forecast looks at
_LEAST_WAIT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    key: str
    submitted: float
    seconds: float
    limit: float
    pods: int
    cpus: int
    memory: int
    pin: str = ""

    def workload(self) -> Workload:
        request = (("cpu", self.cpus * 1000), ("memory", self.memory))
        shape = Shape(requests=request if self.memory else request[:1])
        return Workload(
            key=self.key,
            queue="all",
            queued_at=self.submitted,
            forms=(
                Form(
                    pod_sets=(PodSet(name="main", shape=shape, count=self.pods, least=self.pods),)
                ),
            ),
            limit_seconds=self.limit,
            pinned_to=self.pin,
        )


def cluster(name: str, nodes: int, cpus: int, memory: int) -> Cluster:
    return Cluster(
        name=name,
        nodes=Nodes(
            names=tuple(f"{name}-{number:03d}" for number in range(nodes)),
            capacity={
                "cpu": np.full(nodes, cpus * 1000, dtype=np.int64),
                "memory": np.full(nodes, memory, dtype=np.int64),
            },
            ready=np.ones(nodes, dtype=np.bool_),
        ),
    )


# Traces.


def read(folder: Path, skip: int, count: int) -> tuple[list[Job], list[Cluster]]:
    """Jobs of a trace in order of submission, and its clusters."""
    with gzip.open(folder / "metacentrum-2013" / "clusters.csv.gz", "rt") as lines:
        clusters = [
            cluster(
                row["cluster"],
                int(row["nodes_seen_in_trace"]),
                int(row["cpus_per_node"]),
                int(float(row["mem_gib_per_node"]) * _GIB),
            )
            for row in csv.DictReader(lines)
        ]
    with gzip.open(folder / "metacentrum-2013" / "jobs.csv.gz", "rt") as lines:
        jobs = [_job(row) for row in csv.DictReader(lines)]
    jobs.sort(key=lambda job: (job.submitted, job.key))
    return jobs[skip : skip + count], clusters


def _job(row: dict[str, str]) -> Job:
    pods = max(1, int(row["nodes"]))
    seconds = float(row["duration_s"])
    return Job(
        key=f"m/{int(row['job_id']):05d}",
        submitted=float(row["submit_s"]),
        seconds=seconds,
        limit=max(float(row["walltime_s"]), seconds),
        pods=pods,
        cpus=max(1, int(row["cpus"]) // pods),
        memory=int(float(row["mem_gib"]) * _GIB) // pods,
        pin=row["pin"],
    )


def generate(count: int, seed: int = 7) -> tuple[list[Job], list[Cluster]]:
    """Jobs as traces have them: many small ones, long tails, limits far above run times."""
    chance = random.Random(seed)
    jobs, now = [], 0.0
    for number in range(count):
        now += chance.expovariate(1 / 170.0)
        seconds = min(5 * _DAY, chance.lognormvariate(7.6, 1.7))
        limit = seconds * chance.choice([1.1, 1.5, 2, 4, 10])
        jobs.append(
            Job(
                key=f"g/{number:05d}",
                submitted=now,
                seconds=seconds,
                limit=next(
                    item for item in (3600.0, 4 * 3600, 12 * 3600, _DAY, 60 * _DAY) if item >= limit
                ),
                pods=chance.choice([1, 1, 1, 1, 2, 4, 8, 16]),
                cpus=chance.choice([1, 2, 4, 8, 16]),
                memory=0,
            )
        )
    return jobs, [cluster("one", 20, 16, 0), cluster("two", 20, 16, 0)]


# The replay.


@dataclass(slots=True)
class Said:
    """What was said of one job when it had to wait."""

    at: float
    true: Expected
    limits: Expected
    share: Expected
    naive: float
    start: float | None = None


@dataclass(slots=True)
class Replay:
    jobs: list[Job]
    facts: Facts
    samples: int
    every: int = 1  # of those that wait, how many there are for each that is forecast
    said: dict[str, Said] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    starts: deque[float] = field(default_factory=deque)
    forecasts: list[float] = field(default_factory=list)  # seconds that one took
    shares: list[float] = field(default_factory=list)  # of limits used by those that ended
    waited: int = 0

    def run(self) -> None:
        known = {job.key: job for job in self.jobs}
        coming = deque(self.jobs)
        while coming or self.ends:
            moments = [item.submitted for item in list(coming)[:1]] + sorted(self.ends.values())[:1]
            now = min(moments)
            workloads = {
                key: workload
                for key, workload in self.facts.workloads.items()
                if self.ends.get(key, now + 1) > now
            }
            over = [known[key] for key, end in self.ends.items() if end <= now]
            self.shares.extend(item.seconds / item.limit for item in over)
            self.ends = {key: end for key, end in self.ends.items() if end > now}
            arrived = []
            while coming and coming[0].submitted <= now:
                arrived.append(coming.popleft())
                workloads[arrived[-1].key] = arrived[-1].workload()
            facts = replace(self.facts, now=now, workloads=workloads)
            made, _ = plan(Snapshot(facts))
            for step in made.steps:
                if isinstance(step, Admit):
                    self._start(step.workload, now, known[step.workload])
            self.facts = after(facts, made)
            for job in arrived:
                if job.key not in self.ends:
                    self.waited += 1
                    if self.waited % self.every == 1 % self.every:
                        self._say(job, known)
            if not coming and all(item.start is not None for item in self.said.values()):
                break

    def _start(self, key: str, now: float, job: Job) -> None:
        self.ends[key] = now + job.seconds
        self.starts.append(now)
        while self.starts and self.starts[0] < now - _DAY:
            self.starts.popleft()
        if key in self.said:
            self.said[key].start = now

    def _share(self) -> float:
        """The mean share of their limits that jobs which ended so far have used."""
        return statistics.fmean(self.shares) if self.shares else 1.0

    def _say(self, job: Job, known: dict[str, Job]) -> None:
        if len(self.said) >= self.samples:
            return
        line = sorted(
            (workload for workload in self.facts.workloads.values() if workload.is_waiting),
            key=precedence,
        )
        before = [item.key for item in line].index(job.key)
        if before >= _DEPTH:
            return
        rate = max(1, len(self.starts)) / _DAY
        informed = replace(
            self.facts,
            workloads={
                key: replace(workload, run_seconds=known[key].seconds)
                for key, workload in self.facts.workloads.items()
            },
        )
        began = time.perf_counter()
        limits = forecast(self.facts, depth=before + 1)[job.key]
        self.forecasts.append(time.perf_counter() - began)
        true = forecast(informed, depth=before + 1)[job.key]
        self.said[job.key] = Said(
            at=self.facts.now,
            true=true,
            limits=limits,
            share=forecast(self.facts, depth=before + 1, limit_share=self._share())[job.key],
            naive=(before + 1) / rate,
        )


# Figures.


def judge(report: Report, name: str, pairs: Iterable[tuple[float, float | None]]) -> None:
    """Errors of forecast waits against true ones; a forecast that says nothing is wrong."""
    errors, close, count, silent = [], 0, 0, 0
    for truth, guess in pairs:
        count += 1
        if guess is None:
            silent += 1
            continue
        errors.append(abs(truth - guess))
        ratio = max(truth, _LEAST_WAIT) / max(guess, _LEAST_WAIT)
        close += 0.5 <= ratio <= 2
    report.add(f"{name}: median absolute error", statistics.median(errors or [0.0]), "s")
    report.add(f"{name}: within 2x", 100 * close / max(1, count), "%", silent=silent)


def run(
    report: Report, *, folder: Path | None, jobs: int, samples: int, every: int, skip: int
) -> None:
    trace, clusters = generate(jobs) if folder is None else read(folder, skip, jobs)
    facts = Facts(
        now=trace[0].submitted,
        queues={"all": Queue(name="all")},
        clusters={cluster.name: cluster for cluster in clusters},
        settings=Settings(fair_sharing=False),
    )
    replay = Replay(trace, facts, samples, every)
    began = time.perf_counter()
    replay.run()
    said = [(item, item.start - item.at) for item in replay.said.values() if item.start is not None]
    report.add("jobs replayed", len(trace), "")
    report.add("jobs that had to wait", replay.waited, "", forecast=len(said))
    report.add("their median wait", statistics.median(truth for _, truth in said), "s")
    judge(report, "true run times", ((truth, _wait(value.true, value.at)) for value, truth in said))
    judge(
        report, "users' limits", ((truth, _wait(value.limits, value.at)) for value, truth in said)
    )
    judge(
        report, "share of limits", ((truth, _wait(value.share, value.at)) for value, truth in said)
    )
    judge(report, "naive queue length", ((truth, value.naive) for value, truth in said))
    for name, pick in (
        ("true run times", lambda item: item.true),
        ("users' limits", lambda item: item.limits),
    ):
        inside = sum(_is_inside(pick(value), value.at + truth) for value, truth in said)
        report.add(f"{name}: start within the range given", 100 * inside / max(1, len(said)), "%")
    report.add("one forecast, median", statistics.median(replay.forecasts), "s")
    report.add("all of it", time.perf_counter() - began, "s")


def _wait(expected: Expected, at: float) -> float | None:
    return None if expected.start is None else expected.start - at


def _is_inside(expected: Expected, start: float) -> bool:
    earliest = expected.earliest if expected.earliest is not None else start + 1
    return earliest <= start and (expected.latest is None or start <= expected.latest)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.forecast", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="traces; none: a generated one")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument(
        "--every", type=int, default=5, help="of so many that wait, one is forecast"
    )
    parser.add_argument("--skip", type=int, default=0, help="jobs of the trace left out before")
    arguments = parser.parse_args()
    report = Report()
    run(
        report,
        folder=arguments.folder,
        jobs=arguments.jobs,
        samples=arguments.samples,
        every=arguments.every,
        skip=arguments.skip,
    )
    report.keep("forecast-trace" if arguments.folder else "forecast-generated")


if __name__ == "__main__":
    main()
