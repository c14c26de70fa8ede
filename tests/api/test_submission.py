"""Which submissions a queue takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairway.api.queue import Submitters
from fairway.api.submission import Submission, note_of, refusing_queue, takes


def submission(namespace: str = "vision", **parts: Any) -> Submission:
    return Submission(namespace=namespace, labels=parts.pop("labels", {}), **parts)


@pytest.mark.parametrize(
    ("submitters", "one", "is_taken"),
    [
        pytest.param({}, submission(user="ann"), False, id="who names nobody takes nobody"),
        pytest.param({"namespaces": ["vision"]}, submission(), True, id="a namespace by name"),
        pytest.param({"namespaces": ["visio"]}, submission(), False, id="no part of a name"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "a"}}},
            submission(labels={"team": "a"}),
            True,
            id="a namespace by its labels",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
            submission(),
            False,
            id="a namespace without the label",
        ),
        pytest.param({"namespaceSelector": {}}, submission(), True, id="an empty selector: all"),
        pytest.param({"users": ["ann"]}, submission(user="ann"), True, id="a user"),
        pytest.param({"users": ["ann"]}, submission(user="bob"), False, id="another user"),
        pytest.param({"users": [""]}, submission(), False, id="who is not known is no user"),
        pytest.param(
            {"groups": ["lab"]}, submission(groups=("x", "lab")), True, id="a member of a group"
        ),
        pytest.param(
            {"groups": ["lab"]}, submission(user="lab"), False, id="a user named as a group"
        ),
        pytest.param(
            {"namespaces": ["other"], "users": ["ann"]},
            submission(user="ann"),
            True,
            id="one match suffices",
        ),
    ],
)
def test_a_queue_takes_what_it_names(
    submitters: dict[str, Any], one: Submission, *, is_taken: bool
) -> None:
    assert takes(msgspec.convert(submitters, Submitters), one) is is_taken


def test_every_queue_above_that_states_submitters_must_agree() -> None:
    vision, other = (Submitters(namespaces=(name,)) for name in ("vision", "other"))
    line = [("team", vision), ("department", None), ("company", other)]
    assert refusing_queue(line, submission()) == "company"
    assert refusing_queue(line[:2], submission()) == ""


def test_what_is_noted_is_read_back() -> None:
    note = note_of("ann", ["lab", "all"])
    found = Submission.read(namespace="n", labels={}, note=note, creator="root")
    assert (found.user, found.groups) == ("ann", ("lab", "all"))


def test_a_name_of_several_lines_passes_for_no_group() -> None:
    note = note_of("ann\nadmins", ["a\nadmins", "lab"])
    found = Submission.read(namespace="n", labels={}, note=note, creator="root")
    assert (found.user, found.groups) == ("", ("lab",))


@pytest.mark.parametrize(("creator", "user"), [("ann", "ann"), ("system:fairway", "")])
def test_the_creator_counts_where_nobody_named_a_queue(creator: str, user: str) -> None:
    for note in (None, ""):
        found = Submission.read(namespace="n", labels={}, note=note, creator=creator)
        assert found.user == user
