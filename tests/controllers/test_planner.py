"""The planner's process answers each who asks, whatever becomes of those who asked before."""

from __future__ import annotations

import asyncio
import io
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from fairway.api.discretion import ANOTHER, everywhere
from fairway.clock import VirtualClock, micro_timestamp
from fairway.controllers.scheduling.planner import PlannerFault, ProcessPlanner
from fairway.controllers.scheduling.planner_process import serve
from fairway.controllers.scheduling.planner_state import Fed, Planned, Planning
from fairway.controllers.scheduling.questions import Explain, Shadow, Standings
from fairway.core.modes import gang
from fairway.core.snapshot import Snapshot
from fairway.store.embedded.store import EmbeddedStore
from fairway.view.view import View
from tests import builders
from tests.controllers.fleets import running
from tests.controllers.test_running import FLEET, job

NOW = 1_800_000_000.0
GPU = {"name": "main", "count": 1, "requests": {"gpu": "1"}}
QUESTION = pickle.dumps(("ask", (Standings(), NOW)))


async def test_who_is_cancelled_while_asking_leaves_no_answer_for_the_next() -> None:
    planner = ProcessPlanner()
    try:
        await planner.ask(Standings(), NOW)
        for _ in range(5):
            asking = asyncio.ensure_future(planner.ask(Standings(), NOW))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
            assert isinstance(await planner.plan(NOW, 10), Planned)
    finally:
        await planner.close()


async def test_a_fault_in_the_process_is_told_with_its_place_and_the_process_lives_on() -> None:
    planner = ProcessPlanner()
    try:
        with pytest.raises(PlannerFault, match="in feed"):
            await planner.feed([Fed(b"not JSON")])
        assert await planner.ask(Explain("default/none"), NOW) is None
    finally:
        await planner.close()


def test_a_fault_that_cannot_be_sent_is_told_as_text() -> None:
    class Broken(Planning):
        def ask(self, *_: object) -> NoReturn:
            raise Unsendable(1, 2)

    body = pickle.dumps(("ask", (Shadow(), NOW)))
    calls = io.BytesIO(struct.pack("<I", len(body)) + body)
    answers = io.BytesIO()
    serve(calls, answers, Broken())
    is_fault, text = pickle.loads(answers.getvalue()[4:])
    assert is_fault
    assert "Unsendable" in text


class Unsendable(Exception):
    """One that pickle writes and cannot read."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


@pytest.mark.parametrize(
    ("sent", "is_read"),
    [
        pytest.param(struct.pack("<I", 1_000) + b"half", True, id="amid a call"),
        pytest.param(
            struct.pack("<I", len(QUESTION)) + QUESTION, False, id="before it reads the answer"
        ),
    ],
)
def test_the_process_of_a_hub_that_is_killed_ends_without_a_word(
    sent: bytes, is_read: bool
) -> None:
    program = "from fairway.controllers.scheduling.planner_process import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if not is_read:
            process.stdout.close()
        process.stdin.write(sent)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


async def test_who_asks_is_not_told_the_names_of_workloads_in_other_namespaces(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    theirs = job("secret-project", pods=2).replace("namespace: default", "namespace: theirs")
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n"
    async with running(store, clock, tmp_path) as fleet:
        await fleet.apply(f"{FLEET}---\n{namespace}---\n{theirs}")
        await clock.advance(30)
        await fleet.apply(job("train", pods=2))
        await clock.advance(1)
        found = await fleet.plane.explain("default", "train")
        assert found is not None
        assert found["state"] == "Waits"
        assert "secret-project" not in str(found)
        assert found["expected"]["because"] == ANOTHER
        told = await fleet.plane.explain("default", "train", everywhere)
        assert told is not None
        assert told["expected"]["because"] == "theirs/secret-project"


def _waiting(name: str, **status: object) -> Fed:
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "1"},
        "spec": {"queue": "research", "podSets": [GPU]},
        "status": {"phase": "Waiting", **status},
    }
    return Fed(msgspec.json.encode(body))


def _backing_off(name: str, seconds: float) -> Fed:
    return _waiting(name, requeue={"count": 1, "notBefore": micro_timestamp(NOW + seconds)})


def _fed() -> Planning:
    queue = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "research"},
        "spec": {
            "uncovered": "Unlimited",
            "resourceGroups": [{"resources": ["gpu"], "flavors": [{"name": "h100"}]}],
        },
    }
    flavor = {"apiVersion": queue["apiVersion"], "kind": "Flavor", "metadata": {"name": "h100"}}
    planning = Planning()
    planning.feed(Fed(msgspec.json.encode(item)) for item in (flavor, queue))
    planning.feed(_waiting(f"waits-{number}") for number in range(20))
    planning.feed([_backing_off("first", 10), _backing_off("second", 10.1)])
    return planning


def test_when_a_back_off_ends_nobody_else_is_looked_at() -> None:
    planning = _fed()
    assert planning.plan(NOW, 100).waiting == 22
    assert planning.plan(NOW + 10, 100).waiting == 1


def test_back_offs_that_end_within_a_moment_end_together_and_none_too_early() -> None:
    planning = _fed()
    wake_at = planning.plan(NOW, 100).wake_at
    assert wake_at is not None
    assert NOW + 10 <= wake_at <= NOW + 10.25
    assert planning.plan(NOW + 10.25, 100).waiting == 2


def test_everybody_who_waits_is_looked_at_once_in_a_while() -> None:
    planning = _fed()
    planning.plan(NOW, 100)
    planning.plan(NOW + 11, 100)
    assert planning.plan(NOW + 29, 100).wake_at == NOW + 30
    assert planning.plan(NOW + 30, 100).waiting == 22


def test_what_decides_nothing_is_read_with_the_next_that_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An idle hub hears from its agents all the time, and each word was read at once."""
    planning, taken = _fed(), []
    snapshot = View.snapshot

    def counted(view: View, now: float) -> Snapshot:
        taken.append(now)
        return snapshot(view, now)

    monkeypatch.setattr(View, "snapshot", counted)
    planning.feed([_report(1)])
    assert planning.plan(NOW, 100).is_done
    taken.clear()
    planning.feed([_report(2)])
    assert planning.plan(NOW + 2, 10).set_aside == ()
    assert taken == []
    planning.feed([_waiting("late")])
    planning.plan(NOW + 3, 10)
    assert taken == [NOW + 3]


def _report(sequence: int) -> Fed:
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": "east-0", "resourceVersion": str(sequence)},
        "spec": {
            "cluster": "east",
            "agentEpoch": 1,
            "sequence": sequence,
            "seenAt": micro_timestamp(NOW + sequence),
        },
    }
    return Fed(msgspec.json.encode(body))


def _small(check_seconds: float) -> Planning:
    """A queue of one GPU, of which everybody wants two."""
    greedy = builders.workload("greedy", "q", count=2)
    objects = [builders.flavor("h100"), builders.queue("q", 1), greedy]
    for number, item in enumerate(objects):
        item["metadata"]["resourceVersion"] = str(number)
    planning = Planning(check_seconds=check_seconds)
    planning.feed(Fed(msgspec.json.encode(item)) for item in objects)
    return planning


def test_a_plan_that_breaks_a_rule_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "quota_reason", lambda *_: None)  # a bug in the core
    planned = _small(check_seconds=0).plan(builders.NOW, 10)
    assert [step.workload for step in planned.steps] == ["team/greedy"]
    assert planned.faults is not None
    assert "greedy" in planned.faults[0]


def test_a_good_plan_breaks_no_rule() -> None:
    planning = _small(check_seconds=0)
    modest = builders.workload("modest", "q", count=1)
    modest["metadata"]["resourceVersion"] = "9"
    planning.feed([Fed(msgspec.json.encode(modest))])
    planned = planning.plan(builders.NOW, 10)
    assert [step.workload for step in planned.steps] == ["team/modest"]
    assert planned.faults == ()


def test_a_plan_is_checked_from_time_to_time() -> None:
    planning, checked = _small(check_seconds=60), []
    for number in range(7):
        name = f"w{number}"
        item = builders.workload(name, "q", count=1)
        item["metadata"]["resourceVersion"] = "9"
        planning.feed([Fed(msgspec.json.encode(item))])
        planned = planning.plan(builders.NOW + 20 * number, 10)
        assert planned.steps
        checked.append(planned.faults is not None)
        planning.feed([Fed(msgspec.json.encode(item), is_removed=True)])
    assert checked == [True, False, False, True, False, False, True]
