"""Reports of an agent: whatever happens, who reads them has what was seen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.agent.columns import columns_of
from fairway.agent.drivers.interface import NodeSeen, Observation, PodSeen, WorkSeen
from fairway.agent.reports import Reports
from fairway.api.amounts import Quantity
from fairway.api.namespaces import NamespaceQuota, NamespaceRules
from fairway.api.report import ClusterReport, WorkState
from fairway.api.report_changes import apply_changes, fits, in_order

NAMES = [f"team.w{number}" for number in range(6)]
NODES = [f"n{number}" for number in range(5)]


def node(name: str, *, is_ready: bool = True, cpu: int = 4) -> NodeSeen:
    return NodeSeen(
        name=name,
        allocatable={"cpu": cpu * 10**9, "memory": 8 * 2**30 * 10**9},
        labels={"kubernetes.io/hostname": name, "zone": "a"},
        is_ready=is_ready,
    )


def rules(namespace: str, *, pods: int = 4, others: int = 0) -> NamespaceRules:
    """A namespace with a quota of pods."""
    hard, used = ({"pods": Quantity.of(count)} for count in (pods, others))
    return NamespaceRules(
        name=namespace, quotas=(NamespaceQuota(name="q", hard=hard, others=used),)
    )


pods = st.builds(
    PodSeen,
    name=st.just("p"),
    pod_set=st.sampled_from(["driver", "worker"]),
    attempt=st.integers(1, 2),
    phase=st.sampled_from(["Bound", "Ready", "Terminating", "Succeeded", "Failed"]),
    node=st.sampled_from(NODES),
) | st.builds(
    PodSeen,
    name=st.just("p"),
    pod_set=st.just("worker"),
    attempt=st.just(1),
    phase=st.just("Pending"),
)
looks = st.tuples(
    st.lists(st.sampled_from(NODES), unique=True),
    st.dictionaries(st.sampled_from(NAMES), st.lists(pods, max_size=4)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["Pending", "Running", "Failed"])),
    st.integers(1, 8),
    st.lists(st.sampled_from("ab"), unique=True),
)


class Reader:
    """Puts the reports together as the hub does."""

    def __init__(self) -> None:
        self.by_name: dict[str, ClusterReport] = {}

    def write(self, report: ClusterReport) -> None:
        self.by_name[report.metadata.name] = report

    def whole(self) -> ClusterReport:
        (whole,) = (item for item in self.by_name.values() if item.spec.since_sequence is None)
        changes = next((item for item in self.by_name.values() if fits(whole, item)), None)
        return apply_changes(whole, changes)


def requests(_work: str, _pod_set: str) -> dict[str, Quantity]:
    return {"cpu": Quantity.of("1")}


@settings(max_examples=150)
@given(st.lists(looks, min_size=1, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_hub_always_has_what_was_last_seen(
    seen: list[tuple[list[str], dict, dict, int, list[str]]], writes_succeed: list[bool]
) -> None:
    reports, reader = Reports("here", 1), Reader()
    for number, ((present, works, phases, cpu, ruled), succeeds) in enumerate(
        zip(seen, writes_succeed, strict=False)
    ):
        observation = Observation(
            nodes=tuple(node(name, cpu=cpu) for name in present),
            works={
                name: WorkSeen(name=name, attempt=1, pods=tuple(work))
                for name, work in works.items()
            },
            namespaces=tuple(rules(name, pods=cpu) for name in sorted(ruled)),
        )
        states = {
            name: WorkState(work=name, attempt=1, phase=phase) for name, phase in phases.items()
        }
        reports.take(observation, NAMES, states, requests)
        while (report := reports.next(float(number))) is not None:
            if not succeeds:
                reports.mark_unsure(report)
                break
            reader.write(report)
            reports.confirm(report)
        if not succeeds:
            continue
        fresh = Reports("here", 1)
        fresh.take(observation, NAMES, states, requests)
        wanted = fresh.next(float(number))
        if wanted is None:
            continue
        found = reader.whole().spec
        assert found.nodes == in_order(wanted).spec.nodes
        assert found.works == in_order(wanted).spec.works
        assert found.states == in_order(wanted).spec.states
        assert found.namespaces == in_order(wanted).spec.namespaces


def test_a_small_change_is_a_small_report() -> None:
    reports = Reports("here", 1)
    nodes = tuple(node(f"n{number:04d}") for number in range(1500))
    states = {
        f"team.w{number}": WorkState(work=f"team.w{number}", attempt=1, phase="Running")
        for number in range(500)
    }
    observation = Observation(nodes=nodes)
    reports.take(observation, list(states), states, requests)
    first = reports.next(0.0)
    assert first is not None
    reports.confirm(first)
    states["team.w7"] = WorkState(work="team.w7", attempt=1, phase="Succeeded")
    reports.take(observation, ["team.w7"], states, requests)
    second = reports.next(1.0)
    assert second is not None
    assert second.spec.since_sequence == first.spec.sequence
    assert second.metadata.name == "here-0-difference"
    assert [state.work for state in second.spec.states] == ["team.w7"]
    assert not second.spec.nodes.names


def test_after_the_clock_was_set_back_a_report_is_whole() -> None:
    reports = Reports("here", 1)
    states = {"team.w": WorkState(work="team.w", attempt=1, phase="Running")}
    reports.take(Observation(nodes=(node("n"),)), ["team.w"], states, requests)
    first = reports.next(100.0)
    assert first is not None
    reports.confirm(first)
    states["team.w"] = WorkState(work="team.w", attempt=1, phase="Succeeded")
    reports.take(Observation(nodes=(node("n"),)), ["team.w"], states, requests)
    second = reports.next(40.0)
    assert second is not None
    assert (second.spec.since_sequence, second.spec.sequence) == (None, 2)


def test_what_others_use_of_a_quota_is_reported_alone() -> None:
    reports = Reports("here", 1)
    nodes = (node("n0"),)
    reports.take(Observation(nodes=nodes, namespaces=(rules("a"), rules("b"))), [], {}, requests)
    first = reports.next(0.0)
    assert first is not None
    reports.confirm(first)
    changed = rules("b", others=2)
    reports.take(Observation(nodes=nodes, namespaces=(rules("a"), changed)), [], {}, requests)
    second = reports.next(1.0)
    assert second is not None
    assert second.spec.since_sequence == first.spec.sequence
    assert second.spec.namespaces == (changed,)


def test_many_nodes_come_in_chunks_and_keep_theirs() -> None:
    reports = Reports("here", 1)
    names = [f"n{number:04d}" for number in range(4500)]
    reports.take(Observation(nodes=tuple(map(node, names))), (), {}, requests)
    wholes = []
    while (report := reports.next(0.0)) is not None:
        reports.confirm(report)
        wholes.append(report)
    assert [len(item.spec.nodes.names) for item in wholes] == [2000, 2000, 500]
    assert {item.spec.chunks for item in wholes} == {3}
    # One node goes, another comes: the chunks of all others stay as they are.
    names = [*names[1:], "a0000"]
    reports.take(Observation(nodes=tuple(map(node, names))), (), {}, requests)
    report = reports.next(1.0)
    assert report is not None
    assert report.spec.chunk == 0
    assert report.spec.removed_nodes == ("n0000",)
    assert report.spec.nodes.names == ("a0000",)
    reports.confirm(report)
    assert reports.next(1.0) is None


def test_amounts_are_exact_whatever_their_unit() -> None:
    odd = NodeSeen(name="odd", allocatable={"cpu": 3_500_000_000, "memory": 1_000_000_007 * 10**9})
    columns = columns_of([odd])
    found = {
        amount.resource: amount.allocatable[0] * amount.unit.nanos for amount in columns.amounts
    }
    assert found == dict(odd.allocatable)
