"""A whole report and the difference since are together what a later whole report says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairway.api import codec
from fairway.api.amounts import Quantity
from fairway.api.meta import ObjectMeta, Taint
from fairway.api.namespaces import NamespaceQuota, NamespaceRules
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
    WorkState,
)
from fairway.api.report_changes import apply_changes, difference, fits, in_order

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
QUOTAS = tuple(NamespaceQuota(name="q", hard={"pods": Quantity.of(hard)}) for hard in (1, 2))
SPOT = TaintSet(taints=(Taint(key="spot", value="yes", effect="NoSchedule"),))


@st.composite
def node_columns(draw: st.DrawFn) -> NodeColumns:
    names = draw(st.permutations(draw(st.lists(st.sampled_from("abcdef"), unique=True))))
    count = len(names)

    def column(values: st.SearchStrategy) -> tuple:
        return tuple(draw(st.lists(values, min_size=count, max_size=count)))

    keys = draw(st.lists(st.sampled_from(["rack", "zone"]), unique=True))
    resources = draw(st.lists(st.sampled_from(["cpu", "gpu"]), unique=True))
    return NodeColumns(
        names=tuple(names),
        unready=tuple(at for at in range(count) if draw(st.booleans())),
        labels=tuple(
            LabelColumn(key=key, values=column(st.sampled_from(["", "x", "y"]))) for key in keys
        ),
        taint_sets=(TaintSet(), SPOT),
        taint_set=column(st.integers(0, 1)) if draw(st.booleans()) else (),
        amounts=tuple(
            AmountColumn(
                resource=resource,
                unit=Quantity.of("1m"),
                allocatable=column(st.integers(0, 3)),
                others=column(st.integers(0, 1)) if draw(st.booleans()) else (),
            )
            for resource in resources
        ),
        devices=(
            DeviceColumn(
                resource="gpu", unit=Quantity.of(1), free=column(st.sampled_from([(), (1, 2)]))
            ),
        )
        if draw(st.booleans())
        else (),
    )


@st.composite
def reports(draw: st.DrawFn, sequence: int) -> ClusterReport:
    nodes = draw(node_columns())
    places = st.integers(0, max(len(nodes.names) - 1, 0))

    def pods() -> PodCounts | None:
        on = draw(st.lists(places, unique=True, max_size=2)) if nodes.names else []
        return PodCounts(nodes=tuple(on), counts=(1,) * len(on)) if on else None

    works = draw(
        st.lists(
            st.tuples(st.sampled_from("vw"), st.sampled_from("pq"), st.integers(1, 2)), unique=True
        )
    )
    states = draw(st.lists(st.sampled_from("uvw"), unique=True))
    pools = draw(st.lists(st.sampled_from("kl"), unique=True))
    return ClusterReport(
        metadata=ObjectMeta(name="east-0"),
        spec=ClusterReportSpec(
            cluster="east",
            agent_epoch=1,
            sequence=sequence,
            seen_at=MOMENT,
            nodes=nodes,
            works=tuple(
                WorkPods(
                    work=work,
                    pod_set=pod_set,
                    attempt=attempt,
                    bound=pods(),
                    terminating=pods(),
                    pending=draw(st.integers(0, 1)),
                )
                for work, pod_set, attempt in works
            ),
            states=tuple(
                WorkState(work=state, phase=draw(st.sampled_from(["Running", "Failed"])))
                for state in states
            ),
            pools=tuple(PoolReport(name=pool, nodes=draw(st.integers(0, 2))) for pool in pools),
            namespaces=tuple(
                NamespaceRules(name=name, quotas=(draw(st.sampled_from(QUOTAS)),))
                for name in draw(st.lists(st.sampled_from("mn"), unique=True))
            ),
        ),
    )


@settings(max_examples=300, deadline=None)
@given(reports(sequence=4), reports(sequence=9))
def test_a_whole_report_and_the_difference_make_the_later_whole_one(old, new) -> None:
    changes = difference(old, new)
    if changes is None:
        had, has = (
            {("pool", item.name) for item in report.spec.pools}
            | {("namespace", item.name) for item in report.spec.namespaces}
            for report in (old, new)
        )
        assert had - has, "only pools and rules of namespaces that are gone can't be told"
        return
    assert apply_changes(old, changes) == in_order(new)
    # On the wire it is the same.
    assert codec.decode(codec.encode(changes), ClusterReport) == changes


@given(reports(sequence=4))
def test_no_change_is_an_empty_difference(report) -> None:
    changes = difference(report, report)
    assert changes is not None
    assert changes.spec.nodes == NodeColumns()
    assert (changes.spec.works, changes.spec.states, changes.spec.pools) == ((), (), ())


WHOLE = ClusterReport(
    metadata=ObjectMeta(name="east-0"),
    spec=ClusterReportSpec(
        cluster="east", agent_epoch=1, sequence=4, seen_at=MOMENT, nodes=NodeColumns(names=("a",))
    ),
)
CHANGES = replace(
    WHOLE,
    spec=replace(
        WHOLE.spec, sequence=9, since_sequence=4, nodes=NodeColumns(), removed_nodes=("a",)
    ),
)


@pytest.mark.parametrize(
    ("change", "applies"),
    [
        ({}, True),
        ({"since_sequence": 3}, False),
        ({"agent_epoch": 2}, False),
        ({"chunk": 1, "chunks": 2}, False),
        ({"cluster": "west"}, False),
        ({"seen_at": WHOLE.spec.seen_at - timedelta(seconds=1)}, False),
    ],
    ids=[
        "made from it",
        "made from an earlier one",
        "by an agent that has started anew",
        "of another chunk",
        "of another cluster",
        "by an agent that has lost its disk since",
    ],
)
def test_a_difference_counts_only_for_the_report_that_it_was_made_from(change, applies) -> None:
    changes = replace(CHANGES, spec=replace(CHANGES.spec, **change))
    assert fits(WHOLE, changes) == applies
    assert apply_changes(WHOLE, changes).spec.nodes.names == (() if applies else ("a",))


def test_a_unit_that_changed_makes_a_report_whole_again() -> None:
    def with_unit(unit: str) -> ClusterReport:
        column = AmountColumn(resource="cpu", unit=Quantity.of(unit), allocatable=(1,))
        nodes = NodeColumns(names=("a",), amounts=(column,))
        return replace(WHOLE, spec=replace(WHOLE.spec, nodes=nodes))

    assert difference(with_unit("1m"), with_unit("1")) is None
