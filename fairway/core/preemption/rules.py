"""Preemption rules: which workloads one preemptor may preempt, given what it contests.

Same queue: by the queue's rule for priority and age. Against a victim of equal priority the queue
must not borrow more than before: the borrowed quota would be reclaimed, and the younger workload
would be admitted again.

Other queues of the tree, by the preemptor's rule for reclaim: the victim's queue, and each queue
above it below the common ancestor, must borrow something that is contested. In addition:

- with fair share, the preemptor stays within the nominal quota of its queue, or passes a test of
  shares, which are compared just below the common ancestor;
- without fair share, some queue from the preemptor's up to just below the common ancestor has quota
  of its own for it, or the preemptor may preempt while it borrows.

No workload is preempted before the minimum run time, nor if its queue protects usage within nominal
quota.

The rules are applied to exactly the set of victims: each victim is judged as the last to leave,
with all others gone and the preemptor admitted. So the order of removal does not matter, and a set
that was reduced is judged again. No victim may be able to strike back: if it came again in that
state, or a smaller workload waits on its side, the rules must not let it preempt the preemptor.

Preemption terminates: a workload that was preempted preempts only workloads of lower priority,
unless it takes back what its queue or a queue above it owns. So no workload preempts its equals
twice without having been admitted by other means in between, and a fleet without new events comes
to rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from fairway.api.reasons import Code
from fairway.core.model import FlavorResource, PreemptionRules, Queue, Usage, Workload
from fairway.core.preemption.holders import Holder, Holders
from fairway.core.quota.order import SHARE_TESTS, Contest, Share
from fairway.core.quota.shares import Added, added_at, reaching_parent
from fairway.core.quota.tree import Node

if TYPE_CHECKING:
    from fairway.core.planning_round import PlanningRound

# How many waiting workloads of the other side are checked for whether they could strike back.
_LOOKS: Final = 64


class Rival:
    """Another queue of the same tree: both paths up to just below the common ancestor."""

    __slots__ = ("ours", "theirs")

    def __init__(self, ours: list[Node], theirs: list[Node]) -> None:
        self.ours = ours  # the preemptor's queue first
        self.theirs = theirs


class PreemptionCase:
    """One preemptor, and what it contests."""

    def __init__(
        self,
        planning: PlanningRound,
        holders: Holders,
        workload: Workload,
        usage: Usage,
        contested: Iterable[FlavorResource],
        *,
        contests_nodes: bool,
    ) -> None:
        tree = planning.ledger.tree
        node = tree.node(workload.queue)
        assert node is not None, "a queue without a node has no quota to contest"
        self._planning = planning
        self._holders = holders
        self._node = node
        self._rules = planning.queue(workload).preemption
        self._queues = planning.snapshot.facts.queues
        settings = planning.snapshot.facts.settings
        self._is_fair = settings.fair_sharing
        self._tests = [
            test for name, test in SHARE_TESTS.items() if name in settings.preemption_tests
        ]
        self._known = holders.rivals
        self._before = {pair: cell.usage for pair in usage if (cell := node.cell(pair)).is_limited}
        self.workload = workload
        self.usage = usage
        self.contests_nodes = contests_nodes
        self.contested = frozenset(pair for pair in contested if node.cell(pair).is_limited)
        self._queues_over: list[str] | None = None

    # Which holders may be victims in some set.

    def suspects(self, holders: Iterable[Holder]) -> list[Holder]:
        """The holders that no rule protects, whatever else is removed."""
        result = [holder for holder in holders if self._may_be(holder)]
        return self._with_a_chance(result) if result else result

    def looks_at(self, queue: str) -> bool:
        """Whether any workload of a queue may be a victim at all."""
        if queue == self._node.name:
            return self._rules.within_queue != "Never"
        rival = self._rival(queue)
        return rival is not None and all(
            any(
                (cell := node.cells.get(pair)) is not None and cell.usage > cell.subtree
                for pair in self.contested
            )
            for node in rival.theirs
        )

    def _may_be(self, holder: Holder) -> bool:
        ours, theirs = self.workload, holder.workload
        planning = self._planning
        if (
            holder.key in planning.preempted
            or holder.key in planning.changed
            or holder.key == ours.key
        ):
            return False
        queue = self._queues.get(holder.queue)
        if queue is None or self._is_too_humble(holder):
            return False
        if holder.queue == ours.queue:
            if holder.held_seconds < queue.minimum_run_within:
                return False
            return self._is_behind(theirs) and not self._is_protected(queue, holder, {})
        if holder.held_seconds < queue.minimum_run_reclaim:
            return False
        if self._rules.reclaim == "LowerPriority" and theirs.priority >= ours.priority:
            return False
        if not self._borrows(holder, adds=False):
            return False
        return not self._is_protected(queue, holder, {})

    def _is_too_humble(self, holder: Holder) -> bool:
        """Whether a workload that was preempted leaves another alone.

        It preempts only lower priorities, unless some queue from its own up to just below the
        common ancestor owns enough for it.
        """
        ours = self.workload
        if not ours.was_preempted or holder.workload.priority < ours.priority:
            return False
        rival = self._rival(holder.queue) if holder.queue != ours.queue else None
        path = [self._node] if rival is None else rival.ours
        return not _is_within(added_at(self._node, self.usage), path)

    def _is_behind(self, other: Workload) -> bool:
        """Whether another workload of the same queue may be preempted, by priority and age."""
        match self._rules.within_queue:
            case "Never":
                return False
            case "LowerPriority":
                return other.priority < self.workload.priority
            case _:
                return (-other.priority, other.queued_at) > (
                    -self.workload.priority,
                    self.workload.queued_at,
                )

    def _rival(self, queue: str) -> Rival | None:
        """Both paths to the common ancestor; None: another tree, or no rule reaches the queue."""
        return None if self._rules.reclaim == "Never" else self._meet(self._node.name, queue)

    def _meet(self, queue: str, other: str) -> Rival | None:
        """The paths of two queues up to just below their common ancestor; None: no such paths."""
        key = (queue, other)
        if key not in self._known:
            self._known[key] = self._paths(queue, other)
        result = self._known[key]
        return result if isinstance(result, Rival) else None

    def _paths(self, queue: str, other: str) -> Rival | None:
        tree = self._planning.ledger.tree
        nodes = (tree.node(queue), tree.node(other))
        if nodes[0] is None or nodes[1] is None:
            return None
        ours, theirs = list(nodes[0].path()), list(nodes[1].path())
        if ours[-1] is not theirs[-1]:
            return None
        while ours and theirs and ours[-1] is theirs[-1]:
            ours.pop()
            theirs.pop()
        return Rival(ours, theirs) if ours and theirs else None

    def _borrows(self, holder: Holder, *, adds: bool) -> bool:
        """Whether the holder's queue, and each above it on its side, borrows what is contested.

        With `adds` the usage of the holder, which was removed, is counted again.
        """
        rival = self._rival(holder.queue)
        if rival is None:
            return False
        pairs = [pair for pair in holder.usage if pair in self.contested]
        node = rival.theirs[0]
        added = [(node.cell(pair), holder.usage[pair] if adds else 0) for pair in pairs]
        return _are_all_over(added, rival.theirs)

    def _is_protected(self, queue: Queue, holder: Holder, added: Usage) -> bool:
        """Whether its queue protects a holder: all that it uses is within nominal quota."""
        if not queue.preemption.protect_within_nominal:
            return False
        node = self._planning.ledger.tree.node(queue.name)
        assert node is not None
        cells = [(node.cell(pair), added.get(pair, 0)) for pair in holder.usage]
        return all(cell.usage + more <= cell.subtree for cell, more in cells if cell.is_limited)

    def _with_a_chance(self, holders: list[Holder]) -> list[Holder]:
        """The holders that are legal victims in the best case for the preemptor."""
        rivals = [holder for holder in holders if holder.queue != self.workload.queue]
        if not rivals:
            return holders
        ledger, shares = self._planning.ledger, self._holders.shares
        lowest: dict[str, Share] = {}
        entitled: dict[str, bool] = {}
        tops = {}
        for holder in rivals:
            rival = self._rival(holder.queue)
            assert rival is not None
            tops[rival.ours[-1].name] = rival
        highest = min(tops.values(), key=lambda rival: rival.ours[-1].depth).ours[-1]
        with ledger.trial():
            for holder in holders:
                rival = self._rival(holder.queue) if holder.queue != self.workload.queue else None
                if rival is None or rival.ours[-1] is not highest:  # on our side of it
                    ledger.release(holder.queue, holder.usage)
            ledger.charge(self.workload.queue, self.usage)
            for name, rival in tops.items():
                lowest[name] = shares.share(self.workload.queue, at=name)
                entitled[name] = self._is_entitled(rival)
        result = []
        for holder in holders:
            if holder.queue != self.workload.queue:
                rival = self._rival(holder.queue)
                assert rival is not None
                name = rival.ours[-1].name
                if not entitled[name] and not self._has_chance(holder, rival, lowest[name]):
                    continue
            result.append(holder)
        return result

    def _has_chance(self, holder: Holder, rival: Rival, lowest: Share) -> bool:
        if not self._is_fair:
            return _while_borrowing(self._rules, self.workload, holder.workload)
        shares, top = self._holders.shares, rival.theirs[-1].name
        taken = {pair: -amount for pair, amount in holder.usage.items()}
        contest = Contest(
            lowest, shares.share(holder.queue, at=top), shares.share(holder.queue, taken, at=top)
        )
        return any(test(contest) for test in self._tests)

    # Whether a set is legal.

    def judge(self, victims: Sequence[Holder]) -> list[Code] | None:
        """Why each victim may be preempted; None if one of them may not.

        The ledger must be in the final state: all victims gone, the preemptor charged.
        """
        codes = []
        for victim in victims:
            code = self._code(victim)
            if code is None or self._strikes_back(victim.workload, victim.queue, victim.usage):
                return None
            codes.append(code)
        return codes

    def share_of(self, holder: Holder) -> Share | None:
        """The share of a holder's side as it stands.

        None: without fair share, and in the preemptor's own queue, no share counts.
        """
        rival = self._rival(holder.queue) if holder.queue != self.workload.queue else None
        if rival is None or not self._is_fair:
            return None
        return self._holders.shares.share(holder.queue, at=rival.theirs[-1].name)

    def comes_back(
        self, holder: Holder, *, adds: bool = True, besides: Collection[str] = ()
    ) -> bool:
        """Whether a victim could reclaim elsewhere at once what it used.

        Its queue owns all of that, and another queue, not in `besides`, borrows some of it. With
        `adds` its usage, which was removed, is counted again.
        """
        if self._queues[holder.queue].preemption.reclaim == "Never":
            return False
        node = self._planning.ledger.tree.node(holder.queue)
        added = [] if node is None else added_at(node, holder.usage)
        if not added or any(
            cell.usage + (more if adds else 0) > cell.subtree for cell, more in added
        ):
            return False
        return any(
            other != holder.queue
            and other not in besides
            and (rival := self._meet(holder.queue, other)) is not None
            and _are_all_over(
                [(rival.theirs[0].cell(pair), 0) for pair in holder.usage], rival.theirs
            )
            for other in self._borrowers()
        )

    def _borrowers(self) -> list[str]:
        """The queues of the tree that borrowed something when this was first asked."""
        if self._queues_over is None:
            tree, mark = self._planning.ledger.tree, self._planning.ledger.mark()
            known = self._holders.borrowers
            if known is not None and known[0] is mark and known[1] == self._node.name:
                self._queues_over = known[2]
            else:
                self._queues_over = [
                    name
                    for name in self._holders.queues_near(self._node.name)
                    if (node := tree.node(name)) is not None
                    and any(amount > 0 for amount in node.over.values())
                ]
                self._holders.borrowers = (mark, self._node.name, self._queues_over)
        return self._queues_over

    def _code(self, holder: Holder) -> Code | None:
        queue = self._queues[holder.queue]
        if holder.queue == self.workload.queue:
            added = {
                pair: amount - self.usage.get(pair, 0) for pair, amount in holder.usage.items()
            }
            is_safe = self._is_protected(queue, holder, added) or (
                holder.workload.priority == self.workload.priority and self._borrows_more()
            )
            return None if is_safe else Code.PREEMPTED_WITHIN_QUEUE
        if not self._borrows(holder, adds=True) or self._is_protected(queue, holder, holder.usage):
            return None
        rival = self._rival(holder.queue)
        assert rival is not None
        if self._is_entitled(rival):
            return Code.PREEMPTED_TO_RECLAIM
        if not self._is_fair:
            may = _while_borrowing(self._rules, self.workload, holder.workload)
            return Code.PREEMPTED_WHILE_BORROWING if may else None
        shares, top = self._holders.shares, rival.theirs[-1].name
        contest = Contest(
            shares.share(self.workload.queue, at=rival.ours[-1].name),
            shares.share(holder.queue, holder.usage, at=top),
            shares.share(holder.queue, at=top),
        )
        if not any(test(contest) for test in self._tests):
            return None
        if contest.target_without < contest.preemptor_with and self._is_outdone(rival):
            return None
        return Code.PREEMPTED_FOR_FAIR_SHARE

    def _is_outdone(self, rival: Rival) -> bool:
        """Whether a workload that waits on the other side could strike back at once."""
        snapshot, looks = self._planning.snapshot, _LOOKS
        below = [rival.theirs[-1]]
        for node in below:
            below.extend(node.children)
            for line in snapshot.lines.get(node.name, ())[:looks]:
                looks -= 1
                options = self._planning.assignments(line, line.forms[0]) if line.is_waiting else ()
                if options:
                    shapes = {each.name: each.shape for each in line.forms[0].pod_sets}
                    counts = {each.name: each.count for each in line.forms[0].pod_sets}
                    usage = options[0].usage(counts, shapes)
                    if self._strikes_back(line, node.name, usage):
                        return True
        return False

    def _borrows_more(self) -> bool:
        """Whether the queue borrows more now, with the preemptor charged, than before."""
        return any(
            (cell := self._node.cell(pair)).usage > max(cell.subtree, before)
            for pair, before in self._before.items()
        )

    def _is_entitled(self, rival: Rival) -> bool:
        """Whether the preemptor, which is charged already, is within the quota of its side.

        With fair share that is the quota of its own queue; above it, shares say the same. Without
        fair share it is the quota of any queue up to just below the common ancestor.
        """
        nodes = rival.ours[:1] if self._is_fair else rival.ours
        return any(
            all((cell := node.cell(pair)).usage <= cell.subtree for pair in self.contested)
            for node in nodes
        )

    def _strikes_back(self, other: Workload, queue: str, usage: Usage) -> bool:
        """Whether another workload, if it came now, could preempt the preemptor."""
        ours, rules = self.workload, self._queues[queue].preemption
        if (
            queue == ours.queue
            or not ours.preemptible
            or rules.reclaim == "Never"
            or (rules.reclaim == "LowerPriority" and ours.priority >= other.priority)
        ):
            return False
        rival = self._rival(queue)
        if rival is None:
            return False
        added = self._would_contest(queue, usage, rival)
        ours_now = [(rival.ours[0].cell(pair), 0) for pair in added if pair in self.usage]
        if not _are_all_over(ours_now, rival.ours):
            return False
        cells: Added = [(rival.theirs[0].cell(pair), more) for pair, more in added.items()]
        if _is_within(cells, rival.theirs[:1] if self._is_fair else rival.theirs):
            return True
        if not self._is_fair:
            return _while_borrowing(rules, other, ours)
        shares, top = self._holders.shares, rival.ours[-1].name
        taken = {pair: -amount for pair, amount in self.usage.items()}
        contest = Contest(
            shares.share(queue, usage, at=rival.theirs[-1].name),
            shares.share(ours.queue, at=top),
            shares.share(ours.queue, taken, at=top),
        )
        return any(test(contest) for test in self._tests)

    def _would_contest(self, queue: str, usage: Usage, rival: Rival) -> dict[FlavorResource, int]:
        """What such a workload would contest: where nodes are scarce, all that it uses."""
        tree, node = self._planning.ledger.tree, rival.theirs[0]
        return {
            pair: amount
            for pair, amount in usage.items()
            if node.cell(pair).is_limited
            and (self.contests_nodes or amount > tree.available(queue, pair))
        }


def _while_borrowing(rules: PreemptionRules, ours: Workload, theirs: Workload) -> bool:
    """Whether a workload that must borrow may preempt another, by priority."""
    most = rules.while_borrowing_priority_max
    return (
        rules.while_borrowing == "LowerPriority"
        and theirs.priority < ours.priority
        and (most is None or theirs.priority <= most)
    )


def _are_all_over(added: Added, path: Sequence[Node]) -> bool:
    """Whether each queue of a path exceeds its own quota of something, with what is added."""
    for position, _ in enumerate(path):
        if not any(cell.usage + more > cell.subtree for cell, more in added):
            return False
        if position + 1 < len(path):
            added = reaching_parent(added)
    return True


def _is_within(added: Added, path: Sequence[Node]) -> bool:
    """Whether some queue of a path has enough quota of its own for all that is added."""
    for position, _ in enumerate(path):
        if all(cell.usage + more <= cell.subtree for cell, more in added):
            return True
        if position + 1 < len(path):
            added = reaching_parent(added)
    return False
