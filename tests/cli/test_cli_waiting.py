"""`fairway wait`, and watching with `-w`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cli_outcome import Fairway
from manifests_for_tests import GADGETS, config_map, gadget

from fairway.app import Hub
from fairway.cli.conditions import Goal, Vanished
from fairway.cli.wait import parse_goal
from fairway.client import Client
from tests.waiting import PATIENCE_SECONDS


def with_status(generation: int = 1, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "generation": generation}, "status": status}


def condition(value: str, observed: int | None = None) -> dict[str, Any]:
    seen = {} if observed is None else {"observedGeneration": observed}
    return {"type": "Ready", "status": value, **seen}


@pytest.mark.parametrize(
    ("text", "obj", "reached"),
    [
        pytest.param("condition=Ready", with_status(), False, id="no condition yet"),
        pytest.param(
            "condition=ready", with_status(conditions=[condition("True")]), True, id="it holds"
        ),
        pytest.param(
            "condition=Ready", with_status(conditions=[condition("False")]), False, id="it does not"
        ),
        pytest.param(
            "condition=Ready=False",
            with_status(conditions=[condition("False")]),
            True,
            id="it is to be false, and is",
        ),
        pytest.param(
            "condition=Ready",
            with_status(generation=2, conditions=[condition("True", observed=1)]),
            False,
            id="it speaks of an older specification",
        ),
        pytest.param(
            "jsonpath={.status.phase}=Running", with_status(phase="Running"), True, id="a value"
        ),
        pytest.param("jsonpath=.status.count=3", with_status(count=3), True, id="a number"),
        pytest.param("jsonpath={.status.phase}", with_status(), False, id="no value at all"),
        pytest.param(
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
            with_status(conditions=[condition("True")]),
            True,
            id="a value by a filter with an equal sign",
        ),
        pytest.param("create", None, False, id="not created"),
        pytest.param("create", with_status(), True, id="created"),
        pytest.param("delete", with_status(), False, id="not deleted"),
        pytest.param("delete", None, True, id="deleted"),
    ],
)
def test_a_goal_is_reached(text: str, obj: dict[str, Any] | None, reached: bool) -> None:
    goal: Goal = parse_goal(text)
    assert goal.is_reached(obj) is reached


def test_a_condition_of_nothing_is_never_reached() -> None:
    with pytest.raises(Vanished):
        parse_goal("condition=Ready").is_reached(None)


def test_wait_returns_when_the_condition_comes(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    fairway("apply", "-f", "-", stdin=GADGETS + "---" + gadget("a"))
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    change = threading.Timer(
        0.2, client.patch, ["gd", "a", status], {"namespace": namespace, "subresource": "status"}
    )
    change.start()
    outcome = fairway("wait", "gd/a", "--for=condition=Ready", "--timeout=120s")
    change.join()
    assert (outcome.code, outcome.out) == (0, "gadget.example.test/a condition met\n")


def test_wait_gives_up_in_time_and_says_on_what(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=GADGETS + "---" + gadget("a"))
    late = fairway("wait", "gd", "a", "--for=condition=Ready", "--timeout=50ms")
    assert late.code == 1
    assert late.err == "error: timed out waiting for the condition on gadgets.example.test/a\n"
    assert fairway("wait", "gd", "a", "--for=condition=Ready", "--timeout=0").code == 1
    missing = fairway("wait", "gd/b", "--for=condition=Ready")
    assert (missing.code, "NotFound" in missing.err) == (1, True)
    assert fairway("wait", "gd/b", "--for=delete").code == 0
    assert fairway("wait", "gd/a", "--for=nonsense").code == 1


@pytest.fixture
def watching(hub: Hub, namespace: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "KUBECONFIG": str(hub.kubeconfig), "PYTHONUNBUFFERED": "1"}
    words = ["get", "configmaps", "-w", "-n", namespace]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairway.cli.main", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_a_watch_shows_changes_until_it_is_interrupted(
    fairway: Fairway, watching: subprocess.Popen[str]
) -> None:
    assert watching.stdout is not None
    assert watching.stderr is not None
    fairway("apply", "-f", "-", stdin=config_map("first"))
    assert watching.stdout.readline().split() == ["NAME", "DATA", "AGE"]
    assert watching.stdout.readline().split()[:2] == ["first", "1"]
    fairway("apply", "-f", "-", stdin=config_map("second"))
    assert watching.stdout.readline().split()[:2] == ["second", "1"]
    watching.send_signal(signal.SIGINT)
    assert watching.wait(PATIENCE_SECONDS) == 130
    assert watching.stderr.read().strip() == ""
