"""What is told of others to somebody who may look into one namespace."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api.discretion import (
    ANOTHER,
    ANOTHER_USER,
    discreet,
    discreet_explanation,
    everywhere,
    mention,
    within,
)
from fairway.api.explanations import Explanation
from fairway.api.reasons import Code, Reason

MAY = within("ours")
BEFORE_IT = {"code": "BehindHead", "queue": "q", "other": "theirs/zebra"}
TAINT = {"code": "Tainted", "other": "nvidia.com/gpu=full:NoSchedule"}
LIMIT = {"code": "UserLimitExceeded", "queue": "q", "other": "zoe", "message": "zoe has as much"}

ANSWERS: dict[str, tuple[Any, Any]] = {
    "a workload of one's own is named": ({"workload": "ours/a"}, {"workload": "ours/a"}),
    "another one is not": ({"workload": "theirs/zebra"}, {"workload": ANOTHER}),
    "places in a line stay": (
        {"queues": [{"queue": "q", "heads": ["theirs/zebra", "ours/a", "theirs/zebu"]}]},
        {"queues": [{"queue": "q", "heads": [ANOTHER, "ours/a", ANOTHER]}]},
    ),
    "what is of a namespace loses its name and whose it is, and keeps its amounts": (
        [{"namespace": "theirs", "name": "zebra", "user": "zoe", "gpus": 8, "queue": "q"}],
        [{"name": ANOTHER, "gpus": 8, "queue": "q"}],
    ),
    "of one's own namespace all stays": (
        [{"namespace": "ours", "name": "a", "user": "ann"}],
        [{"namespace": "ours", "name": "a", "user": "ann"}],
    ),
    "who is before it in a reason is not named": (
        BEFORE_IT,
        {**BEFORE_IT, "other": ANOTHER},
    ),
    "a reason about something else stays": (TAINT, TAINT),
    "a sentence loses the names that its structure loses": (
        {"for": "theirs/zebra", "message": "preempted for theirs/zebra: it is more urgent"},
        {"for": ANOTHER, "message": f"preempted for {ANOTHER}: it is more urgent"},
    ),
    "what is of no namespace stays": (
        {"namespace": "", "name": "west", "share": None},
        {"namespace": "", "name": "west", "share": None},
    ),
    "a name that another one begins with leaves nothing of that one": (
        {"waitsFor": ["theirs/a", "theirs/a-zebra"], "message": "after theirs/a-zebra, theirs/a."},
        {"waitsFor": [ANOTHER, ANOTHER], "message": f"after {ANOTHER}, {ANOTHER}."},
    ),
    "a name of one's own that ends like a hidden one stays": (
        {"for": "rs/a", "message": "for rs/a, not ours/a or x.rs/a"},
        {"for": ANOTHER, "message": f"for {ANOTHER}, not ours/a or x.rs/a"},
    ),
    "of several in one text those alone are hidden that are another's": (
        {
            "code": "Reserved",
            "other": "ours/a, theirs/b, theirs/c",
            "message": "what is free is reserved for ours/a, theirs/b, theirs/c",
        },
        {
            "code": "Reserved",
            "other": f"ours/a, {ANOTHER}",
            "message": f"what is free is reserved for ours/a, {ANOTHER}, {ANOTHER}",
        },
    ),
    "who has too much is told of one's own workloads": (
        {"workload": "ours/a", "reasons": [LIMIT]},
        {"workload": "ours/a", "reasons": [LIMIT]},
    ),
    "and not of another's": (
        {"workload": "theirs/zebra", "reasons": [LIMIT]},
        {
            "workload": ANOTHER,
            "reasons": [{**LIMIT, "other": ANOTHER_USER, "message": f"{ANOTHER_USER} has as much"}],
        },
    ),
    "several in one field": ({"waitsFor": ["theirs/zebra"]}, {"waitsFor": [ANOTHER]}),
    "a place that is held by a plain number stays": ({"workloads": 3}, {"workloads": 3}),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_told_without_what_is_not_ones_own(case: str) -> None:
    answer, expected = ANSWERS[case]
    assert discreet(answer, MAY) == expected


@pytest.mark.parametrize("case", ANSWERS)
def test_who_may_look_everywhere_is_told_everything(case: str) -> None:
    answer, _ = ANSWERS[case]
    assert discreet(answer, everywhere) is answer


SENTENCES = {
    "theirs/zebra.": f"{ANOTHER}.",
    "pod theirs/zebra-0 of (theirs/zebra)": f"pod {ANOTHER} of ({ANOTHER})",
    "theirs/zebra, theirs/zebra": f"{ANOTHER}, {ANOTHER}",
    "theirs/ zebra": "theirs/ zebra",
    "theirs/zebra/main": f"{ANOTHER}/main",
    "theirs/zebras and nvidia.com/gpu": "theirs/zebras and nvidia.com/gpu",
    "theirs/a.b:c_D too": f"{ANOTHER} too",
    "default/theirs/zebra": f"default/{ANOTHER}",
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_names_are_found_in_sentences_wherever_they_end(sentence: str) -> None:
    answer = {"victims": ["theirs/zebra", "theirs/a.b:c_D"], "message": sentence}
    assert discreet(answer, MAY)["message"] == SENTENCES[sentence]


def test_of_many_names_none_is_left() -> None:
    message = "west: 8 nvidia.com/gpu are missing until theirs/zebra-{} ends"
    entries = [
        {"workload": f"theirs/zebra-{at}", "message": message.format(at)} for at in range(500)
    ]
    assert "zebra" not in str(discreet({"decisions": entries}, MAY))


def test_an_answer_that_is_shared_by_several_callers_is_not_changed() -> None:
    answer = {"heads": ["theirs/zebra"], "of": [{"namespace": "theirs", "name": "zebra"}]}
    discreet(answer, MAY)
    assert answer == {"heads": ["theirs/zebra"], "of": [{"namespace": "theirs", "name": "zebra"}]}


def test_what_is_hidden_already_stays_hidden() -> None:
    assert mention(ANOTHER, MAY) == ANOTHER
    once = discreet({"heads": ["theirs/zebra", "ours/a"]}, MAY)
    assert discreet(once, MAY) == once


@pytest.mark.parametrize("code", list(Code))
def test_no_sentence_of_why_names_a_workload_of_others(code: Code) -> None:
    """Whatever the reason: one that is to hold a workload must be known to hold one."""
    explanation = Explanation(
        now=0.0,
        workload="ours/a",
        state="Waits",
        queue="q",
        start=60.0,
        because="theirs/zebra",
        reasons=(Reason(code=code, queue="q", cluster="west", other=_other(code)),),
    )
    assert "zebra" in str(explanation.render())
    found = discreet_explanation(explanation, MAY).render()
    assert "zebra" not in str(found)
    assert "when a workload of another team ends" in found["message"]


def _other(code: Code) -> str:
    is_of_workloads = code.value.startswith("Preempted") or code in (
        Code.BEHIND_HEAD,
        Code.RESERVED,
    )
    return "theirs/zebra" if is_of_workloads else "west-2"
