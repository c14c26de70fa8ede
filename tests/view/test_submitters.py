"""Who may use a queue, when the turn of a workload comes."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.submission import user_of
from fairway.core.cycle import plan
from fairway.view.objects import Objects
from fairway.view.view import View
from tests.builders import NOW, Plain, cluster, flavor, plan_of, queue, told, workload
from tests.view.test_view import facts_shown

FLEET = [flavor("h100"), cluster("east", 8)]


def namespace(**labels: str) -> Plain:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}


def submitted(by: str = "", **parts: Any) -> Plain:
    made = workload("train", "lab", **parts)
    if by:
        made["metadata"]["annotations"] = {"fairway.dev/submitted-by": by}
    return made


REFUSED = ["train waits: NotASubmitter"]
STARTS = ["train starts in east:1@h100"]


@pytest.mark.parametrize(
    ("submitters", "objects", "expected"),
    [
        pytest.param(None, [submitted()], STARTS, id="without submitters everybody starts"),
        pytest.param({}, [submitted("ann")], REFUSED, id="with none named nobody does"),
        pytest.param({"namespaces": ["team"]}, [submitted()], STARTS, id="of its namespace"),
        pytest.param({"namespaces": ["other"]}, [submitted()], REFUSED, id="of another namespace"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}},
            [submitted(), namespace(gpu="yes")],
            STARTS,
            id="of a namespace with the label",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}},
            [submitted(), namespace(gpu="no")],
            REFUSED,
            id="of a namespace with another",
        ),
        pytest.param({"users": ["ann"]}, [submitted("ann\nlab")], STARTS, id="of a user"),
        pytest.param({"groups": ["lab"]}, [submitted("ann\nlab")], STARTS, id="of a group"),
        pytest.param({"users": ["lab"]}, [submitted("ann\nlab")], REFUSED, id="a group is no user"),
    ],
)
def test_a_workload_starts_if_its_queue_takes_it(
    submitters: Plain | None, objects: list[Plain], expected: list[str]
) -> None:
    spec = {} if submitters is None else {"submitters": submitters}
    assert told(plan_of(*FLEET, queue("lab", 8, **spec), *objects)) == expected


def test_a_queue_above_must_take_it_too() -> None:
    above = queue("company", 8, submitters={"namespaces": ["other"]})
    found = plan_of(*FLEET, above, queue("lab", 8, parent="company"), submitted())
    assert told(found) == REFUSED
    (reason,) = found.waiting[0].reasons
    assert reason.render()["message"] == (
        "queue company does not accept workloads from namespace team: its submitters name neither"
        " the namespace nor the user who submitted it"
    )


def test_what_runs_is_left_alone_and_gets_no_more() -> None:
    service = submitted(mode="Divided", replicas=4, running="east", holds=2)
    found = plan_of(*FLEET, queue("lab", 8, submitters={"namespaces": ["other"]}), service)
    assert told(found) == REFUSED


def test_a_refused_workload_does_not_block_a_strict_queue() -> None:
    other = workload("other", "lab", waited=10)
    other["metadata"]["annotations"] = {"fairway.dev/created-by": "ann"}
    lab = queue("lab", 8, strategy="Strict", submitters={"users": ["ann"]})
    assert told(plan_of(*FLEET, lab, submitted(), other)) == [
        "other starts in east:1@h100",
        *REFUSED,
    ]


def test_a_view_follows_submitters_and_labels_of_namespaces() -> None:
    by_label = {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}}
    events = [
        queue("lab", 8, submitters={"namespaces": ["team"]}),
        queue("lab", 8, submitters=by_label),
        namespace(gpu="yes"),
        namespace(gpu="no"),
        queue("lab", 8),
        queue("company", 8, submitters={"namespaces": ["other"]}),
        queue("lab", 8, parent="company"),
        queue("company", 8, submitters={"namespaces": ["team"]}),
    ]
    view, present = View(), {}
    starts = []
    for plain in [*FLEET, submitted(), *events]:
        present[plain["kind"], plain["metadata"]["name"]] = plain
        view.put(plain)
        assert facts_shown(view.facts(NOW)) == facts_shown(Objects.of(present.values()).facts(NOW))
        starts.append(bool(plan(view.snapshot(NOW))[0].steps))
    assert starts[-len(events) :] == [True, False, True, False, True, True, False, True]
    view.put(queue("lab", 8, submitters=by_label))
    view.put(namespace(gpu="yes"))
    assert plan(view.snapshot(NOW))[0].steps
    view.remove(namespace(gpu="yes"))
    assert not plan(view.snapshot(NOW))[0].steps


@pytest.mark.parametrize(
    ("notes", "user"),
    [
        pytest.param({"submitted-by": "ann\nlab", "created-by": "bob"}, "ann", id="its submitter"),
        pytest.param({"created-by": "bob"}, "bob", id="its creator if none is noted"),
        pytest.param({"submitted-by": "", "created-by": "bob"}, "bob", id="an empty note is none"),
        pytest.param(
            {"submitted-by": "ann", "created-by": "system:fairway"}, "ann", id="of a native object"
        ),
        pytest.param({"created-by": "system:fairway"}, "", id="the hub is no user"),
        pytest.param({}, "", id="of nobody"),
    ],
)
def test_the_user_of_a_workload_is_its_submitter(notes: dict[str, str], user: str) -> None:
    assert user_of({f"fairway.dev/{name}": value for name, value in notes.items()}) == user
