"""The search for the least harmful set of victims.

Sets are compared by the highest priority in them, then by work lost, then by size, then by name. So
the search goes through priorities from the lowest, and at each level through sets in order of work
lost: the first set that is sufficient and legal is the best. With up to twelve candidates every set
can be reached; bounds prune sets that cannot be sufficient even with all that could still join.
With more than twelve, a limited number of sets is tried. Then a set is built greedily, by quota and
room freed per work lost, and reduced until every member is needed.

A set is sufficient if the quota fits and, where nodes are scarce, a packing exists. It is legal if
the rules hold for exactly this set. Every member must be needed for the set to be sufficient: no
workload is preempted only to make another preemption legal. It could come back at once and undo
what it made legal, and so on for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from fairway.api.reasons import Code
from fairway.core.model import FlavorResource
from fairway.core.packing import pack
from fairway.core.preemption.freed_bounds import Ground
from fairway.core.preemption.holders import Holder, free_nodes
from fairway.core.preemption.rules import PreemptionCase

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

EXACT: Final = 12  # candidates among which the best set is always found
_LOOKS: Final = 120  # sets tried among more candidates, before one is built greedily
_REPAIRS: Final = 4  # attempts to build a set greedily: the result may be illegal

Chosen = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A set of victims that is sufficient and legal, the least work lost first."""

    victims: tuple[Holder, ...]
    codes: tuple[Code, ...]
    packed: pack.Packed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Where nodes are scarce: the cluster, and the pods that must fit there."""

    cluster: str
    wants: Sequence[pack.Want]
    domain: str
    ground: Ground


class Search:
    """The candidates, and what they must make room for."""

    def __init__(
        self,
        planning: PlanningRound,
        case: PreemptionCase,
        candidates: Sequence[Holder],
        missing: Mapping[FlavorResource, int],
        nodes: Nodes | None,
    ) -> None:
        self._planning = planning
        self._case = case
        self._candidates = candidates  # by (loss, key)
        self._losses = [candidate.loss for candidate in candidates]
        self._nodes = nodes
        self._missing = list(missing.values())
        self._illegal: list[frozenset[int]] = []  # sufficient, but illegal; so is any superset
        self._gives = [
            [candidate.usage.get(pair, 0) for pair in missing] for candidate in candidates
        ]

    def best(self) -> Found | None:
        """The least harmful set; None if no set is sufficient and legal."""
        everybody = tuple(range(len(self._candidates)))
        priorities = [candidate.workload.priority for candidate in self._candidates]
        for level in sorted(set(priorities)):
            allowed = tuple(number for number in everybody if priorities[number] <= level)
            if not self._may_do(allowed) or not self._is_enough(allowed):
                continue
            needed = frozenset(number for number in allowed if priorities[number] == level)
            match = self._least(allowed, needed)
            if match is not None:
                return match
        return None

    def _least(self, allowed: Chosen, needed: frozenset[int]) -> Found | None:
        looks = None if len(allowed) <= EXACT else _LOOKS
        for chosen in self._by_loss(allowed, looks):
            if not needed.isdisjoint(chosen):
                match = self._try(chosen)
                if match is not None:
                    return match
        return None if looks is None else self._put_together(allowed)

    # In order of work lost.

    def _by_loss(self, allowed: Chosen, looks: int | None) -> Iterator[Chosen]:
        """Sets that may be sufficient, the least work lost first, then the smallest."""
        rest = self._rest_of(allowed)
        heap: list[tuple[int, int, Chosen]] = [(self._losses[allowed[0]], 1, (0,))]
        while heap and looks != 0:
            lost, number, places = heappop(heap)
            looks = None if looks is None else looks - 1
            chosen = tuple(allowed[place] for place in places)
            last = places[-1]
            if not self._gives_enough(chosen[:-1], rest[last]):
                continue  # not sufficient, whatever joins or replaces the last one
            if self._may_do(chosen):
                yield chosen
            elif self._nodes and not self._nodes.ground.allows((*chosen[:-1], *allowed[last:])):
                continue
            if last + 1 < len(allowed):
                more = self._losses[allowed[last + 1]]
                heappush(heap, (lost + more, number + 1, (*places, last + 1)))
                instead = lost - self._losses[allowed[last]] + more
                heappush(heap, (instead, number, (*places[:-1], last + 1)))

    def _rest_of(self, allowed: Chosen) -> list[list[int]]:
        """What all candidates from each position on release together."""
        rest = [[0] * len(self._missing)]
        for number in reversed(allowed):
            rest.append([a + b for a, b in zip(rest[-1], self._gives[number], strict=True)])
        rest.reverse()
        return rest

    # Bounds.

    def _gives_enough(self, chosen: Chosen, more: Sequence[int] | None = None) -> bool:
        """Whether quota may be enough: the amounts released cover the amounts missing."""
        for place, missing in enumerate(self._missing):
            given = more[place] if more is not None else 0
            for number in chosen:
                given += self._gives[number][place]
            if given < missing:
                return False
        return True

    def _may_do(self, chosen: Chosen) -> bool:
        return self._gives_enough(chosen) and (
            self._nodes is None or self._nodes.ground.allows(chosen)
        )

    # Trials.

    def _try(self, chosen: Chosen) -> Found | None:
        """The set, if it is sufficient and legal; a sufficient but illegal set is remembered."""
        if any(item.issubset(chosen) for item in self._illegal):
            return None
        codes = self._judge(chosen)
        if codes is None:
            return None
        packed = None
        if self._nodes is not None:
            packed = self._pack(chosen)
            if packed is None:
                return None
        if not codes:
            self._illegal.append(frozenset(chosen))
            return None
        victims = tuple(self._candidates[number] for number in chosen)
        return Found(victims=victims, codes=tuple(codes), packed=packed)

    def _is_enough(self, chosen: Chosen) -> bool:
        """Whether the preemptor fits when these candidates are gone, legal or not."""
        with self._planning.ledger.trial():
            self._release(chosen)
            if not self._fits():
                return False
        return self._nodes is None or self._pack(chosen) is not None

    def _judge(self, chosen: Chosen) -> list[Code] | None:
        """Why each may be preempted; empty if one may not, None if quota does not fit."""
        with self._planning.ledger.trial():
            self._release(chosen)
            if not self._fits():
                return None
            self._settle()
            return self._case.judge([self._candidates[number] for number in chosen]) or []

    def _fits(self) -> bool:
        tree, workload = self._planning.ledger.tree, self._case.workload
        if not tree.fits(workload.queue, self._case.usage):
            return False
        return workload.preemptible or not tree.borrow_level(workload.queue, self._case.usage)

    def _release(self, chosen: Chosen) -> None:
        by_queue: dict[str, dict[FlavorResource, int]] = {}
        for number in chosen:
            holder = self._candidates[number]
            total = by_queue.setdefault(holder.queue, {})
            for pair, amount in holder.usage.items():
                total[pair] = total.get(pair, 0) + amount
        for queue, usage in by_queue.items():
            self._planning.ledger.release(queue, usage)

    def _settle(self) -> None:
        """Brings the ledger to its final state: the preemptor charged, all releases finished.

        A queue that borrows only because of usage that is being released has nothing to give back.
        """
        self._planning.ledger.charge(self._case.workload.queue, self._case.usage)
        self._planning.snapshot.rebates.let_go(self._planning.ledger)

    def _pack(self, chosen: Chosen) -> pack.Packed | None:
        nodes, planning = self._nodes, self._planning
        assert nodes is not None
        with planning.ledger.trial():
            for number in chosen:
                workload = self._candidates[number].workload
                free_nodes(planning.snapshot, planning.ledger, workload, nodes.cluster)
            packed = pack.pack(planning.ledger.rooms[nodes.cluster], nodes.wants, nodes.domain)
        return packed if isinstance(packed, pack.Packed) else None

    # More candidates than `EXACT`.

    def _put_together(self, allowed: Chosen) -> Found | None:
        """A good set: gathered by worth until it is sufficient, then reduced."""
        for _ in range(_REPAIRS):
            chosen = self._gather(allowed)
            if chosen is None:
                return None
            chosen = self._reduce(chosen)
            match = self._try(chosen)
            if match is not None:
                return match
            illegal = self._illegal_of(chosen)
            allowed = tuple(number for number in allowed if number not in illegal)
        return None

    def _gather(self, allowed: Chosen) -> Chosen | None:
        """The shortest prefix, by worth, that is sufficient; a longer one always is as well."""
        order = list(dict.fromkeys(number for some in self._by_worth(allowed) for number in some))
        if self._nodes is None:
            return self._gather_quota(order)
        low, high = 1, len(order)
        if not order or not self._is_enough(tuple(sorted(order))):
            return None
        while low < high:
            middle = (low + high) // 2
            first = tuple(sorted(order[:middle]))
            if self._may_do(first) and self._is_enough(first):
                high = middle
            else:
                low = middle + 1
        return tuple(sorted(order[:high]))

    def _gather_quota(self, order: Sequence[int]) -> Chosen | None:
        """The same where quota alone decides: releases one after the other until it fits."""
        ledger, chosen = self._planning.ledger, []
        with ledger.trial():
            for number in order:
                chosen.append(number)
                ledger.release(self._candidates[number].queue, self._candidates[number].usage)
                if self._fits():
                    return tuple(sorted(chosen))
        return None

    def _keep_by_quota(self, chosen: Chosen, order: Sequence[int]) -> Chosen:
        """The set without candidates whose quota is not needed."""
        ledger, kept = self._planning.ledger, set(chosen)
        with ledger.trial():
            self._release(chosen)
            for number in order:
                holder = self._candidates[number]
                ledger.charge(holder.queue, holder.usage)
                if self._fits():
                    kept.discard(number)
                else:
                    ledger.release(holder.queue, holder.usage)
        return tuple(sorted(kept))

    def _by_worth(self, allowed: Chosen) -> list[Chosen]:
        """Candidates, alone or by node, in the order in which they are gathered."""
        alone = sorted(allowed, key=lambda number: (-self._worth(number), number))
        if self._nodes is None:
            return [(number,) for number in alone]
        bundles = self._nodes.ground.bundles(allowed, self._losses)
        needs_quota = [(number,) for number in alone if self._missing]
        return [*bundles, *needs_quota, *((number,) for number in alone)]

    def _worth(self, number: int) -> float:
        """The part of the missing quota that a candidate releases, per work lost."""
        gives = zip(self._gives[number], self._missing, strict=True)
        part = sum(min(1.0, given / missing) for given, missing in gives)
        return part / (1 + self._losses[number])

    def _reduce(self, chosen: Chosen) -> Chosen:
        """The set without candidates that are not needed; the most harmful are dropped first."""
        order = sorted(
            chosen,
            key=lambda number: (
                self._candidates[number].workload.priority,
                self._losses[number],
                number,
            ),
            reverse=True,
        )
        if self._nodes is None:
            return self._keep_by_quota(chosen, order)
        size = max(1, len(order) // 2)
        while True:  # first many at a time, then one by one
            for start in range(0, len(order), size):
                some = set(order[start : start + size])
                fewer = tuple(number for number in chosen if number not in some)
                if fewer and self._may_do(fewer) and self._is_enough(fewer):
                    chosen = fewer
            if size == 1:
                return chosen
            order = [number for number in order if number in chosen]
            size = max(1, min(size, len(order)) // 2)

    def _illegal_of(self, chosen: Chosen) -> Chosen:
        """The members of a set that may not be preempted; the last one if each alone may."""
        with self._planning.ledger.trial():
            self._release(chosen)
            self._settle()
            illegal = [
                number for number in chosen if not self._case.judge([self._candidates[number]])
            ]
        return tuple(illegal) or chosen[-1:]
