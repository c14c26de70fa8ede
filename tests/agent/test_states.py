"""Where a work is in its life, by what is seen of it; and what rules make of its objects."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairway.agent.drivers.interface import PodSeen, WorkSeen
from fairway.agent.feedback import Feedback, feedback_of
from fairway.agent.memory import Kept
from fairway.agent.states import Told, state_of
from fairway.api.report import WorkState
from fairway.api.work import ConditionRule, FeedbackPath, FeedbackRule, Manifest
from fairway.kinds.registry import built_in
from tests.contracts.drivers import config_map, job, service, work

NOW = 1_800_000_000.0
DONE = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}


def pod(phase: str, number: int = 0, **more: Any) -> PodSeen:
    given = {"attempt": 1, "node": "n1", "since": NOW - 10, "started_at": NOW - 10, **more}
    return PodSeen(name=f"p{number}", pod_set="pod", phase=phase, **given)  # type: ignore[arg-type]


def seen(*pods: PodSeen, **status: Any) -> WorkSeen:
    body = {**job("one", pods=2), "status": status}
    return WorkSeen(name="team.one", attempt=1, pods=pods, objects={0: body})


FATAL = {"finished_at": NOW - 5, "exit_code": 137, "reason": "OOMKilled", "node": "n2"}
LATER = {"finished_at": NOW - 1, "exit_code": 1, "reason": "Error"}
CASES = [
    ("nothing is seen yet", {}, None, "Pending", ""),
    ("some pods of a gang are ready", {}, seen(pod("Ready"), pod("Bound", 1)), "Pending", ""),
    ("all pods of a gang are ready", {}, seen(pod("Ready"), pod("Ready", 1)), "Running", ""),
    (
        "a pod cannot pull its image",
        {},
        seen(pod("Ready"), pod("Bound", 1, reason="ErrImagePull", message="no such image")),
        "Pending",
        "ErrImagePull",
    ),
    (
        "the job is complete",
        {},
        seen(pod("Succeeded"), pod("Succeeded", 1), conditions=[DONE]),
        "Succeeded",
        "",
    ),
    (
        "the first pod to fail tells why",
        {},
        seen(pod("Failed", 1, **LATER), pod("Failed", **FATAL), conditions=[FAILED]),
        "Failed",
        "OOMKilled",
    ),
    ("no pod tells why", {}, seen(conditions=[FAILED]), "Failed", "BackoffLimitExceeded"),
    ("it is to stop and has pods", {"desired": "Stop"}, seen(pod("Ready")), "Stopping", ""),
    ("it is stopped", {"desired": "Stop"}, seen(), "Held", ""),
    ("it is buried", {"desired": "Stop", "tombstone": True}, seen(), "Stopping", ""),
    ("its place is held", {"desired": "Reserve"}, seen(pod("Ready")), "Reserved", ""),
    ("an earlier attempt still ends", {"attempt": 2}, seen(pod("Terminating")), "Stopping", ""),
]


@pytest.mark.parametrize(
    ("spec", "found", "phase", "reason"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_state_of_a_work(spec: dict, found: WorkSeen, phase: str, reason: str) -> None:
    kept = Kept(work=work("one", job("one", pods=2), pods=2, **spec))
    state = state_of(kept, found, Told(), find_kind=built_in().of, now=NOW)
    assert (state.phase, state.reason) == (phase, reason)


def test_a_work_without_pods_is_over_once_all_its_objects_are_there() -> None:
    objects = [config_map("a"), config_map("b")]
    made = work("one", *objects)
    kept = Kept(work=replace(made, spec=replace(made.spec, pod_sets=())))

    def phase(*there: dict, **more: Any) -> str:
        found = WorkSeen(name="team.one", attempt=1, objects=dict(enumerate(there)), **more)
        return state_of(kept, found, Told(), find_kind=built_in().of, now=NOW).phase

    assert phase(objects[0]) == "Pending"
    assert phase(*objects, faults={1: "forbidden"}) == "Pending"
    assert phase(*objects) == "Succeeded"


def test_a_failure_names_pod_node_and_code() -> None:
    kept = Kept(work=work("one", job("one", pods=2), pods=2))
    found = seen(pod("Failed", **FATAL), conditions=[FAILED])
    state = state_of(kept, found, Told(), find_kind=built_in().of, now=NOW)
    assert (state.node, state.exit_code) == ("n2", 137)
    assert state.message == "pod p0 on n2: OOMKilled with code 137"


def test_an_earlier_attempt_is_told_as_such_until_it_has_ended() -> None:
    kept = Kept(work=work("one", attempt=2))
    state = state_of(kept, seen(pod("Ready")), Told(), find_kind=built_in().of, now=NOW)
    assert state.attempt == 1


def test_readiness_lasts_though_a_pod_be_started_again() -> None:
    kept = Kept(work=work("one", job("one", pods=2), pods=2))
    ready = seen(pod("Ready"), pod("Ready", 1))
    first = state_of(kept, ready, Told(), find_kind=built_in().of, now=NOW)
    again = seen(pod("Ready"), pod("Bound", 1, restarts=1))
    second = state_of(kept, again, Told(state=first), find_kind=built_in().of, now=NOW + 5)
    assert (second.phase, second.ready_at) == ("Running", first.ready_at)


def test_what_has_ended_stays_so_whatever_is_seen() -> None:
    ended = WorkState(work="team.one", attempt=1, phase="Succeeded")
    kept = Kept(work=work("one"), ended=ended)
    assert state_of(kept, seen(), Told(), find_kind=built_in().of, now=NOW) == ended


# Rules.


def condition(rule: ConditionRule, body: dict) -> tuple[str, str, str]:
    one = work("one", Manifest(object=body, conditions=(rule,)))
    looked = WorkSeen(name="team.one", attempt=1, objects={0: body})
    found = feedback_of(one, looked, Feedback(), now=NOW).manifests[0].conditions[-1]
    return found.status, found.reason, found.message


def cel(*expressions: str, **more: str) -> ConditionRule:
    return ConditionRule(condition="Good", type="Cel", expressions=expressions, **more)


WELL_KNOWN = ConditionRule(condition="Complete", type="WellKnown")
RULES = [
    ("all expressions hold", cel("object.data.a == '1'", "true"), ("True", "Evaluated", "")),
    ("one does not hold", cel("true", "object.data.a == '2'"), ("False", "Evaluated", "")),
    ("one is no expression", cel("object."), ("False", "ExpressionError", None)),
    ("one has no value", cel("object.data.zzz == '1'"), ("False", "ExpressionError", None)),
    ("one is not true or false", cel("object.data.a"), ("False", "ExpressionError", None)),
    (
        "the message is made from the object and the result",
        cel("true", message_expression="object.data.a + (result ? ' yes' : ' no')"),
        ("True", "Evaluated", "1 yes"),
    ),
    ("nothing is known of the kind", WELL_KNOWN, ("False", "Invalid", None)),
]


@pytest.mark.parametrize(
    ("rule", "wanted"), [case[1:] for case in RULES], ids=[case[0] for case in RULES]
)
def test_conditions_by_rules(rule: ConditionRule, wanted: tuple[str, str, str | None]) -> None:
    status, reason, message = condition(rule, config_map("settings", a="1"))
    assert (status, reason.removeprefix("ConditionRule")) == wanted[:2]
    assert message == wanted[2] or (wanted[2] is None and message)


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_job_is_complete_whether_it_succeeded_or_failed(kind: str) -> None:
    body = {**job("one"), "status": {"conditions": [{"type": kind, "status": "True"}]}}
    assert condition(WELL_KNOWN, body)[0] == "True"


def test_one_false_condition_makes_the_whole_false_and_progressing_is_the_reverse() -> None:
    def rules(text: str) -> tuple[ConditionRule, ...]:
        return tuple(
            ConditionRule(condition=name, type="Cel", expressions=(text,))
            for name in ("Good", "Progressing")
        )

    bodies = [config_map("a"), config_map("b")]
    one = work(
        "one",
        Manifest(object=bodies[0], conditions=rules("true")),
        Manifest(object=bodies[1], conditions=rules("false")),
    )
    looked = WorkSeen(name="team.one", attempt=1, objects=dict(enumerate(bodies)))
    joined = {c.type: c.status for c in feedback_of(one, looked, Feedback(), now=NOW).conditions}
    assert joined == {
        "Applied": "True",
        "Available": "True",
        "Good": "False",
        "Progressing": "True",
    }


def test_a_condition_keeps_its_time_while_it_holds() -> None:
    one = work("one", Manifest(object=config_map("a")))
    looked = WorkSeen(name="team.one", attempt=1, objects={0: config_map("a")})
    first = feedback_of(one, looked, Feedback(), now=NOW)
    second = feedback_of(one, looked, first, now=NOW + 60)
    assert second == first
    lost = feedback_of(one, WorkSeen(name="team.one", attempt=1), second, now=NOW + 120)
    assert lost.conditions[1].status == "False"
    assert lost.conditions[1].last_transition_time > first.conditions[1].last_transition_time


def test_values_have_their_types() -> None:
    paths = tuple(
        FeedbackPath(name=name, path=path)
        for name, path in (
            ("number", ".status.number"),
            ("text", ".status.text"),
            ("truth", ".status.truth"),
            ("list", ".status.list"),
            ("nothing", ".status.nothing"),
        )
    )
    body = {
        **service("web"),
        "status": {"number": 3, "text": "x", "truth": True, "list": [1, 2]},
    }
    one = work(
        "one", Manifest(object=body, feedback=(FeedbackRule(type="JsonPaths", paths=paths),))
    )
    looked = WorkSeen(name="team.one", attempt=1, objects={0: body})
    values = feedback_of(one, looked, Feedback(), now=NOW).manifests[0].feedback
    assert [(v.name, v.type, v.value) for v in values] == [
        ("number", "Integer", "3"),
        ("text", "String", "x"),
        ("truth", "Boolean", "true"),
        ("list", "Json", "[1,2]"),
    ]
