"""The next status of a rollout: forward, stopped and back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairway.api.rollout import approval_of, failure_of
from fairway.serving.rollout.advance import advance
from fairway.serving.rollout.allowance import unavailable_most
from fairway.serving.rollout.case import Answer, RolloutCase
from fairway.serving.rollout.gates import holds
from fairway.serving.rollout.history import marks_in_use, note_revision, prune_history
from tests.serving.rollout.services import NEW, NOW, OLD, Run, World, begun, case, place, spec

THREE = {"beijing": 4, "hangzhou": 3, "shanghai": 1}
CANARY = {"canary": {"percent": 10}, "maxUnavailable": 1}


def test_a_first_revision_is_everywhere_and_changes_nothing() -> None:
    world = World(dict(THREE))
    status = begun(spec(), world)
    assert (status.revision, status.stable, status.updated) == (1, OLD, 8)
    assert {cluster.mark for cluster in status.clusters} == {OLD}
    assert {cluster.allowance for cluster in status.clusters} == {0}


def test_a_good_revision_goes_out_and_becomes_the_stable_one() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 20}), World(dict(THREE)))
    run.until("Completed")
    assert run.phases == ["Progressing", "Soaking", "Progressing", "Soaking", "Completed"]
    assert set(run.marks().values()) == {NEW}
    assert (run.status.stable, run.status.stable_revision) == (NEW, 2)


def test_a_bad_canary_never_goes_past_its_batch_and_the_old_one_comes_back() -> None:
    run = Run(spec(strategy=CANARY), World(dict(THREE), is_good=lambda mark: mark == OLD))
    while run.status.phase != "RolledBack":
        run.step()
        assert {run.marks()["beijing"], run.marks()["hangzhou"]} == {OLD}
    assert run.lowest >= 7
    assert run.phases == ["Progressing", "RollingBack", "RolledBack"]
    assert run.status.history[-1].outcome == "ProgressDeadlineExceeded"


def test_a_bad_revision_is_not_tried_again_until_somebody_says_so() -> None:
    run = Run(spec(strategy=CANARY), World(dict(THREE), is_good=lambda mark: mark == OLD))
    run.until("RolledBack")
    for _ in range(100):
        run.step()
    assert run.status.phase == "RolledBack"
    run.world.is_good = lambda mark: True
    run.step(resumed=failure_of(run.status))
    run.until("Completed")
    assert set(run.marks().values()) == {NEW}


def test_a_bad_revision_stays_if_that_is_asked_for() -> None:
    asked = spec(strategy=CANARY, onFailure="Pause")
    run = Run(asked, World(dict(THREE), is_good=lambda mark: mark == OLD))
    run.until("Paused")
    assert run.marks() == {"beijing": OLD, "hangzhou": OLD, "shanghai": NEW}
    assert run.status.reason == "ProgressDeadlineExceeded"


def test_a_service_of_which_nothing_works_can_be_mended() -> None:
    run = Run(spec(strategy={"maxUnavailable": 1}), World(dict(THREE)))
    run.world.is_good = lambda mark: mark == NEW
    run.world.start()
    assert run.world.ready == 0
    run.until("Completed")


def test_a_revision_that_comes_and_goes_has_failed_in_the_end() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 30}), World(dict(THREE)))
    flips = 0
    while run.status.phase not in ("RollingBack", "RolledBack"):
        flips += 1
        is_up = flips % 3 == 0
        run.world.is_good = lambda mark, is_up=is_up: mark == OLD or is_up
        run.step()
        assert run.marks()["beijing"] == OLD
        assert flips < 100
    assert run.status.reason == "ProgressDeadlineExceeded"


def test_a_batch_that_was_well_for_long_has_all_its_time_again() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 300}), World(dict(THREE)))
    run.until("Soaking")
    for _ in range(20):
        run.step()
    run.world.is_good = lambda mark: mark == OLD
    run.world.start()
    for _ in range(11):
        run.step()
        assert run.status.phase == "Progressing"
    run.world.is_good = lambda mark: True
    run.until("Completed")


def test_a_way_back_that_does_not_end_is_told() -> None:
    run = Run(spec(strategy=CANARY), World(dict(THREE), is_good=lambda mark: False))
    run.until("Failed")
    assert run.status.reason == "RollbackStuck"


def test_another_template_begins_anew_with_the_first_batch() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 10}), World(dict(THREE)))
    run.until("Soaking")
    run.step(11)
    run.step()
    assert run.status.current_batch == 1
    history = note_revision(run.status.history, "newer", now=run.now, is_unmarked=False)
    run.status = replace(run.status, history=history)
    run.step()
    assert (run.status.current_batch, run.status.revision) == (0, 3)
    run.until("Completed")
    assert set(run.marks().values()) == {"newer"}
    assert [item.outcome for item in run.status.history] == ["Completed", "Superseded", "Completed"]


def test_a_wished_way_back_has_no_batches_and_is_not_soaked() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 600}), World(dict(THREE)))
    run.until("Soaking")
    history = note_revision(run.status.history, OLD, now=run.now, is_unmarked=False)
    run.status = replace(run.status, history=history)
    run.until("Completed", steps=10)
    assert set(run.marks().values()) == {OLD}
    assert (run.status.revision, run.status.stable_revision) == (3, 3)


def test_what_is_paused_stays_and_its_time_does_not_run() -> None:
    run = Run(spec(strategy=CANARY), World(dict(THREE)))
    run.step()
    going, run.spec = run.spec, spec(strategy=CANARY, paused=True)
    before = run.marks()
    for _ in range(50):
        run.step()
    assert (run.status.phase, run.marks()) == ("Paused", before)
    run.spec = going
    run.until("Completed")


@pytest.mark.parametrize(
    ("approval", "expected"), [("None", 0), ("AfterCanary", 1), ("EachBatch", 2)]
)
def test_batches_wait_for_approvals(approval: str, expected: int) -> None:
    strategy = {**CANARY, "batches": [{"percent": 40}, {"percent": 70}], "approval": approval}
    run = Run(spec(strategy=strategy), World(dict(THREE)))
    waited = 0
    for _ in range(400):
        run.step(approved="")
        if run.status.phase == "AwaitingApproval":
            waited += 1
            run.step(600)
            assert run.status.phase == "AwaitingApproval"
            run.step(approved=approval_of(run.status))
        if run.status.phase == "Completed":
            break
    assert (run.status.phase, waited) == ("Completed", expected)


def test_an_approval_of_another_batch_or_revision_is_of_no_account() -> None:
    run = Run(spec(strategy={**CANARY, "approval": "EachBatch"}), World(dict(THREE)))
    run.until("AwaitingApproval")
    for approved in ("2.1", "1.0", "", "2"):
        run.step(approved=approved)
        assert run.status.phase == "AwaitingApproval"


def test_a_silent_cluster_is_told_and_not_waited_for() -> None:
    places = (
        place("beijing", (OLD, 4, 4), replicas=4),
        place("hangzhou", (OLD, 3, 3), replicas=3, is_heard=False),
    )
    asked = spec(strategy={"maxUnavailable": 4})
    status = begun(asked, World({"beijing": 4, "hangzhou": 3}))
    found = advance(
        RolloutCase(spec=asked, status=status, now=NOW, target=NEW, replicas=7, places=places)
    ).status
    told = {cluster.cluster: cluster for cluster in found.clusters}
    assert told["hangzhou"].mark == NEW
    assert told["hangzhou"].is_unheard
    updated = (place("beijing", (NEW, 4, 4), replicas=4), places[1])
    done = advance(
        RolloutCase(spec=asked, status=found, now=NOW + 5, target=NEW, replicas=7, places=updated)
    ).status
    assert done.phase == "Completed"


def test_a_revision_is_not_to_blame_if_too_few_others_are_ready() -> None:
    places = (
        place("beijing", (OLD, 4, 4), replicas=4),
        place("hangzhou", (OLD, 3, 0), replicas=3),
    )
    asked = spec(strategy={"maxUnavailable": 1, "batches": [{"clusters": ["beijing"]}]})
    status = begun(asked, World({"beijing": 4, "hangzhou": 3}))
    for seconds in (0, 100, 10_000):
        now = NOW + seconds
        waiting = RolloutCase(
            spec=asked, status=status, now=now, target=NEW, replicas=7, places=places
        )
        status = advance(waiting).status
        assert (status.phase, status.reason) == ("Progressing", "WaitsForReplicas")
        assert {cluster.mark for cluster in status.clusters} == {OLD}


def test_a_cluster_that_comes_later_begins_with_what_is_right_for_its_batch() -> None:
    run = Run(spec(strategy={**CANARY, "approval": "EachBatch"}), World(dict(THREE)))
    run.until("AwaitingApproval")
    run.world.replicas["wuhan"] = 2
    run.world.pods["wuhan"] = []
    run.step()
    assert run.marks()["wuhan"] == OLD


GATE = {"name": "errors", "query": "q", "condition": "< 0.01", "intervalSeconds": 10}


def answer(run: Run, value: float | None) -> tuple[Answer, ...]:
    return (Answer(gate="errors", value=value, at=run.now),)


def test_a_batch_passes_its_gate_after_enough_good_answers() -> None:
    gates = [{**GATE, "successes": 3}]
    run = Run(spec(strategy={**CANARY, "gates": gates}), World(dict(THREE)))
    run.until("Soaking")
    for _ in range(2):
        run.step(answers=answer(run, 0.001))
        assert (run.status.phase, run.status.current_batch) == ("Soaking", 0)
    run.step(answers=answer(run, 0.001))
    assert run.status.current_batch == 1


def test_a_gate_fails_a_batch_past_its_limit() -> None:
    gates = [{**GATE, "successes": 9, "failureLimit": 1}]
    run = Run(spec(strategy={**CANARY, "gates": gates}), World(dict(THREE)))
    run.until("Soaking")
    run.step(answers=answer(run, 0.5))
    assert run.status.phase == "Soaking"
    run.step(answers=answer(run, 0.5))
    run.until("RolledBack")
    assert (run.status.reason, run.status.message) == (
        "GateFailed",
        "gate errors: 0.5 is not < 0.01",
    )


def test_no_number_is_neither_good_nor_bad_and_ends_in_time() -> None:
    run = Run(spec(strategy={**CANARY, "gates": [GATE]}), World(dict(THREE)))
    run.until("Soaking")
    for _ in range(11):
        run.step(answers=answer(run, None))
        assert run.status.phase == "Soaking"
    run.until("RolledBack")
    assert run.status.reason == "GateInconclusive"


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("< 0.01", 0.009, True),
        ("< 0.01", 0.01, False),
        ("<= 0.01", 0.01, True),
        ("> -1", 0, True),
        (">=5", 5, True),
        ("== 3", 3, True),
        ("!= 3", 3, False),
    ],
)
def test_conditions(condition: str, value: float, expected: bool) -> None:
    assert holds(condition, value) is expected


@pytest.mark.parametrize(
    ("strategy", "replicas", "expected"),
    [
        ({}, 8, 2),
        ({}, 3, 1),
        ({"maxUnavailable": 0}, 8, 1),
        ({"maxUnavailable": 0, "maxSurge": 1}, 8, 0),
        ({"maxUnavailable": 3}, 8, 3),
        ({"maxUnavailablePercent": 0}, 8, 1),
    ],
)
def test_how_many_may_be_lacking(strategy: dict[str, int], replicas: int, expected: int) -> None:
    assert unavailable_most(spec(strategy=strategy).strategy, replicas) == expected


def test_revisions_in_use_are_kept_whatever_the_limit() -> None:
    history = ()
    for number in range(6):
        history = note_revision(history, f"m{number}", now=NOW, is_unmarked=False)
    assert [item.revision for item in prune_history(history, limit=1, in_use={"m0", "m5"})] == [
        1,
        5,
        6,
    ]
    again = note_revision(history, "m2", now=NOW, is_unmarked=False)
    assert [item.revision for item in again] == [1, 2, 4, 5, 6, 7]


def test_looking_again_at_the_same_moment_changes_nothing() -> None:
    run = Run(spec(strategy={**CANARY, "soakSeconds": 20}), World(dict(THREE)))
    for _ in range(30):
        asked = case(run.spec, run.status, run.world, run.now)
        once = advance(asked).status
        assert advance(case(run.spec, once, run.world, run.now)).status == once
        run.step()
    assert marks_in_use(run.status) == {NEW}
