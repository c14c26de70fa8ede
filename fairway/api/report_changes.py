"""Reports as differences: the changes since a whole report, and the report that results.

Both sides see a chunk in one order (`in_order`): nodes by name, columns by key, works by name,
without empty entries. Then

    apply_changes(old, difference(old, new)) == new        for ordered reports of one chunk

so an agent writes a large chunk once and small differences after it, and a reader always has what
the agent saw. A difference is cumulative: it has all changes since its whole report, so only the
latest counts and none is ever missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import gcd
from typing import Any, Protocol

from msgspec.structs import replace

from fairway.api.amounts import Quantity
from fairway.api.meta import Taint
from fairway.api.namespaces import NamespaceRules
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

# New positions of nodes, by old position.
_Moves = Mapping[int, int]
# A node: the index of its table, and its position there.
_Pick = tuple[int, int]


def in_order(report: ClusterReport) -> ClusterReport:
    """The same report in the order in which reports are compared."""
    spec = report.spec
    names = spec.nodes.names
    order = sorted(range(len(names)), key=lambda at: names[at])
    nodes = spec.nodes
    if not _is_ordered(nodes):
        nodes = _select([spec.nodes], [(0, at) for at in order])
    moves = {before: after for after, before in enumerate(order)}
    return replace(
        report,
        spec=replace(
            spec,
            nodes=nodes,
            removed_nodes=tuple(sorted(spec.removed_nodes)),
            works=_ordered_works(spec.works, moves),
            states=tuple(sorted(spec.states, key=lambda state: state.work)),
            removed_works=tuple(sorted(spec.removed_works)),
            pools=tuple(sorted(spec.pools, key=lambda pool: pool.name)),
            namespaces=tuple(sorted(spec.namespaces, key=lambda rules: rules.name)),
        ),
    )


def difference(old: ClusterReport, new: ClusterReport) -> ClusterReport | None:
    """What changed between two whole reports of a chunk; None if a whole report is needed.

    That is the case for another chunk or another start of the agent, when the unit of a resource
    changed, and when an elastic pool or the rules of a namespace are gone. It has the new report's
    metadata.
    """
    old, new = in_order(old), in_order(new)
    before, after = old.spec, new.spec
    if _origin(before) != _origin(after) or _changed_units(before.nodes, after.nodes):
        return None
    if _names(before.pools) - _names(after.pools):
        return None
    if _names(before.namespaces) - _names(after.namespaces):
        return None
    kept = _works_by_name(_moved_works(before.works, before.nodes, after.nodes))
    works = _works_by_name(after.works)
    states = {state.work: state for state in before.states}
    state_by_work = {state.work: state for state in after.states}
    gone = sorted((set(kept) - set(works)) | (set(states) - set(state_by_work)))
    return replace(
        new,
        spec=replace(
            after,
            since_sequence=before.sequence,
            nodes=_changed_nodes(before.nodes, after.nodes),
            removed_nodes=tuple(sorted(set(before.nodes.names) - set(after.nodes.names))),
            # Removing a work removes all its entries, so those that remain are listed again.
            works=tuple(
                entry
                for name, entries in works.items()
                if entries != kept.get(name) or name in gone
                for entry in entries
            ),
            states=tuple(
                state
                for name, state in state_by_work.items()
                if state != states.get(name) or name in gone
            ),
            removed_works=tuple(gone),
            pools=tuple(pool for pool in after.pools if pool not in before.pools),
            namespaces=changed_rules(before.namespaces, after.namespaces),
        ),
    )


class Numbered(Protocol):
    """What tells reports of one chunk apart."""

    @property
    def agent_epoch(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def since_sequence(self) -> int | None: ...
    @property
    def seen_at(self) -> datetime: ...


def continues(whole: Numbered, changes: Numbered) -> bool:
    """Whether a difference was made from exactly this whole report of its chunk.

    An agent that lost its disk counts epochs and sequences from the start again. A difference of
    its earlier life, which may have the same numbers, is older than the whole report.
    """
    return (
        whole.since_sequence is None
        and changes.since_sequence == whole.sequence
        and changes.agent_epoch == whole.agent_epoch
        and changes.seen_at >= whole.seen_at
    )


def fits(whole: ClusterReport, changes: ClusterReport) -> bool:
    """Whether a difference was made from exactly this whole report."""
    is_same = _origin(whole.spec) == _origin(changes.spec)
    return is_same and continues(whole.spec, changes.spec)


def apply_changes(whole: ClusterReport, changes: ClusterReport | None) -> ClusterReport:
    """The whole report after a difference, in order; a difference that does not fit is ignored."""
    whole = in_order(whole)
    if changes is None or not fits(whole, changes):
        return whole
    before, after = whole.spec, changes.spec
    nodes = _applied_nodes(before.nodes, after)
    listed = {work.work for work in after.works} | set(after.removed_works)
    kept = (
        work for work in _moved_works(before.works, before.nodes, nodes) if work.work not in listed
    )
    same = {position: position for position in range(len(nodes.names))}
    states = {state.work: state for state in before.states if state.work not in after.removed_works}
    states.update({state.work: state for state in after.states})
    pools = {pool.name: pool for pool in before.pools}
    pools.update({pool.name: pool for pool in after.pools})
    rules = {item.name: item for item in (*before.namespaces, *after.namespaces)}
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
            namespaces=tuple(rules[name] for name in sorted(rules)),
        ),
    )


def _origin(spec: ClusterReportSpec) -> tuple[str, int, int, int]:
    return (spec.cluster, spec.agent_epoch, spec.chunk, spec.chunks)


# Works.


def _works_by_name(works: Iterable[WorkPods]) -> dict[str, list[WorkPods]]:
    result: dict[str, list[WorkPods]] = {}
    for work in works:
        result.setdefault(work.work, []).append(work)
    return result


def _ordered_works(works: Iterable[WorkPods], moves: _Moves) -> tuple[WorkPods, ...]:
    """Works by name, with the new positions of their nodes; nodes that are gone are omitted."""
    moved = (
        replace(work, bound=_move(work.bound, moves), terminating=_move(work.terminating, moves))
        for work in works
    )
    telling = (pods for pods in moved if pods.bound or pods.terminating or pods.pending)
    return tuple(sorted(telling, key=lambda pods: (pods.work, pods.pod_set, pods.attempt)))


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


def _move(pods: PodCounts | None, moves: _Moves) -> PodCounts | None:
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


def _names(items: Iterable[PoolReport | NamespaceRules]) -> set[str]:
    return {item.name for item in items}


def changed_rules(
    before: Sequence[NamespaceRules], after: Sequence[NamespaceRules]
) -> tuple[NamespaceRules, ...]:
    """The rules of namespaces that are new or changed."""
    known = {rules.name: rules for rules in before}
    return tuple(rules for rules in after if known.get(rules.name) != rules)


# Nodes: picked from one table or several, column by column.


def _applied_nodes(before: NodeColumns, changes: ClusterReportSpec) -> NodeColumns:
    if not changes.nodes.names and not changes.removed_nodes:
        return before
    picks = {name: (0, at) for at, name in enumerate(before.names)}
    for name in changes.removed_nodes:
        picks.pop(name, None)
    picks.update({name: (1, at) for at, name in enumerate(changes.nodes.names)})
    return _select([before, changes.nodes], [picks[name] for name in sorted(picks)])


def _changed_nodes(before: NodeColumns, after: NodeColumns) -> NodeColumns:
    """The nodes that are new or changed."""
    if before == after:
        return NodeColumns()
    known, now = _rows(before, after), _rows(after, before)
    changed = [at for at, name in enumerate(after.names) if known.get(name) != now[name]]
    return _select([after], [(0, at) for at in changed])


def _rows(nodes: NodeColumns, other: NodeColumns) -> dict[str, tuple[Any, ...]]:
    """Each node as one value, with an entry for every column that either table has."""
    picks = [(0, at) for at in range(len(nodes.names))]
    both = [nodes, other]
    columns: list[Iterable[Any]] = [_readiness(both, picks), _taints(both, picks)]
    columns += [label.values for label in _labels(both, picks, is_complete=True)]
    for amounts in _amounts(both, picks, is_complete=True):
        columns += [amounts.allocatable, amounts.others]
    columns += [device.free for device in _devices(both, picks, is_complete=True)]
    return dict(zip(nodes.names, zip(*columns, strict=True), strict=True))


def _changed_units(before: NodeColumns, after: NodeColumns) -> bool:
    for old, new in ((before.amounts, after.amounts), (before.devices, after.devices)):
        units = {item.resource: item.unit for item in old}
        if any(units.get(item.resource, item.unit) != item.unit for item in new):
            return True
    return False


def _select(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> NodeColumns:
    """The picked nodes as one table, without empty columns."""
    ready = _readiness(tables, picks)
    taints = _taints(tables, picks)
    sets = sorted(set(taints), key=repr)
    position = {set_: at for at, set_ in enumerate(sets)}
    return NodeColumns(
        names=tuple(tables[table].names[at] for table, at in picks),
        unready=tuple(at for at, is_ready in enumerate(ready) if not is_ready),
        labels=_labels(tables, picks),
        taint_sets=tuple(TaintSet(taints=set_) for set_ in sets) if any(sets) else (),
        taint_set=tuple(position[taint] for taint in taints) if any(sets) else (),
        amounts=_amounts(tables, picks),
        devices=_devices(tables, picks),
    )


def _is_ordered(nodes: NodeColumns) -> bool:
    """Whether `_select` would change nothing; true for most reports, and quick to check."""
    keys = [label.key for label in nodes.labels]
    resources = [amount.resource for amount in nodes.amounts]
    shared = [device.resource for device in nodes.devices]
    sets = [taint_set.taints for taint_set in nodes.taint_sets]
    return (
        all(list(pair) == sorted(pair) for pair in (nodes.names, nodes.unready, keys, resources))
        and shared == sorted(shared)
        and sets == sorted(sets, key=repr)
        and set(nodes.taint_set) == set(range(len(sets)))
        and (any(sets) or not sets)
        and all(any(label.values) for label in nodes.labels)
        and all(any(device.free) for device in nodes.devices)
        and all(
            any(amount.others) or (not amount.others and any(amount.allocatable))
            for amount in nodes.amounts
        )
    )


def _readiness(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> list[bool]:
    unready = [set(table.unready) for table in tables]
    return [at not in unready[table] for table, at in picks]


def _taints(tables: Sequence[NodeColumns], picks: Sequence[_Pick]) -> list[tuple[Taint, ...]]:
    sets = [
        [table.taint_sets[at].taints for at in table.taint_set] or [()] * len(table.names)
        for table in tables
    ]
    return [sets[table][at] for table, at in picks]


def _labels(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[LabelColumn, ...]:
    labels = []
    for key in sorted({label.key for table in tables for label in table.labels}):
        columns = [
            {label.key: label.values for label in table.labels}.get(key) or ("",) * len(table.names)
            for table in tables
        ]
        values = tuple(columns[table][at] for table, at in picks)
        if is_complete or any(values):
            labels.append(LabelColumn(key=key, values=values))
    return tuple(labels)


def _amounts(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[AmountColumn, ...]:
    amounts = []
    for resource in sorted({amount.resource for table in tables for amount in table.amounts}):
        columns = [
            {amount.resource: amount for amount in table.amounts}.get(resource) for table in tables
        ]
        unit, factors = _unit([column.unit if column else None for column in columns])
        nothing = [(0,) * len(table.names) for table in tables]
        has = [
            column.allocatable if column else none
            for column, none in zip(columns, nothing, strict=True)
        ]
        used = [
            (column.others or none) if column else none
            for column, none in zip(columns, nothing, strict=True)
        ]
        allocatable = tuple(has[table][at] * factors[table] for table, at in picks)
        others = tuple(used[table][at] * factors[table] for table, at in picks)
        if is_complete or any(allocatable) or any(others):
            others = others if is_complete or any(others) else ()
            amounts.append(
                AmountColumn(resource=resource, unit=unit, allocatable=allocatable, others=others)
            )
    return tuple(amounts)


def _devices(
    tables: Sequence[NodeColumns], picks: Sequence[_Pick], *, is_complete: bool = False
) -> tuple[DeviceColumn, ...]:
    devices = []
    for resource in sorted({device.resource for table in tables for device in table.devices}):
        columns = [
            {device.resource: device for device in table.devices}.get(resource) for table in tables
        ]
        unit, factors = _unit([column.unit if column else None for column in columns])
        free = tuple(
            tuple(units * factors[table] for units in column.free[at])
            if (column := columns[table])
            else ()
            for table, at in picks
        )
        if is_complete or any(free):
            devices.append(DeviceColumn(resource=resource, unit=unit, free=free))
    return tuple(devices)


def _unit(units: Sequence[Quantity | None]) -> tuple[Quantity, list[int]]:
    """A common unit of several columns, and the size of each column's unit in it."""
    known = [unit for unit in units if unit is not None]
    nanos = gcd(*(quantity.nanos for quantity in known)) or 1
    return (
        Quantity(nanos, known[0].family),
        [unit.nanos // nanos if unit is not None else 0 for unit in units],
    )
