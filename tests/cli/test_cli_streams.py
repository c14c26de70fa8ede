"""Commands in pods and ports of pods, as people type them; pods are processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_outcome import Fairway

from fairway.app import Hub

ROOT = Path(__file__).parents[2]


@pytest.fixture
def running(busy: Fairway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fairway]:
    """A workload `train` that runs until the test ends, in the folder that it was started from."""
    monkeypatch.chdir(tmp_path)
    words = ("run", "-q", "research", "--name", "train", "--detach", "--", "sh", "-c")
    assert busy(*words, "echo begun; echo mine >note; sleep 300").code == 0
    done = busy("wait", "workload/train", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    assert done.code == 0, done.err
    yield busy
    busy("cancel", "train", "--yes")


def test_a_command_gives_its_output_and_its_exit_code(running: Fairway) -> None:
    outcome = running("exec", "train", "--", "sh", "-c", "cat note; echo oops >&2; exit 5")
    assert (outcome.code, outcome.out, outcome.err) == (5, "mine\n", "oops\n")


def test_options_behind_the_dashes_are_the_commands_own(running: Fairway) -> None:
    outcome = running("exec", "train", "--", "echo", "--tty=true", "-c", "x")
    assert (outcome.code, outcome.out) == (0, "--tty=true -c x\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("exec", "train"), "behind --", id="no command"),
        pytest.param(
            ("exec", "train", "--pod", "x", "--", "ls"), "pod x is not known", id="no pod"
        ),
        pytest.param(("exec", "train", "-c", "x", "--", "ls"), "no container x", id="no container"),
        pytest.param(("exec", "train", "--", "nothing"), "cannot run nothing", id="no program"),
        pytest.param(("exec", "nobody", "--", "ls"), '"nobody" not found', id="no workload"),
        pytest.param(
            ("exec", "train", "--cluster", "moon", "--", "ls"),
            "no stream of the agent of moon",
            id="no agent",
        ),
        pytest.param(("port-forward", "train"), "[LOCAL:]REMOTE", id="no port"),
        pytest.param(("port-forward", "train", "1:http"), "is not [LOCAL:]REMOTE", id="no number"),
        pytest.param(("port-forward", "train", "80:"), "no port of the pod", id="no remote port"),
        pytest.param(("port-forward", "train", ":99999"), "is not [LOCAL:]", id="no such number"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    words: tuple[str, ...], said: str, running: Fairway
) -> None:
    outcome = running(*words)
    assert outcome.code == 1
    assert said in outcome.err
    # A sandbox says for itself that a program is missing.
    lines = [line for line in outcome.err.splitlines() if not line.startswith(("See '", "bwrap:"))]
    assert len(lines) == 1


def test_a_workload_that_does_not_run_has_no_ports(busy: Fairway) -> None:
    assert busy("run", "-q", "research", "--name", "brief", "--", "true").code == 0
    outcome = busy("port-forward", "brief", "80")
    assert (outcome.code, outcome.err.startswith("error: brief succeeded")) == (1, True)


def test_the_standard_input_goes_along_and_ends(running: Fairway, busy_hub: Hub) -> None:
    where = running("get", "workload", "train", "-o", "jsonpath={.metadata.namespace}")
    namespace = where.out.strip()
    given = bytes(range(256)) * 1_000
    words = ("exec", "-it", "-n", namespace, "train", "--", "sha256sum")
    done = subprocess.run(
        [sys.executable, "-m", "fairway.cli.main", *words],
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "KUBECONFIG": str(busy_hub.kubeconfig), "PYTHONPATH": str(ROOT)},
    )
    wanted = subprocess.run(["sha256sum"], input=given, capture_output=True, check=True).stdout
    assert (done.returncode, done.stdout) == (0, wanted)
    assert b"no terminal" in done.stderr
