"""The command: one seed or many."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import Pool

from fairway.sim.run import Result, simulate


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairway.sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="run one seed and tell all of it")
    parser.add_argument("--seeds", type=int, default=20, help="run so many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--quiet", action="store_true", help="without the events of one seed")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        result = simulate(given.seed, keeps_lines=not given.quiet)
        for line in result.lines:
            _say(line)
        _tell(result)
        return bool(result.violations)
    return _many(range(given.first, given.first + given.seeds), given.jobs)


def _many(seeds: range, jobs: int) -> int:
    failed: list[Result] = []
    faults: Counter[str] = Counter()
    steps = counted = 0
    seconds = 0.0
    for result in _results(seeds, jobs):
        _tell(result)
        faults.update(result.faults)
        steps += result.steps
        seconds += result.processor_seconds
        counted += result.is_counted
        if result.violations:
            failed.append(result)
    told = ", ".join(f"{kind} {many}" for kind, many in sorted(faults.items()))
    _say(f"{len(seeds)} seeds, {counted} counted, {steps} steps, {seconds:.1f} s of a processor")
    _say(f"faults: {told}")
    for result in failed:
        _say(f"FAILED: make sim SEED={result.seed}")
    return bool(failed) or counted < len(seeds)


def _results(seeds: range, jobs: int) -> Iterator[Result]:
    if jobs <= 1:
        yield from map(simulate, seeds)
        return
    with Pool(jobs) as pool:
        yield from pool.imap(simulate, seeds)


def _tell(result: Result) -> None:
    word = "FAILED" if result.violations else "ok" if result.is_counted else "not counted"
    _say(
        f"seed {result.seed} {result.digest} {word}: {result.steps} steps, "
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
