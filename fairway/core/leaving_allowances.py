"""Allowances of namespaces that go over from what leaves to its heirs (see `handover`).

A pod of a namespace is refused while those that leave still fill its quota. So a workload that
takes what they give back waits until they are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairway.core.admission import allowance_of, left_of, taken_in
from fairway.core.allowances import AllowanceKey
from fairway.core.model import Placed
from fairway.core.nodes import Room

if TYPE_CHECKING:
    from fairway.core.snapshot import Snapshot

Taken = tuple[str, Mapping[AllowanceKey, int]]  # by a workload, in one cluster


def will_go(snapshot: Snapshot, part: Placed) -> bool:
    """Whether a released part stops in any case, in a cluster that will say when it has."""
    cluster = snapshot.facts.clusters.get(part.cluster)
    return not part.stays and (cluster is None or cluster.answers)


def leavers(snapshot: Snapshot, keys: Iterable[str], current: str, cluster: str) -> Iterator[Taken]:
    """What is being released takes of the allowances of a cluster; not that of `current`."""
    for key in keys:
        releasing = snapshot.facts.workloads[key].releasing if key != current else ()
        taken = taken_in(cluster, (part for part in releasing if will_go(snapshot, part)))
        if taken:
            yield key, taken


def holders(snapshot: Snapshot, keys: Iterable[str], cluster: str) -> list[Taken]:
    """What victims of a plan took of the allowances of a cluster."""
    taken = ((key, allowance_of(snapshot.facts.workloads[key], cluster)) for key in keys)
    return [(key, amounts) for key, amounts in taken if amounts]


def whose_allowance(
    room: Room,
    asked: Mapping[AllowanceKey, int],
    gone: Sequence[Taken],
    leaving: Sequence[Taken],
) -> Iterator[str]:
    """All that leave with a part of an allowance that is too small beside them.

    What is `gone` is no longer charged; what is `leaving` still is.
    """
    for key, amount in asked.items():
        left = left_of(room, key)
        back = sum(taken.get(key, 0) for _, taken in gone)
        if left is not None and amount > left - back:
            yield from (name for name, taken in (*gone, *leaving) if key in taken)
