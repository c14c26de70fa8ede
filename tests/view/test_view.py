"""After any sequence of events, the view equals one made from scratch."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway import demo
from fairway.api.documents import read_documents
from fairway.core.nodes import Cluster, LabelColumn, Nodes
from fairway.demo import story
from fairway.view.objects import Objects
from fairway.view.view import View

NOW = 1_800_000_000.0
EXAMPLES = Path(__file__).parents[2] / "examples" / "fleet"
PLAIN = [
    document.value
    for file in sorted(EXAMPLES.glob("*.yaml"))
    for document in read_documents(file.read_bytes(), file.name)
    if document.value["kind"] != "Work"
]
DEMO = [
    *(document.value for document in demo.documents()),
    *(story.workload(step.submit, 1) for step in story.STORY if step.submit is not None),
    story.service(6),
]


def shown(value):
    """A value that can be compared: arrays as lists, and what compares by identity by its parts."""
    match value:
        case np.ndarray():
            return value.tolist()
        case Cluster() | Nodes() | LabelColumn():
            return {
                field.name: shown(getattr(value, field.name)) for field in dataclasses.fields(value)
            }
        case dict():
            return {key: shown(other) for key, other in value.items()}
        case _:
            return value


def facts_shown(facts) -> dict:
    return {field.name: shown(getattr(facts, field.name)) for field in dataclasses.fields(facts)}


def changed(plain: dict, number: int) -> dict:
    """Another version of an object: something that decisions look at is different."""
    other = copy.deepcopy(plain)
    spec = other.setdefault("spec", {})
    match other["kind"]:
        case "Workload":
            spec["priority"] = number
        case "Queue":
            spec["weight"] = number
            spec.setdefault("defaults", {})["priority"] = number
        case "Cluster":
            other["metadata"].setdefault("labels", {})["turn"] = str(number)
        case "Flavor":
            spec["speed"] = str(number + 1)
        case "Fleet":
            spec["defaults"] = {"queue": "research" if number % 2 else "playground"}
        case "FleetPolicy":
            spec["priority"] = {"max": number}
        case "PlacementPolicy":
            spec["moveMargin"] = number
        case _:
            pass
    return other


GROUPS = ("fairway.dev", "governance.fairway.dev")
OBJECTS = [item for item in [*PLAIN, *DEMO] if item["apiVersion"].partition("/")[0] in GROUPS]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, len(OBJECTS) - 1), st.sampled_from(["put", "remove"]), st.integers(0, 5)
    ),
    max_size=40,
)


def identity(plain: dict) -> tuple[str, str, str]:
    metadata = plain["metadata"]
    return (plain["kind"], metadata.get("namespace", ""), metadata["name"])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(EVENTS, st.data())
def test_a_maintained_view_equals_one_made_from_scratch(events, data) -> None:
    view, present = View(), {}
    for index, (position, what, number) in enumerate(events):
        plain = OBJECTS[position]
        if what == "put":
            plain = changed(plain, number)
            present[identity(plain)] = plain
            view.put(plain)
        elif identity(plain) in present:
            view.remove(present.pop(identity(plain)))
        if data.draw(st.booleans(), label=f"looked at after event {index}"):
            view.facts(NOW)
    scratch = Objects.of(present.values()).facts(NOW)
    assert facts_shown(view.facts(NOW)) == facts_shown(scratch)


def test_an_event_reads_only_what_it_concerns() -> None:
    view = View()
    for plain in DEMO:
        view.put(plain)
    before = view.facts(NOW)
    workload = next(item for item in DEMO if item["kind"] == "Workload")
    view.put(changed(workload, 7))
    after = view.facts(NOW)
    key = f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
    assert after.workloads[key].priority == 7
    for name, cluster in before.clusters.items():
        assert after.clusters[name] is cluster
    for other, value in before.workloads.items():
        assert other == key or after.workloads[other] is value
    assert after.queues is before.queues
