"""Invariants that must hold once the faults have stopped and time has passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from fairway.api.meta import GROUP
from fairway.api.names import OVER, work_name
from fairway.sim.checks import CheckedWorkload, Checks
from fairway.sim.database import Database
from fairway.sim.fleet import FLAVOR_OF, HOME, NAMESPACE, Wish
from fairway.sim.log import Log
from fairway.sim.time import Time
from fairway.sim.truth import Truth

_LOOK_SECONDS = 4.0
_STEPS_MOST = 40_000  # past which it never comes to rest
_CALM_SECONDS = 20.0  # how long everything must be at rest


class Rest:
    """Waits until everything is at rest, and reports what is not."""

    def __init__(
        self,
        database: Database,
        time: Time,
        log: Log,
        wishes: Mapping[str, Wish],
        truth: Truth,
        checks: Checks,
    ) -> None:
        self._database = database
        self._time = time
        self._log = log
        self._wishes = wishes
        self._truth = truth
        self._checks = checks

    async def come(self, seconds_most: float) -> None:
        """Lets time pass until everything is at rest; reports what is not by then."""
        end, calm = self._time.now() + seconds_most, 0.0
        while calm < _CALM_SECONDS and not self._log.violations:
            await self._time.sleep(_LOOK_SECONDS)
            self.look()
            restless = list(self._restless())
            calm = 0.0 if restless else calm + _LOOK_SECONDS
            if self._time.now() > end or self._log.steps > _STEPS_MOST:
                for sentence in restless:
                    self._log.report(f"at the end {sentence}")
                return

    def look(self) -> None:
        self._truth.look()

    def count_unfinished(self) -> int:
        """How many workloads are not over yet."""
        return sum(
            wish.mode != "Divided"
            and (
                (workload := self._checks.seen.get(name)) is None
                or workload.status.phase not in OVER
            )
            for name, wish in self._wishes.items()
            if not wish.is_deleted
        )

    def _restless(self) -> Iterator[str]:
        works = {
            (body["metadata"]["namespace"], body["metadata"]["name"]): body
            for body in self._database.live().bodies((GROUP, "works"))
        }
        wanted = set()
        for name, wish in self._wishes.items():
            workload = self._checks.seen.get(name)
            if workload is None:
                if not wish.is_deleted:
                    yield f"{name} is lost"
                continue
            if wish.is_deleted and wish.uid in ("", workload.metadata.uid):
                yield f"{name} is not deleted"
            yield from self._find_unfinished(name, wish, workload)
            if workload.status.claim is not None:
                wanted |= {
                    (placement.cluster, work_name(NAMESPACE, name))
                    for placement in workload.status.claim.placements
                }
        for cluster in FLAVOR_OF:
            for (namespace, name), body in works.items():
                if namespace != f"fairway-cluster-{cluster}":
                    continue
                is_known = name.partition(".")[2] in self._checks.seen
                if body["spec"].get("tombstone") or not is_known:
                    yield f"the work {name} of {cluster} is left"
        for place in self._truth.leftovers():
            cluster, _, name = place.partition("/")
            if (cluster, name) not in wanted:
                yield f"{place} runs and nobody asked for it"

    def _find_unfinished(self, name: str, wish: Wish, workload: CheckedWorkload) -> Iterator[str]:
        status = workload.status
        if status.releasing:
            yield f"{name} still leaves {[placement.cluster for placement in status.releasing]}"
        if status.phase in OVER:
            return  # a cancelled one may have ended before it could be cancelled
        if wish.is_cancelled:
            yield f"{name} is not cancelled but {status.phase}"
        if wish.mode != "Divided":
            yield f"{name} is {status.phase or 'waiting'} and not over"
            return
        pods = sum(
            len(self._truth.pods(cluster, work_name(NAMESPACE, name))) for cluster in FLAVOR_OF
        )
        if status.phase != "Running" or pods != wish.pods:
            yield f"{name} is {status.phase} with {pods} pods of {wish.pods}"
        claimed = status.claim.placements if status.claim is not None else ()
        places = {placement.cluster for placement in claimed}
        if wish.has_home and places != {HOME}:
            yield f"{name} is away from home: {sorted(places)}"

    def phases(self) -> Mapping[str, int]:
        return Counter(
            workload.status.phase or "Waiting" for workload in self._checks.seen.values()
        )
