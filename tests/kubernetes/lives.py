"""What truly ran in the members, by their nodes' own notes: nothing twice, and all to its end.

The notes of all members are of one clock and are written before anybody is told, so they can be
compared: two attempts at one workload must never run at the same time, wherever they are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path

from fairway.agent.drivers.kubernetes.marks import ATTEMPT, WORK


@dataclass(frozen=True, kw_only=True)
class Run:
    """A pod of ours, from its start to its end."""

    work: str
    attempt: int
    member: str
    pod: str
    start: float
    end: float = inf
    code: int | None = None

    @property
    def copy(self) -> tuple[int, str]:
        """Runs of one copy may overlap: they are the pods of a gang."""
        return self.attempt, self.member


_SERVICE = "pod-template-hash"  # of pods of Deployments, which run in several members at once


def file_of(folder: Path) -> Path:
    return folder / "lives.jsonl"


def read(folder: Path, member: str, since: float = 0.0) -> list[Run]:
    """What ran in a member from some moment on, of what is ours and is to run once."""
    begun: dict[str, Run] = {}
    ended: list[Run] = []
    for line in file_of(folder).read_text().splitlines():
        note = json.loads(line)
        labels = note["labels"]
        if WORK not in labels or note["at"] < since or _SERVICE in labels:
            continue
        run = Run(
            work=labels[WORK],
            attempt=int(labels[ATTEMPT]),
            member=member,
            pod=note["pod"],
            start=note["at"],
        )
        if note["isRunning"]:
            begun[note["uid"]] = run
        elif (first := begun.pop(note["uid"], None)) is not None:
            ended.append(
                Run(**{**vars(first), "end": note["at"], "code": note["code"]}),
            )
    return [*ended, *begun.values()]


def twice(runs: Iterable[Run]) -> list[str]:
    """Workloads of which two copies ran at the same time, in sentences."""
    found = []
    for work, several in _by_work(runs).items():
        spans: dict[tuple[int, str], tuple[float, float]] = {}
        for item in several:
            start, end = spans.get(item.copy, (inf, -inf))
            spans[item.copy] = (min(start, item.start), max(end, item.end))
        ordered = sorted(spans.items(), key=lambda span: span[1])
        found += [
            f"{work}: attempt {later[0]} began in {later[1]} {end - start:.3f} s before attempt "
            f"{earlier[0]} had ended in {earlier[1]}"
            for (earlier, (_, end)), (later, (start, _)) in pairwise(ordered)
            if start < end
        ]
    return found


def done_more_than_once(runs: Iterable[Run]) -> list[str]:
    """Workloads that succeeded in more than one copy."""
    return [
        work
        for work, several in _by_work(runs).items()
        if len({item.copy for item in several if item.code == 0}) > 1
    ]


def _by_work(runs: Iterable[Run]) -> dict[str, Sequence[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for item in runs:
        found[item.work].append(item)
    return dict(sorted(found.items()))
