"""Proof from outside that nothing runs twice: programs that stamp a file, and a checker.

    python stamps.py FILE TASK SECONDS [--beat SECONDS] [--until FILE]

A run stamps its start, its heartbeats and its end, each as one line of JSON appended at once. The
clock is the machine's own since boot, the same for all processes and never set back. The checker
knows nothing of Fairway: it reads the lines and finds runs of one task that overlap, heartbeats
that stopped in the middle, and tasks that did not come to an end.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a task, by its stamps."""

    task: str
    name: str
    moments: tuple[float, ...]
    has_ended: bool

    @property
    def first(self) -> float:
        return self.moments[0]

    @property
    def last(self) -> float:
        return self.moments[-1]


def read(path: Path) -> list[Run]:
    """The runs in a file, in the order of their starts."""
    return runs_of(path.read_text().splitlines() if path.exists() else [])


def runs_of(lines: Iterable[str]) -> list[Run]:
    stamps: dict[str, list[dict[str, object]]] = {}
    for line in lines:
        stamp = json.loads(line)
        stamps.setdefault(stamp["run"], []).append(stamp)
    found = [
        Run(
            task=str(listed[0]["task"]),
            name=name,
            moments=tuple(float(str(item["at"])) for item in listed),
            has_ended=listed[-1]["event"] == "end",
        )
        for name, listed in stamps.items()
    ]
    return sorted(found, key=lambda run: (run.first, run.name))


def faults(
    runs: Sequence[Run], *, tasks: Iterable[str], gap_seconds_max: float, cut_runs: int = 0
) -> list[str]:
    """What is wrong: every task is to end exactly once, alone, without a gap.

    `cut_runs` is how many runs were ended on purpose before their end.
    """
    found = []
    by_task: dict[str, list[Run]] = {task: [] for task in tasks}
    for run in runs:
        if run.task not in by_task:
            found.append(f"{run.task}: nobody asked for it")
            continue
        by_task[run.task].append(run)
        found += _gaps(run, gap_seconds_max)
    for task, listed in by_task.items():
        found += _overlaps(task, listed)
        ends = sum(run.has_ended for run in listed)
        if ends != 1:
            found.append(f"{task}: ended {ends} times")
    cut = sum(not run.has_ended for run in runs)
    if cut != cut_runs:
        found.append(f"{cut} runs were cut short, {cut_runs} on purpose")
    return found


def _gaps(run: Run, seconds_max: float) -> list[str]:
    return [
        f"{run.task}: silent for {after - before:.2f} s in run {run.name}"
        for before, after in zip(run.moments, run.moments[1:], strict=False)
        if after - before > seconds_max
    ]


def _overlaps(task: str, runs: Sequence[Run]) -> list[str]:
    """Runs that began while another one was still alive, however long ago that one began."""
    found: list[str] = []
    latest: Run | None = None
    for run in runs:
        if latest is not None and run.first <= latest.last:
            found.append(f"{task}: run {run.name} began while {latest.name} was alive")
        if latest is None or run.last > latest.last:
            latest = run
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("task")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--beat", type=float, default=0.05)
    parser.add_argument("--until", default="", help="run until this file exists")
    given = parser.parse_args()
    began = now()
    run = f"{os.getpid()}@{began:.6f}"
    stamp(given.file, given.task, run, "start")
    while not (Path(given.until).exists() if given.until else now() - began >= given.seconds):
        time.sleep(given.beat)
        stamp(given.file, given.task, run, "beat")
    stamp(given.file, given.task, run, "end")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def stamp(path: str, task: str, run: str, event: str) -> None:
    line = json.dumps({"task": task, "run": run, "event": event, "at": now()}) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
