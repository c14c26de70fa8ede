"""Bugs to be found by simulation: each patches the code as it runs, and says what it breaks.

    python -m tests.sim.planted [SEEDS]

The exit status is 1 if a bug is found by none of the seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from fairway.agent import duties, tender
from fairway.controllers.lifecycle import takeovers
from fairway.controllers.scheduling import commit
from fairway.controllers.scheduling.arrivals import Arrivals
from fairway.controllers.works.controller import Works
from fairway.core.snapshot import Snapshot
from fairway.sim.run import simulate
from fairway.store.embedded import refusals, store


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """What is planted, and where."""

    sentence: str
    target: Any
    name: str
    make: Callable[[Any], Any]  # from the code as it is
    also: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = ()  # the same, of other code


def _writes_blindly(_: Any) -> Any:
    """A status is written over whatever is there by now."""
    own = commit.write_status

    async def write_status(store: Any, body: Any, status: Any, write: Any) -> Any:
        metadata = body["metadata"]
        newest = await store.get(commit.WORKLOADS, metadata["name"], metadata["namespace"])
        version = newest.object()["metadata"]["resourceVersion"]
        body = {**body, "metadata": {**metadata, "resourceVersion": version}}
        return await own(store, body, status, write)

    return write_status


def _ignores_terms(own: Any) -> Any:
    def verdict(work: Any, kept: Any, term: int, **more: Any) -> Any:
        return own(work, kept, 0, **more)

    return verdict


def _forgets_releasing(own: Any) -> Any:
    def charge(self: Snapshot, workload: Any, sign: int) -> None:
        own(self, replace(workload, releasing=()), sign)

    return charge


def _conflicts_never(_: Any) -> Any:
    """The store takes every update, whatever version it was made from."""
    own = refusals.check_identity

    def check_identity(resource: Any, metadata: Any, old: Any, **more: Any) -> None:
        metadata = {**metadata, "resourceVersion": str(old.version)}
        own(resource, metadata, old, **more)

    return check_identity


def _says(answer: Any) -> Callable[[Any], Any]:
    """Code that always gives the same answer."""

    def make(_: Any) -> Any:
        return lambda *_, **__: answer

    return make


BUGS = (
    Bug(
        sentence="the committer writes a decision over what changed meanwhile (a lost update)",
        target=commit,
        name="write_status",
        make=_writes_blindly,
    ),
    Bug(
        sentence="the store lets an update win that was made from an old version",
        target=store,
        name="check_identity",
        make=_conflicts_never,
    ),
    Bug(
        sentence="an agent carries out what a leader of the past says",
        target=tender,
        name="verdict",
        make=_ignores_terms,
    ),
    Bug(
        sentence="what a workload leaves is not charged",
        target=Snapshot,
        name="_charge",
        make=_forgets_releasing,
    ),
    Bug(
        sentence="a restored hub sends to the old place",
        target=Works,
        name="_is_overtaken",
        make=_says(False),
        # It goes by what it has in its store, waits for nobody, and takes nothing over.
        also=((Arrivals, "waits_until", _says(None)), (takeovers, "claim_of", _says(None))),
    ),
)
assert duties.verdict is tender.verdict, "the agent asks what is patched"


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, make in ((bug.target, bug.name, bug.make), *bug.also):
            stack.enter_context(patch.object(target, name, make(getattr(target, name))))
        yield


def found_by(bug: Bug, seeds: range) -> tuple[int, str] | None:
    """The first seed that finds a bug, and what it says; without the bug nothing is wrong in it."""
    for seed in seeds:
        with planted(bug):
            result = simulate(seed)
        if result.violations and not simulate(seed).violations:
            return seed, result.violations[0]
    return None


def main() -> int:
    seeds = range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 200))
    missed = 0
    for bug in BUGS:
        found = found_by(bug, seeds)
        missed += found is None
        told = f"seed {found[0]}: {found[1]}" if found else f"NOT FOUND by {len(seeds)} seeds"
        print(f"{bug.sentence}\n    {told}", flush=True)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
