"""A picture kept by changes is the one that would be made from scratch."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.agent.drivers.interface import NodeSeen, PodSeen
from fairway.agent.drivers.kubernetes.keys import ObjectKey
from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.pods import NO_USE, OwnPod, Use
from fairway.agent.drivers.kubernetes.scores import scores
from fairway.agent.drivers.kubernetes.works import Works
from fairway.api.amounts import NANO
from fairway.api.meta import Taint
from fairway.kinds.registry import built_in

NAMES = ("a", "b", "c")


def quiet() -> Picture:
    return Picture(changed=lambda: None, touched=lambda _: None)


def ours(work: str, node: str, uid: str = "u") -> OwnPod:
    seen = PodSeen(name="p", pod_set="pod", attempt=1, phase="Ready", node=node)
    use = Use(node=node, amounts={"cpu": NANO})
    return OwnPod(seen=seen, work=work, namespace="team", uid=uid, use=use, containers=("main",))


names = st.sampled_from(NAMES)
uses = st.builds(
    Use, node=names, amounts=st.fixed_dictionaries({"cpu": st.integers(1, 3), "pods": st.just(1)})
)
pods = st.one_of(uses, st.just(NO_USE), st.builds(ours, work=names, node=names), st.none())
nodes = st.one_of(st.none(), st.builds(Node, is_ready=st.booleans()))
changes = st.lists(
    st.one_of(st.tuples(st.just("node"), names, nodes), st.tuples(st.just("pod"), names, pods)),
    max_size=30,
)


def tell(picture: Picture, change: tuple[str, str, Any]) -> None:
    what, name, value = change
    if what == "pod":
        picture.take_pod(("team", name), value)
    elif value is not None or name in picture.nodes:
        picture.take_node(name, value)


@given(changes, st.integers(0, 30))
def test_changes_come_to_the_same_as_the_last_of_each(several: list[Any], at: int) -> None:
    picture = quiet()
    for number, change in enumerate(several):
        tell(picture, change)
        if number == at:
            picture.nodes_seen()  # a look in between must make no difference
    fresh = quiet()
    last = {(what, name): value for what, name, value in several}
    for (what, name), value in last.items():
        if value is not None:
            tell(fresh, (what, name, value))
    assert picture.nodes_seen() == fresh.nodes_seen()
    assert picture.pods == fresh.pods
    assert picture.usage() == fresh.usage()


def test_what_did_not_change_is_the_same_value() -> None:
    picture = quiet()
    for name in NAMES:
        picture.take_node(name, Node(allocatable={"cpu": NANO}))
    before = picture.nodes_seen()
    picture.take_node("a", Node(allocatable={"cpu": NANO}))
    assert picture.nodes_seen() is before
    picture.take_pod(("x", "y"), Use(node="b", amounts={"cpu": 5}))
    after = picture.nodes_seen()
    assert [value is other for value, other in zip(before, after, strict=True)] == [
        True,
        False,
        True,
    ]


def test_an_answer_to_a_write_is_not_undone_by_an_older_event() -> None:
    def told(version: str, value: str) -> dict[str, Any]:
        annotations = {"fairway.dev/work": "team.a"}
        metadata = {"uid": "u", "resourceVersion": version, "annotations": annotations}
        return {"kind": "Job", "metadata": metadata, "spec": value}

    picture = quiet()
    key = ObjectKey(group="batch", kind="Job", namespace="team", name="a")
    picture.take_object(key, told("7", "written"))
    picture.take_object(key, told("5", "older"))
    found = picture.object(key)
    assert found is not None
    assert found["spec"] == "written"
    picture.take_object(key, None)
    assert not picture.objects


def node(name: str, gpus: int, **more: Any) -> NodeSeen:
    return NodeSeen(
        name=name, allocatable={"cpu": 50 * NANO, "nvidia.com/gpu": gpus * NANO}, **more
    )


def test_scores_have_the_names_and_scales_of_the_collector_of_resource_usage() -> None:
    closed = (Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),)
    found = scores(
        (node("a", 8), node("b", 3), node("c", 20, taints=closed), node("d", 9, is_ready=False)),
        {"a": {"nvidia.com/gpu": 6 * NANO, "cpu": 50 * NANO}},
    )
    assert found == {
        "gpuNodeAvailable": -70,  # three on b
        "gpuClusterAvailable": -50,  # two on a, three on b
        "cpuNodeAvailable": 0,
        "cpuClusterAvailable": 0,
        "memNodeAvailable": -100,
        "memClusterAvailable": -100,
        "tpuNodeAvailable": -100,
        "tpuClusterAvailable": -100,
    }


def test_a_work_that_was_found_is_forgotten_with_the_last_of_it() -> None:
    works: Works

    def touched(label: str) -> None:
        works.touch(label)

    picture = Picture(changed=lambda: None, touched=touched)
    works = Works(picture, built_in().of)
    picture.take_pod(("team", "p"), ours("team.a", "n"))
    assert list(works.seen()) == ["team.a"]
    picture.take_pod(("team", "p"), None)
    assert works.seen() == {}
