"""The search for the least harmful set of victims.

Sets are compared by one key, in this order: how many victims could come straight back, since their
queue owns what they used and others borrow it; whether any is of the preemptor's own queue; with
fair sharing, how little the least guilty queue exceeds its share; then, for each priority of the
set, the highest first: the priority, the work lost, the number of victims. The key depends on the
set alone, so it compares sets of different clusters and flavors, and nothing else in the fleet
changes which of them is chosen.

Who could come straight back depends on the whole set, and is known only once it is tried; a bound
on it, and the rest of the key, are known for each candidate. So the search goes through sets in
order of a lower bound of their key, and stops when no set that is left can be better. With up to
twelve candidates the best set is always found. With more, only the candidates with the best keys
take part, as many as are needed. A limited number of sets is tried, then a set is built greedily,
by quota and room freed per work lost, and reduced until every member is needed.

A set is sufficient if the quota fits and, where nodes are scarce, a packing exists. It is legal if
the rules hold for exactly this set. Every member must be needed for the set to be sufficient: no
workload is preempted only to make another preemption legal. It could come back at once and undo
what it made legal, and so on for ever.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from fairway.api.reasons import Code
from fairway.core.admission import allowance_of
from fairway.core.model import FlavorResource
from fairway.core.packing import pack
from fairway.core.packing.pack import short_allowances
from fairway.core.preemption.freed_bounds import Ground
from fairway.core.preemption.harm import Bounds, Harm, Rank, guilt_of, losses_of
from fairway.core.preemption.holders import Foot, Holder, free_nodes
from fairway.core.preemption.rules import PreemptionCase

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

EXACT: Final = 12  # candidates among which the best set is always found
_LOOKS: Final = 120  # sets tried among more candidates, before one is built greedily
_REPAIRS: Final = 4  # attempts to build a set greedily: the result may be illegal

Chosen = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A set of victims that is sufficient and legal."""

    victims: tuple[Holder, ...]
    codes: tuple[Code, ...]
    packed: pack.Packed | None
    harm: Harm


NOBODY: Final = Found(victims=(), codes=(), packed=None, harm=Harm())


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Where nodes are scarce: the cluster, and the pods that must fit there."""

    cluster: str
    wants: Sequence[pack.Want]
    domain: str
    feet: Mapping[str, Foot]  # of the candidates, by key


class _Judged(NamedTuple):
    """Why a victim may be preempted, and whether it could come straight back."""

    code: Code
    comes_back: bool


class Search:
    """The candidates, and what they must make room for."""

    def __init__(
        self,
        planning: PlanningRound,
        case: PreemptionCase,
        candidates: Sequence[Holder],
        missing: Mapping[FlavorResource, int],
        nodes: Nodes | None,
        *,
        reach: int,
    ) -> None:
        self._planning = planning
        self._case = case
        self._reach = reach
        ranks = self._ranks(candidates)
        order = sorted(range(len(candidates)), key=ranks.__getitem__)
        self._candidates = [candidates[number] for number in order]
        self._ranked = [ranks[number] for number in order]
        self._losses = [rank.loss for rank in self._ranked]
        self._nodes = nodes
        self._ground: Ground | None = None
        if nodes is not None:
            room = planning.ledger.rooms[nodes.cluster]
            feet = [nodes.feet[candidate.key] for candidate in self._candidates]
            self._ground = Ground(room, nodes.wants, feet)
        self._missing = list(missing.values())
        self._sufficient: list[frozenset[int]] = []  # no superset needs all its members
        self._gives = [
            [candidate.usage.get(pair, 0) for pair in missing] for candidate in self._candidates
        ]
        self._add_allowances()

    def _add_allowances(self) -> None:
        """Counts allowances that are short like missing quota."""
        nodes = self._nodes
        if nodes is None:
            return
        short = short_allowances(self._planning.ledger.rooms[nodes.cluster], nodes.wants)
        self._missing.extend(item.asked - item.left for item in short)
        for gives, candidate in zip(self._gives, self._candidates, strict=True):
            given = allowance_of(candidate.workload, nodes.cluster) if short else {}
            gives.extend(given.get(item.key, 0) for item in short)

    def _ranks(self, candidates: Sequence[Holder]) -> list[Rank]:
        case, queues = self._case, frozenset(candidate.queue for candidate in candidates)
        guilts = {candidate.queue: guilt_of(case.share_of(candidate)) for candidate in candidates}
        with self._planning.ledger.trial():
            self._planning.ledger.charge(case.workload.queue, case.usage)
            return [
                Rank(
                    comes_back=case.comes_back(candidate, adds=False, besides=queues),
                    is_own=candidate.queue == case.workload.queue,
                    guilt=guilts[candidate.queue],
                    priority=candidate.workload.priority,
                    loss=candidate.loss,
                    key=candidate.key,
                )
                for candidate in candidates
            ]

    def best(self) -> Found | None:
        """The least harmful set; None if no set is sufficient and legal."""
        everybody = tuple(range(len(self._candidates)))
        if not everybody or not self._may_do(everybody) or not self._is_enough(everybody):
            return None
        if len(everybody) <= EXACT:
            return self._least(everybody)
        for allowed in self._levels():
            match = self._least(allowed)
            if match is None and len(allowed) > EXACT:
                match = self._put_together(allowed)
            if match is not None:
                return match
        return None

    def _levels(self) -> Iterator[Chosen]:
        """The candidates with the best ranks: the fewest that are enough, then ever more."""
        ranked = self._ranked
        ends = [
            at
            for at in range(1, len(ranked) + 1)
            if at == len(ranked) or ranked[at][:4] != ranked[at - 1][:4]
        ]

        def is_enough(end: int) -> bool:
            allowed = tuple(range(end))
            return self._may_do(allowed) and self._is_enough(allowed)

        for end in ends[bisect_left(ends, True, key=is_enough) :]:
            yield tuple(range(end))

    def _least(self, allowed: Chosen) -> Found | None:
        """The best set of some candidates; of many, the best of those that are tried."""
        looks = None if len(allowed) <= EXACT else _LOOKS
        best: Found | None = None
        for bound, chosen in self._by_bound(allowed):
            if looks == 0 or (best is not None and bound >= best.harm):
                break
            looks = None if looks is None else looks - 1
            if self._may_do(chosen):
                match = self._try(chosen)
                if match is not None and (best is None or match.harm < best.harm):
                    best = match
        return best

    # In order of a lower bound of the key.

    def _by_bound(self, allowed: Chosen) -> Iterator[tuple[Harm, Chosen]]:
        """Sets that may be sufficient, each with a bound: no set that follows is below it."""
        bounds = Bounds(self._ranked[: len(allowed)], self._gives, self._missing)
        heap: list[tuple[Harm, Chosen]] = []

        def push(kept: Chosen, start: int) -> None:
            """The sets with all of `kept` and at least one candidate from `start` on."""
            if start < len(allowed):
                bound = bounds.of(kept, start)
                if bound is not None and self._has_ground((*kept, *allowed[start:])):
                    heappush(heap, (bound, (*kept, start)))

        push((), 0)
        while heap:
            bound, chosen = heappop(heap)
            yield bound, chosen
            last = chosen[-1]
            push(chosen[:-1], last + 1)
            if not self._is_more_than_enough(chosen):
                push(chosen, last + 1)

    def _is_more_than_enough(self, chosen: Chosen) -> bool:
        return any(some.issubset(chosen) for some in self._sufficient)

    # Bounds.

    def _gives_enough(self, chosen: Chosen) -> bool:
        """Whether quota may be enough: the amounts released cover the amounts missing."""
        return all(
            sum(self._gives[number][place] for number in chosen) >= missing
            for place, missing in enumerate(self._missing)
        )

    def _has_ground(self, chosen: Chosen) -> bool:
        return self._ground is None or self._ground.allows(chosen)

    def _may_do(self, chosen: Chosen) -> bool:
        return self._gives_enough(chosen) and self._has_ground(chosen)

    # Trials.

    def _try(self, chosen: Chosen) -> Found | None:
        """The set, if it is sufficient and legal, and every member is needed."""
        if self._is_more_than_enough(chosen):
            return None
        verdicts = self._judge(chosen)
        if verdicts is None:
            return None
        packed = None
        if self._nodes is not None:
            packed = self._pack(chosen)
            if packed is None:
                return None
        self._sufficient.append(frozenset(chosen))
        if not verdicts or not self._needs_all(chosen):
            return None
        return Found(
            victims=tuple(self._candidates[number] for number in chosen),
            codes=tuple(verdict.code for verdict in verdicts),
            packed=packed,
            harm=self._harm(chosen, verdicts),
        )

    def _needs_all(self, chosen: Chosen) -> bool:
        fewer = (tuple(other for other in chosen if other != number) for number in chosen)
        return not any(some and self._may_do(some) and self._is_enough(some) for some in fewer)

    def _harm(self, chosen: Chosen, verdicts: Sequence[_Judged]) -> Harm:
        ranks = [self._ranked[number] for number in chosen]
        return Harm(
            come_back=sum(verdict.comes_back for verdict in verdicts),
            has_own=any(rank.is_own for rank in ranks),
            guilt=max(rank.guilt for rank in ranks),
            losses=losses_of((rank.priority, rank.loss) for rank in ranks),
        )

    def _is_enough(self, chosen: Chosen) -> bool:
        """Whether the preemptor fits when these candidates are gone, legal or not."""
        with self._planning.ledger.trial():
            self._release(chosen)
            if not self._fits():
                return False
        return self._nodes is None or self._pack(chosen) is not None

    def _judge(self, chosen: Chosen) -> list[_Judged] | None:
        """Why each may be preempted; empty if one may not, None if quota does not fit."""
        with self._planning.ledger.trial():
            self._release(chosen)
            if not self._fits():
                return None
            self._settle()
            victims = [self._candidates[number] for number in chosen]
            codes = self._case.judge(victims)
            if codes is None:
                return []
            return [
                _Judged(code, self._case.comes_back(victim))
                for victim, code in zip(victims, codes, strict=True)
            ]

    def _fits(self) -> bool:
        tree, queue = self._planning.ledger.tree, self._case.workload.queue
        if not tree.fits(queue, self._case.usage):
            return False
        return tree.borrow_level(queue, self._case.usage) <= self._reach

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
        """Brings the ledger to its final state: the preemptor charged."""
        self._planning.ledger.charge(self._case.workload.queue, self._case.usage)

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
        if self._ground is None:
            return [(number,) for number in alone]
        bundles = self._ground.bundles(allowed, self._losses)
        needs_quota = [(number,) for number in alone if self._missing]
        return [*bundles, *needs_quota, *((number,) for number in alone)]

    def _worth(self, number: int) -> float:
        """The part of the missing quota that a candidate releases, per work lost."""
        gives = zip(self._gives[number], self._missing, strict=True)
        part = sum(min(1.0, given / missing) for given, missing in gives)
        return part / (1 + self._losses[number])

    def _reduce(self, chosen: Chosen) -> Chosen:
        """The set without candidates that are not needed; the most harmful are dropped first."""
        order = sorted(chosen, reverse=True)
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
