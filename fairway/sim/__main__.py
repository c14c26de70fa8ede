"""The command: one seed or many.

    python -m fairway.sim --seed 7             one seed, told in full
    python -m fairway.sim --seeds 200          many fresh ones, by all processors
    python -m fairway.sim --seeds 200 --first 7

Unless told otherwise, the first of many seeds is drawn from the code itself: every version tries
what none has tried before, and a run of the same version is the same run. The first is told, and
each seed that fails with the command that repeats it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from time import monotonic

from fairway.sim.run import Result, prepare, simulate, simulate_last

_SEEDS_APART = 1_000  # between two versions with adjacent numbers
_VERSIONS = 1_000_000_000
_TOLD_EVERY = 20  # seeds, if output is not a terminal


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fairway.sim",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="run one seed and tell all of it")
    parser.add_argument("--seeds", type=int, default=20, help="run so many seeds")
    parser.add_argument("--first", type=int, help="the first of them; otherwise a fresh one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--quiet", action="store_true", help="without the events of one seed")
    parser.add_argument("--each", action="store_true", help="a line for each of many seeds")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        result = simulate(given.seed, keeps_lines=not given.quiet)
        for line in result.lines:
            _say(line)
        _tell(result)
        return bool(result.violations)
    first = given.first if given.first is not None else _version() * _SEEDS_APART
    seeds = range(first, first + given.seeds)
    return _many(seeds, given.jobs, tells_each=given.each)


def _version() -> int:
    """A number derived from the code."""
    code = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        code.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return int.from_bytes(code.digest()[:8], "big") % _VERSIONS


def _many(seeds: range, jobs: int, *, tells_each: bool) -> int:
    _say(
        f"seeds {seeds.start} to {seeds.stop - 1} (make sim SEEDS={len(seeds)} FIRST={seeds.start})"
    )
    progress = Progress(len(seeds))
    faults: Counter[str] = Counter()
    failed: list[Result] = []
    steps = counted = 0
    seconds = 0.0
    for result in _results(seeds, jobs):
        if result.violations or not result.is_counted:
            failed.append(result)
        if tells_each or result in failed:
            progress.clear()
            _tell(result)
        progress.seed(len(failed))
        faults.update(result.faults)
        steps += result.steps
        seconds += result.processor_seconds
        counted += result.is_counted
    progress.clear()
    summary = ", ".join(f"{kind} {many}" for kind, many in sorted(faults.items()))
    _say(
        f"{len(seeds)} seeds, {counted} counted, {steps} steps, {seconds:.1f} s of a processor "
        f"in {progress.seconds():.1f} s"
    )
    _say(f"faults: {summary}")
    for result in failed:
        _say(f"{_word(result)}: make sim SEED={result.seed}")
    return bool(failed)


class Progress:
    """Progress over many seeds: one line that updates, or an occasional line in a file."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._began = monotonic()
        self._is_seen = sys.stdout.isatty()

    def seconds(self) -> float:
        return monotonic() - self._began

    def seed(self, failed: int) -> None:
        """Counts one more finished seed."""
        self._done += 1
        left = self.seconds() / self._done * (self._total - self._done)
        line = f"{self._done} of {self._total} seeds, {failed} failed, about {left:.0f} s left"
        if self._is_seen:
            sys.stdout.write(f"\r\x1b[K{line}")
            sys.stdout.flush()
        elif self._done % _TOLD_EVERY == 0 and self._done < self._total:
            _say(line)

    def clear(self) -> None:
        """Clears the line for other output."""
        if self._is_seen:
            sys.stdout.write("\r\x1b[K")


def _results(seeds: range, jobs: int) -> Iterator[Result]:
    if jobs <= 1:
        yield from map(simulate, seeds)
        return
    # The common start of all seeds is made once, here. Each seed then has its own process: its
    # garbage, which would slow the next seed, goes with the process and is never collected.
    prepare()
    with get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(simulate_last, seeds)


def _word(result: Result) -> str:
    return "FAILED" if result.violations else "ok" if result.is_counted else "not counted"


def _tell(result: Result) -> None:
    _say(
        f"seed {result.seed} {result.digest} {_word(result)}: {result.steps} steps, "
        f"{len(result.faults)} kinds of faults, {result.crashes_after_claim} crashes between claim "
        f"and work, {result.virtual_seconds:.0f} s in {result.processor_seconds:.2f} s, "
        f"{dict(sorted(result.phases.items()))}"
    )
    for sentence in result.violations:
        _say(f"    {sentence}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
