"""What is wrong with a quota tree: parents that do not exist, and cycles."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairway.core.model import Queue


def problems_of(by_name: Mapping[str, Queue], reached: Collection[str]) -> tuple[str, ...]:
    """What is wrong with a tree of which only some queues can be reached from a root, by name."""
    problems: list[str] = []
    named: set[str] = set()
    for name, queue in by_name.items():
        if queue.parent and queue.parent not in by_name:
            problems.append(f"queue {name}: its parent {queue.parent} does not exist")
        if name in reached or name in named:
            continue
        path = [name]
        while (above := by_name[path[-1]].parent) not in path:
            path.append(above)
        cycle = sorted(path[path.index(above) :])
        if not named.issuperset(cycle):
            problems.append(f"queues {', '.join(cycle)}: each is an ancestor of itself")
        named.update(cycle)
        if name not in cycle:
            problems.append(f"queue {name}: it is below a cycle of queues")
    return tuple(problems)
