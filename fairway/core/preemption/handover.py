"""What victims leave: it may be given away at once, but only to those who wait until it is there.

A victim goes on using its nodes and its quota until it is confirmed gone. Whoever takes of them in
the same plan waits for that: the one for whom it yields, and those who come after and take what is
left over. A victim may itself have been waiting for others to be gone; then so does its heir.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairway.core.model import Usage, Workload
from fairway.core.nodes import Packing
from fairway.core.preemption.handed_quota import Charges, queue_of

if TYPE_CHECKING:
    from fairway.core.ledger import Ledger
    from fairway.core.snapshot import Snapshot


class Leaving:
    """The victims of one plan, and who has taken what of theirs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes: dict[str, dict[int, list[str]]] = {}  # cluster -> position -> victims there
        self._quota: dict[str, Usage] = {}  # by victim
        self._total: Charges = {}  # of all victims
        self._awaited: dict[str, None] = {}  # by whom the planner looks at, in order

    def turn_to(self, workload: Workload) -> None:
        """From now on this one takes; it waits on for those it waited for already."""
        self._awaited = dict.fromkeys(self._still_here(workload))

    def add(self, victim: Workload, usage: Usage) -> None:
        """One has to go, for the one who takes now."""
        self._awaited[victim.key] = None
        self._quota[victim.key] = usage
        of_queue = self._total.setdefault(queue_of(victim), {})
        for pair, amount in usage.items():
            of_queue[pair] = of_queue.get(pair, 0) + amount
        for placed in victim.held.placed if victim.held else ():
            nodes = self._nodes.setdefault(placed.cluster, {})
            for counts in self._snapshot.packings.get((victim.key, placed.cluster), {}).values():
                for position in counts:
                    nodes.setdefault(position, []).append(victim.key)

    def take(
        self, ledger: Ledger, queue: str, usage: Usage, cluster: str, packing: Packing
    ) -> None:
        """Somebody is about to be charged, and to put pods on nodes."""
        if not self._quota:
            return
        nodes = self._nodes.get(cluster, {})
        for counts in packing.values():
            for position in counts:
                self._awaited.update(dict.fromkeys(nodes.get(position, ())))
        needs = {pair: amount for pair, amount in usage.items() if amount > 0}
        self._awaited.update(dict.fromkeys(self._whose_quota(ledger, queue, needs)))

    def awaited(self) -> tuple[str, ...]:
        """Whom the one who took must wait for."""
        found = dict(self._awaited)
        for key in self._awaited:
            found.update(dict.fromkeys(self._still_here(self._snapshot.facts.workloads[key])))
        return tuple(found)

    def _whose_quota(self, ledger: Ledger, queue: str, needs: Usage) -> Iterable[str]:
        """Those without whose quota it would not be enough; who is waited for does not count."""
        others = [
            key
            for key, usage in self._quota.items()
            if key not in self._awaited and any(usage.get(pair) for pair in needs)
        ]
        if not others:
            return ()
        with ledger.trial():
            for name, usage in self._total.items():
                ledger.charge(name, usage)
            if ledger.tree.fits(queue, needs):
                return ()  # beside all of them
        with ledger.trial():
            for key in others:
                ledger.charge(self._queue_of(key), self._quota[key])
            return () if ledger.tree.fits(queue, needs) else others

    def _queue_of(self, key: str) -> str:
        return queue_of(self._snapshot.facts.workloads[key])

    def _still_here(self, workload: Workload) -> Iterator[str]:
        for key, _ in workload.held.waits_for_victims if workload.held else ():
            found = self._snapshot.facts.workloads.get(key)
            if found is not None and found.releasing:
                yield key
