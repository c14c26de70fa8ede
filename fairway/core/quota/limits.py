"""Limits beside quota: how many claims a queue may have, and what one user may hold in it.

A limit covers a queue and all queues below it, so a workload is subject to the limits of its queue
and of every ancestor. Among the user limits of a queue, the first that names the user applies, else
the first that names no users. Each user is limited separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from fairway.api.submission import limit_for
from fairway.core.model import Queue, Usage, UserLimit, Workload
from fairway.core.quota.tree import Tree


def limit_of(queue: Queue, user: str) -> UserLimit | None:
    """The user limit of a queue that applies to a user; None where there is none."""
    return limit_for(queue.user_limits, user, attrgetter("users"))


class Claims:
    """The number of claims, and the amounts held, per queue and user at one moment."""

    def __init__(self, tree: Tree, queues: Mapping[str, Queue]) -> None:
        self._tree = tree
        self._queues = queues
        self._of_queue: dict[str, int] = {}
        self._of_user: dict[tuple[str, str], int] = {}
        self._amounts: dict[tuple[str, str, str], int] = {}
        self._limiting: dict[str, tuple[str, ...]] = {}  # queue -> queues on its path with limits

    def copy(self) -> Claims:
        twin = Claims(self._tree, self._queues)
        twin._of_queue = dict(self._of_queue)
        twin._of_user = dict(self._of_user)
        twin._amounts = dict(self._amounts)
        twin._limiting = self._limiting  # the same limits: shared
        return twin

    def count(self, queue: str, user: str, change: int) -> None:
        """Adds claims to the queues of the path that have limits; the others are not counted."""
        for name in self.limiting_queues(queue):
            self._of_queue[name] = self._of_queue.get(name, 0) + change
            count = self._of_user[name, user] = self._of_user.get((name, user), 0) + change
            if not count:
                del self._of_user[name, user]  # users come and go

    def add(self, queue: str, user: str, usage: Usage, sign: int = 1) -> None:
        """Adds amounts that a user holds to the queues of the path that have user limits."""
        for name in self.limiting_queues(queue):
            if not self._queues[name].user_limits:
                continue
            for (_, resource), amount in usage.items():
                key = (name, user, resource)
                total = self._amounts[key] = self._amounts.get(key, 0) + sign * amount
                if not total:
                    del self._amounts[key]

    def full_queue(self, workload: Workload) -> tuple[str, int] | None:
        """The nearest queue of the path at its limit of claims, with that limit; None: no queue."""
        for name in self.limiting_queues(workload.queue):
            most = self._queues[name].claimed_max
            if most is not None and self._of_queue.get(name, 0) >= most:
                return name, most
        return None

    def full_for_user(self, workload: Workload) -> str:
        """The nearest queue in which the user is at the limit of claims; empty: no queue."""
        for name in self.limiting_queues(workload.queue):
            limit = limit_of(self._queues[name], workload.user)
            most = None if limit is None else limit.claimed_max
            if most is not None and self._of_user.get((name, workload.user), 0) >= most:
                return name
        return ""

    def left_for_user(self, workload: Workload) -> dict[str, tuple[int, str]]:
        """What the user may still use of each limited resource, and the queue that limits it."""
        left: dict[str, tuple[int, str]] = {}
        for name in self.limiting_queues(workload.queue):
            limit = limit_of(self._queues[name], workload.user)
            for resource, most in limit.amounts if limit is not None else ():
                more = most - self._amounts.get((name, workload.user, resource), 0)
                if resource not in left or more < left[resource][0]:
                    left[resource] = (more, name)
        return left

    def limiting_queues(self, queue: str) -> tuple[str, ...]:
        """The queues on the path to the root that limit claims or users, nearest first."""
        known = self._limiting.get(queue)
        if known is None:
            known = self._limiting[queue] = tuple(
                name for name in self._line(queue) if _has_limits(self._queues[name])
            )
        return known

    def _line(self, queue: str) -> tuple[str, ...]:
        return (queue, *self._tree.ancestors(queue)) if queue in self._queues else ()


def _has_limits(queue: Queue) -> bool:
    return queue.claimed_max is not None or queue.waiting_max is not None or bool(queue.user_limits)


@dataclass(frozen=True, slots=True)
class Full:
    """A queue that has as many pending workloads as it may: of all users, or of one."""

    queue: str
    most: int
    is_for_user: bool = False


def limits_waiting(queue: Queue) -> bool:
    """Whether a queue limits how many workloads are pending in it."""
    return queue.waiting_max is not None or any(
        limit.waiting_max is not None for limit in queue.user_limits
    )


def without_place(
    lines: Mapping[str, Sequence[Workload]], tree: Tree, queues: Mapping[str, Queue]
) -> dict[str, Full]:
    """Pending workloads for which their queue, or an ancestor, has no place: the latest ones.

    A workload without a place in its queue takes none in an ancestor.
    """
    limited = [name for name, queue in queues.items() if limits_waiting(queue)]
    result: dict[str, Full] = {}
    for name in sorted(limited, key=lambda name: (-len(tree.ancestors(name)), name)):
        below = (
            workload
            for queue, line in lines.items()
            if queue in queues and name in (queue, *tree.ancestors(queue))
            for workload in line
            if workload.is_waiting and workload.key not in result
        )
        result.update(_latest(queues[name], below))
    return result


def _latest(queue: Queue, pending: Iterable[Workload]) -> Iterator[tuple[str, Full]]:
    """Those of the pending workloads for which a queue has no place."""
    count, of_user = 0, Counter[str]()
    for workload in sorted(pending, key=lambda workload: (workload.queued_at, workload.key)):
        limit = limit_of(queue, workload.user)
        most = limit.waiting_max if limit is not None else None
        if queue.waiting_max is not None and count >= queue.waiting_max:
            yield workload.key, Full(queue.name, queue.waiting_max)
        elif most is not None and of_user[workload.user] >= most:
            yield workload.key, Full(queue.name, most, is_for_user=True)
        else:
            count += 1
            of_user[workload.user] += 1


def total_of(usage: Usage) -> dict[str, int]:
    """Amounts per resource, summed over flavors."""
    total: dict[str, int] = {}
    for (_, resource), amount in usage.items():
        total[resource] = total.get(resource, 0) + amount
    return total
