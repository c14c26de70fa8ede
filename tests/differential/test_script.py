"""The script, its recordings, the list and the page agree with each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential import comparison, document, normal_form, record, steps
from tests.differential.comparison import Difference
from tests.kubernetes import binaries

GROUPS = {group.name: group for group in steps.groups()}
LABELS = {"1.20": (1, 20), "1.36": (1, 36)}
# What kubectl prints on both sides of each point where it changes units; see HumanDuration and
# ShortHumanDuration in k8s.io/apimachinery/pkg/util/duration.
AGES = (
    "0s", "59s", "119s", "2m", "59m", "9m59s", "10m", "179m", "3h", "7h59m", "8h", "23h", "47h",
    "2d", "7d23h", "8d", "364d", "729d", "1y", "2y", "2y1d", "7y364d", "8y", "50y", "<invalid>",
)  # fmt: skip
RAW_AGE = re.compile(r"(?<![\w.])(?:\d+[smhdy])+(?![\w.])")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("label", LABELS)
def test_every_step_that_a_kubectl_can_do_is_recorded(group: str, label: str) -> None:
    expected = [step.say for step in GROUPS[group].steps if step.can_run(LABELS[label])]
    assert list(record.read(group, label) or {}) == expected


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("label", LABELS)
def test_nothing_that_was_waited_for_never_came(group: str, label: str) -> None:
    recorded = record.read(group, label) or {}
    assert [say for say, outcome in recorded.items() if "never" in outcome] == []


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_recorded_is_of_the_kubernetes_that_is_built(group: str) -> None:
    content = json.loads((record.RECORDED / f"{group}.json").read_text(encoding="utf-8"))
    assert content["kubernetes"] == binaries.VERSION


def test_every_entry_of_the_list_names_a_group_and_steps_that_exist() -> None:
    for entry in comparison.accepted():
        sentences = [step.say for step in GROUPS[entry.group].steps]
        for pattern in entry.steps:
            probe = comparison.Accepted(
                topic="", group=entry.group, steps=(pattern,), at=("*",), why=""
            )
            assert any(
                probe.covers(Difference(step=say, at="", real="", ours="")) for say in sentences
            ), f"{entry.group}: no step is called {pattern!r}"


def test_every_topic_of_the_list_has_a_reason() -> None:
    topics = comparison.topics()
    assert all(len(topic["why"].split()) >= 5 for topic in topics)
    names = [topic["topic"] for topic in topics]
    assert len(names) == len(set(names))


def test_the_page_for_users_says_what_the_list_says() -> None:
    written = document.PAGE.read_text(encoding="utf-8")
    assert written == document.page(), "python -m tests.differential.document"


@pytest.mark.parametrize(
    ("real", "ours", "places"),
    [
        pytest.param({"s": {"a": 1}}, {"s": {"a": 1}}, [], id="equal outcomes do not differ"),
        pytest.param({"s": {"a": 1}}, {"s": {"a": 2}}, ["a"], id="a value differs"),
        pytest.param({"s": {"a": 1}}, {"s": {}}, ["a"], id="a key is missing"),
        pytest.param({"s": {}}, {"s": {"a": 1}}, ["a"], id="a key is too many"),
        pytest.param({"s": {}}, {}, [""], id="a step is missing"),
        pytest.param({"s": {"a": [1, 2]}}, {"s": {"a": [1, 3]}}, ["a.1"], id="a member differs"),
        pytest.param({"s": {"a": [1, 2]}}, {"s": {"a": [1]}}, ["a"], id="a member is missing"),
    ],
)
def test_differences_are_found(
    real: dict[str, object], ours: dict[str, object], places: list[str]
) -> None:
    assert [each.at for each in comparison.differences(real, ours)] == places


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            {"uid": "0e9d2a7c-58a4-4c0c-93b2-6c1b5c8c7f11"}, {"uid": "<uid>"}, id="uids vary"
        ),
        pytest.param({"at": "2026-01-01T10:00:00.5Z"}, {"at": "<time>"}, id="times vary"),
        pytest.param(
            {"resourceVersion": "17"}, {"resourceVersion": "<version>"}, id="versions vary"
        ),
        pytest.param({"resourceVersion": ""}, {"resourceVersion": ""}, id="no version stays none"),
        pytest.param({"generation": 17}, {"generation": 17}, id="the generation stays"),
        pytest.param({"data": {"a": "17"}}, {"data": {"a": "17"}}, id="data stay"),
    ],
)
def test_only_what_varies_is_replaced(before: object, after: object) -> None:
    assert normal_form.value(before) == after


@pytest.mark.parametrize("age", AGES)
def test_an_age_of_any_unit_is_replaced(age: str) -> None:
    printed = (
        f"NAME   LAST SEEN   RESTARTS\nweb  {age} (x2 over {age})   3 ({age} ago)\nroot  {age}  0"
    )
    assert normal_form.table(printed)[1:] == [
        ["web", "<age> (x2 over <age>)", "3 (<age> ago)"],
        ["root", "<age>", "0"],
    ]
    assert normal_form.value({"cells": ["web", 3, age]}) == {"cells": ["web", 3, "<age>"]}


@pytest.mark.parametrize("kept", ["web", "3", "1/1", "2 (x2 over 3)", "10y-old", "v1h", "5d ago"])
def test_a_cell_that_is_no_age_stays(kept: str) -> None:
    assert normal_form.cell(kept) == kept


@pytest.mark.parametrize("group", GROUPS)
def test_no_age_is_recorded(group: str) -> None:
    content = json.loads((record.RECORDED / f"{group}.json").read_text(encoding="utf-8"))
    told = list(_texts(content["steps"]))
    assert [text for text in told if RAW_AGE.search(text)] == []


def _texts(given: Any, key: str = "") -> Iterator[str]:
    """Every text of a recording but amounts of CPU, whose thousandths look like minutes."""
    if isinstance(given, dict):
        for name, each in given.items():
            yield from _texts(each, name)
    elif isinstance(given, list):
        for each in given:
            yield from _texts(each, key)
    elif isinstance(given, str) and key != "cpu":
        yield given


def test_the_annotation_of_ours_is_left_out_and_nothing_else() -> None:
    names = {"ours/by"}
    stamped = {
        "a": [{"annotations": {"ours/by": "x"}}, {"annotations": {"ours/by": "x", "k": "v"}}]
    }
    assert comparison.unstamped(stamped, names) == {"a": [{}, {"annotations": {"k": "v"}}]}
