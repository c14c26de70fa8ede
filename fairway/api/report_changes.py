"""Reports as differences: what has changed since a whole one, and the whole one made of both.

Both sides see a chunk in one order (`ordered`): nodes by name, columns by key, works by name, and
nothing that says nothing. Then

    applied(old, difference(old, new)) == new        for ordered reports of one chunk

so an agent writes a large chunk once and small differences after it, and whoever reads has always
what the agent saw. A difference is cumulative: it tells all since the whole one it was made from,
so the latest alone counts and none is ever missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

from msgspec.structs import replace

from fairway.api.amounts import Quantity
from fairway.api.meta import Taint
from fairway.api.report import (
    AmountColumn,
    ClusterReport,
    ClusterReportSpec,
    DeviceColumn,
    LabelColumn,
    NodeColumns,
    PodCounts,
    PoolReport,
    TaintSet,
    WorkPods,
)

# Positions of nodes as they are, by positions as they were.
_Moves = Mapping[int, int]
# A node: which of several tables it is in, and at which position.
_Pick = tuple[int, int]


def ordered(report: ClusterReport) -> ClusterReport:
    """The same report in the order in which reports are compared."""
    spec = report.spec
    names = spec.nodes.names
    order = sorted(range(len(names)), key=lambda at: names[at])
    nodes = spec.nodes
    if not _is_ordered(nodes):
        nodes = _selected([spec.nodes], [(0, at) for at in order])
    moves = {before: after for after, before in enumerate(order)}
    return replace(
        report,
        spec=replace(
            spec,
            nodes=nodes,
            removed_nodes=tuple(sorted(spec.removed_nodes)),
            works=_ordered_works(spec.works, moves),
            states=tuple(sorted(spec.states, key=lambda one: one.work)),
            removed_works=tuple(sorted(spec.removed_works)),
            pools=tuple(sorted(spec.pools, key=lambda one: one.name)),
        ),
    )


def difference(old: ClusterReport, new: ClusterReport) -> ClusterReport | None:
    """What changed between two whole reports of a chunk; None where only a whole one can tell.

    That is so when it is another chunk or another start of the agent, when the unit of a resource
    changed, and when an elastic pool is gone. It has the new report's metadata.
    """
    old, new = ordered(old), ordered(new)
    before, after = old.spec, new.spec
    if _origin(before) != _origin(after) or _changed_units(before.nodes, after.nodes):
        return None
    if {one.name for one in before.pools} - {one.name for one in after.pools}:
        return None
    kept = _works_by_name(_moved_works(before.works, before.nodes, after.nodes))
    works = _works_by_name(after.works)
    states = {one.work: one for one in before.states}
    told = {one.work: one for one in after.states}
    gone = sorted((set(kept) - set(works)) | (set(states) - set(told)))
    return replace(
        new,
        spec=replace(
            after,
            since_sequence=before.sequence,
            nodes=_changed_nodes(before.nodes, after.nodes),
            removed_nodes=tuple(sorted(set(before.nodes.names) - set(after.nodes.names))),
            # What is removed goes with all that was told of it, so what stays is told again.
            works=tuple(
                one
                for name, entries in works.items()
                if entries != kept.get(name) or name in gone
                for one in entries
            ),
            states=tuple(
                one for name, one in told.items() if one != states.get(name) or name in gone
            ),
            removed_works=tuple(gone),
            pools=_changed_pools(before.pools, after.pools),
        ),
    )


def fits(whole: ClusterReport, changes: ClusterReport) -> bool:
    """Whether a difference was made from just this whole report."""
    return (
        whole.spec.since_sequence is None
        and changes.spec.since_sequence == whole.spec.sequence
        and _origin(whole.spec) == _origin(changes.spec)
    )


def applied(whole: ClusterReport, changes: ClusterReport | None) -> ClusterReport:
    """The whole report after a difference, in order; one that does not fit changes nothing."""
    whole = ordered(whole)
    if changes is None or not fits(whole, changes):
        return whole
    before, after = whole.spec, changes.spec
    nodes = _applied_nodes(before.nodes, after)
    listed = {one.work for one in after.works} | set(after.removed_works)
    kept = (
        one for one in _moved_works(before.works, before.nodes, nodes) if one.work not in listed
    )
    same = {position: position for position in range(len(nodes.names))}
    states = {one.work: one for one in before.states if one.work not in after.removed_works}
    states.update({one.work: one for one in after.states})
    pools = {one.name: one for one in before.pools}
    pools.update({one.name: one for one in after.pools})
    return replace(
        whole,
        spec=replace(
            before,
            sequence=after.sequence,
            seen_at=after.seen_at,
            nodes=nodes,
            works=_ordered_works((*kept, *after.works), same),
            states=tuple(states[name] for name in sorted(states)),
            pools=tuple(pools[name] for name in sorted(pools)),
        ),
    )


def _origin(spec: ClusterReportSpec) -> tuple[str, int, int, int]:
    return (spec.cluster, spec.agent_epoch, spec.chunk, spec.chunks)


# Works.


def _works_by_name(works: Iterable[WorkPods]) -> dict[str, list[WorkPods]]:
    found: dict[str, list[WorkPods]] = {}
    for one in works:
        found.setdefault(one.work, []).append(one)
    return found


def _ordered_works(works: Iterable[WorkPods], moves: _Moves) -> tuple[WorkPods, ...]:
    """Works by name, with the positions that their nodes have now; nodes that left are left out."""
    moved = (
        replace(one, bound=_moved(one.bound, moves), terminating=_moved(one.terminating, moves))
        for one in works
    )
    telling = (one for one in moved if one.bound or one.terminating or one.pending)
    return tuple(sorted(telling, key=lambda one: (one.work, one.pod_set, one.attempt)))


def _moved_works(
    works: Sequence[WorkPods], before: NodeColumns, after: NodeColumns
) -> tuple[WorkPods, ...]:
    if before.names == after.names:
        return tuple(works)
    positions = {name: position for position, name in enumerate(after.names)}
    moves = {
        position: positions[name] for position, name in enumerate(before.names) if name in positions
    }
    return _ordered_works(works, moves)


def _moved(pods: PodCounts | None, moves: _Moves) -> PodCounts | None:
    if pods is None:
        return None
    counts: dict[int, int] = {}
    for position, count in zip(pods.nodes, pods.counts, strict=False):
        if count and position in moves:
            counts[moves[position]] = counts.get(moves[position], 0) + count
    if not counts:
        return None
    nodes = tuple(sorted(counts))
    return PodCounts(nodes=nodes, counts=tuple(counts[position] for position in nodes))


def _changed_pools(
    before: Sequence[PoolReport], after: Sequence[PoolReport]
) -> tuple[PoolReport, ...]:
    known = {one.name: one for one in before}
    return tuple(one for one in after if known.get(one.name) != one)


# Nodes: picked from one table or several, column by column.


def _applied_nodes(before: NodeColumns, changes: ClusterReportSpec) -> NodeColumns:
    if not changes.nodes.names and not changes.removed_nodes:
        return before
    picks = {name: (0, at) for at, name in enumerate(before.names)}
    for name in changes.removed_nodes:
        picks.pop(name, None)
    picks.update({name: (1, at) for at, name in enumerate(changes.nodes.names)})
    return _selected([before, changes.nodes], [picks[name] for name in sorted(picks)])


def _changed_nodes(before: NodeColumns, after: NodeColumns) -> NodeColumns:
    """The nodes that are new or not as they were."""
    if before == after:
        return NodeColumns()
    known, now = _rows(before, after), _rows(after, before)
    changed = [at for at, name in enumerate(after.names) if known.get(name) != now[name]]
    return _selected([after], [(0, at) for at in changed])


def _rows(nodes: NodeColumns, other: NodeColumns) -> dict[str, tuple[Any, ...]]:
    """Each node as one value, with an entry for every column that either table has."""
    picks = [(0, at) for at in range(len(nodes.names))]
    both = [nodes, other]
    columns: list[Iterable[Any]] = [_readiness(both, picks), _taints(both, picks)]
    columns += [one.values for one in _labels(both, picks, is_complete=True)]
    for amounts in _amounts(both, picks, is_complete=True):
        columns += [amounts.allocatable, amounts.others]
    columns += [one.free for one in _devices(both, picks, is_complete=True)]
    return dict(zip(nodes.names, zip(*columns, strict=True), strict=True))


def _changed_units(before: NodeColumns, after: NodeColumns) -> bool:
    for old, new in ((before.amounts, after.amounts), (before.devices, after.devices)):
        units = {one.resource: one.unit for one in old}
        if any(units.get(one.resource, one.unit) != one.unit for one in new):
            return True
    return False


def _selected(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> NodeColumns:
    """The picked nodes as one table, without columns that say nothing."""
    ready = _readiness(tables, picks)
    taints = _taints(tables, picks)
    sets = sorted(set(taints), key=repr)
    position = {one: at for at, one in enumerate(sets)}
    return NodeColumns(
        names=tuple(tables[table].names[at] for table, at in picks),
        unready=tuple(at for at, is_ready in enumerate(ready) if not is_ready),
        labels=_labels(tables, picks),
        taint_sets=tuple(TaintSet(taints=one) for one in sets) if any(sets) else (),
        taint_set=tuple(position[one] for one in taints) if any(sets) else (),
        amounts=_amounts(tables, picks),
        devices=_devices(tables, picks),
    )


def _is_ordered(nodes: NodeColumns) -> bool:
    """Whether `_selected` would change nothing; most reports come so, and this is quick to see."""
    keys = [one.key for one in nodes.labels]
    resources = [one.resource for one in nodes.amounts]
    shared = [one.resource for one in nodes.devices]
    sets = [one.taints for one in nodes.taint_sets]
    return (
        all(list(one) == sorted(one) for one in (nodes.names, nodes.unready, keys, resources))
        and shared == sorted(shared)
        and sets == sorted(sets, key=repr)
        and set(nodes.taint_set) == set(range(len(sets)))
        and (any(sets) or not sets)
        and all(any(one.values) for one in nodes.labels)
        and all(any(one.free) for one in nodes.devices)
        and all(
            any(one.others) or (not one.others and any(one.allocatable)) for one in nodes.amounts
        )
    )


def _readiness(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> list[bool]:
    unready = [set(one.unready) for one in tables]
    return [at not in unready[table] for table, at in picks]


def _taints(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> list[tuple[Taint, ...]]:
    sets = [
        [one.taint_sets[at].taints for at in one.taint_set] or [()] * len(one.names)
        for one in tables
    ]
    return [sets[table][at] for table, at in picks]


def _labels(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[LabelColumn, ...]:
    found = []
    for key in sorted({one.key for table in tables for one in table.labels}):
        columns = [
            {one.key: one.values for one in table.labels}.get(key) or ("",) * len(table.names)
            for table in tables
        ]
        values = tuple(columns[table][at] for table, at in picks)
        if is_complete or any(values):
            found.append(LabelColumn(key=key, values=values))
    return tuple(found)


def _amounts(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[AmountColumn, ...]:
    found = []
    for resource in sorted({one.resource for table in tables for one in table.amounts}):
        columns = [{one.resource: one for one in table.amounts}.get(resource) for table in tables]
        unit, factors = _unit([one.unit if one else None for one in columns])
        nothing = [(0,) * len(table.names) for table in tables]
        has = [one.allocatable if one else none for one, none in zip(columns, nothing, strict=True)]
        used = [
            (one.others or none) if one else none
            for one, none in zip(columns, nothing, strict=True)
        ]
        allocatable = tuple(has[table][at] * factors[table] for table, at in picks)
        others = tuple(used[table][at] * factors[table] for table, at in picks)
        if is_complete or any(allocatable) or any(others):
            others = others if is_complete or any(others) else ()
            found.append(
                AmountColumn(resource=resource, unit=unit, allocatable=allocatable, others=others)
            )
    return tuple(found)


def _devices(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[DeviceColumn, ...]:
    found = []
    for resource in sorted({one.resource for table in tables for one in table.devices}):
        columns = [{one.resource: one for one in table.devices}.get(resource) for table in tables]
        unit, factors = _unit([one.unit if one else None for one in columns])
        free = tuple(
            tuple(units * factors[table] for units in column.free[at])
            if (column := columns[table])
            else ()
            for table, at in picks
        )
        if is_complete or any(free):
            found.append(DeviceColumn(resource=resource, unit=unit, free=free))
    return tuple(found)


def _unit(units: Sequence[Quantity | None]) -> tuple[Quantity, list[int]]:
    """A unit that several columns can be told in, and how many of it each one's unit is."""
    known = [one for one in units if one is not None]
    nanos = gcd(*(one.nanos for one in known)) or 1
    return (
        Quantity(nanos, known[0].family),
        [one.nanos // nanos if one is not None else 0 for one in units],
    )
