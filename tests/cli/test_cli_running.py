"""Submitting, running, watching and stopping workloads, with real processes on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway
from manifests_for_tests import job

from fairway.app import Hub
from fairway.client import Client
from tests.waiting import seen_at_last


def test_run_shows_the_output_and_returns_the_exit_code_of_the_program(busy: Fairway) -> None:
    outcome = busy("run", "-q", "research", "--env", "WHO=you", "sh", "-c", "echo hi $WHO; exit 3")
    assert (outcome.code, outcome.out) == (3, "hi you\n")
    assert "failed with exit code 3" in outcome.err


def test_workers_find_each_other_by_their_environment(busy: Fairway) -> None:
    script = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"
    outcome = busy(
        "run", "-q", "research", "--workers=2", "--name=pair", "--quiet", "--", "sh", "-c", script
    )
    assert outcome.code == 0, outcome.err
    assert sorted(outcome.out.splitlines()) == [
        "[pair-0] 0 of 2 at 127.0.0.1",
        "[pair-1] 1 of 2 at 127.0.0.1",
    ]
    assert outcome.err == ""


def test_options_behind_the_command_are_the_commands_own(busy: Fairway) -> None:
    outcome = busy("run", "-q", "research", "--quiet", "echo", "--detach=true", "-n", "x")
    assert outcome.out == "--detach=true -n x\n"


def test_a_native_object_is_submitted_as_itself_and_waited_for(
    busy: Fairway, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(job("train", "echo done", pods=2))
    outcome = busy("submit", str(file), "--queue", "research", "--follow")
    assert outcome.code == 0, outcome.err
    first, *lines = outcome.out.splitlines()
    assert first == "job.batch/train submitted to queue research, as workload job-train"
    assert sorted(lines) == ["[train-0] done", "[train-1] done"]
    assert busy("logs", "job/train", "--pod", "train-1").out == "done\n"
    assert busy("logs", "train", "--first-pod").out == "done\n"
    pods = busy("pods", "job/train", "--no-headers").out.splitlines()
    assert [pod.split()[:4] for pod in pods] == [
        ["here", "train-0", "Succeeded", "0"],
        ["here", "train-1", "Succeeded", "0"],
    ]
    again = busy("submit", str(file), "--queue", "research")
    assert again.code == 1
    assert "delete it first (`fairway delete job/train`)" in again.err


def test_a_kind_that_the_hub_lacks_is_wrapped_in_a_workload(busy: Fairway) -> None:
    manifest = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: net}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers: [{name: pytorch, image: none, command: [sh, -c, "echo $RANK"]}]
"""
    outcome = busy("submit", "-", "-q", "research", "--priority", "7", "--wait", stdin=manifest)
    assert outcome.code == 0, outcome.err
    assert outcome.out == "workload.fairway.dev/pytorchjob-net submitted to queue research\n"
    assert busy("logs", "pytorchjob/net").out == "0\n"
    shown = busy("get", "wl", "pytorchjob-net", "-o", "jsonpath={.spec.priority} {.status.phase}")
    assert shown.out.strip() == "7 Succeeded"


def test_a_wait_that_takes_too_long_has_an_exit_code_of_its_own(busy: Fairway) -> None:
    outcome = busy(
        "submit", "-", "-q", "research", "--wait", "--timeout=1s", stdin=job("slow", "sleep 3600")
    )
    assert outcome.code == 124
    assert "timed out; it goes on by itself" in outcome.err


def test_a_template_that_its_cluster_refuses_is_shown_by_get_and_why(
    busy: Fairway, tmp_path: Path
) -> None:
    manifest = yaml.safe_load(job("odd", "true"))
    manifest["spec"]["managedBy"] = "example.com/another"
    workload = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "odd"},
        "spec": {"queue": "research", "template": {"manifests": [manifest]}},
    }
    busy("apply", "-f", "-", stdin=json.dumps(workload))
    words = ("get", "workload", "odd", "--no-headers")
    seen_at_last(
        lambda: busy(*words).out, lambda row: "Waiting" in row and "TemplateRefused" in row, "that"
    )
    said = "here refused its template: manifest 0: spec.managedBy: example.com/another runs it"
    assert said in busy("why", "odd").out


def test_why_history_and_queue_tell_of_one_that_waits(busy: Fairway) -> None:
    busy("run", "-d", "-q", "research", "--gpus=3", "--name=first", "--", "sleep", "3600")
    busy("wait", "wl/first", "--for=jsonpath={.status.phase}=Running", "--timeout=120s")
    made = busy("run", "-d", "-q", "research", "--gpus=4", "--name=second", "--", "true")
    assert made.out == "workload.fairway.dev/second\n"
    told = busy("why", "second").out
    assert told.startswith("second waits in queue research.\n\n  Needs     4 × any\n")  # noqa: RUF001 - as it is printed
    assert "queue research needs quota for 3 more GPUs" in told
    assert busy("explain", "workload/second").out.splitlines()[0] == told.splitlines()[0]
    assert json.loads(busy("why", "second", "-o", "json").out)["state"] == "Waits"
    assert re.match(r"first runs in here for \d+s, 1 of 1 pod ready", busy("why", "first").out)
    row = busy("queue", "research", "--no-headers").out.splitlines()[0].split()
    assert row[:7] == ["research", "1", "1", "0.00", "any", "nvidia.com/gpu", "4"]
    decided = busy("history", "first").out
    assert re.search(r"Admit +busy-\d+/first +here +1 pod on any", decided)
    assert busy("cancel", "first").out == "workload.fairway.dev/first cancelled\n"
    done = busy("wait", "wl/second", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")
    assert done.code == 0
    attempts = busy("history", "first", "-o", "json")
    assert json.loads(attempts.out)["attempts"][0]["reason"] == "Cancelled"


def test_a_suspended_workload_gives_back_what_it_holds_and_goes_on_later(busy: Fairway) -> None:
    busy("run", "-d", "-q", "research", "--name=naps", "--", "sleep", "3600")
    running = ["wait", "wl/naps", "--for=jsonpath={.status.phase}=Running", "--timeout=120s"]
    assert busy(*running).code == 0
    assert busy("suspend", "naps").out == "workload.fairway.dev/naps suspended\n"
    assert busy("suspend", "naps").out == "workload.fairway.dev/naps already suspended\n"
    held = busy("wait", "wl/naps", "--for=jsonpath={.status.phase}=Held", "--timeout=120s")
    assert held.code == 0
    assert busy("resume", "naps").out == "workload.fairway.dev/naps resumed\n"
    assert busy(*running).code == 0
    assert "went on" in busy("history", "naps").out


def test_draining_a_cluster_waits_until_nothing_is_left_there(busy: Fairway) -> None:
    busy("run", "-d", "-q", "research", "--name=moves", "--", "sleep", "3600")
    busy("wait", "wl/moves", "--for=jsonpath={.status.phase}=Running", "--timeout=120s")
    try:
        drained = busy("drain", "here", "--timeout=120s")
        assert (drained.code, drained.out) == (0, "cluster.fairway.dev/here drained\n")
        assert busy("get", "wl", "moves", "-o", "jsonpath={.status.claim}").out.strip() == ""
    finally:
        assert busy("uncordon", "here").out == "cluster.fairway.dev/here uncordoned\n"
        ready = "--for=jsonpath={.status.phase}=Ready"
        assert busy("wait", "cluster/here", ready, "--timeout=120s").code == 0


def test_recorded_decisions_come_out_the_same_again(
    busy: Fairway, busy_hub: Hub, busy_client: Client, tmp_path: Path
) -> None:
    busy("run", "-q", "research", "--", "true")
    folder = busy_hub.kubeconfig.parent
    replayed = busy("snapshot", "replay", str(folder))
    assert replayed.code == 0, replayed.out
    assert re.search(r"\d+ plans with \d+ decisions made again, all the same", replayed.out)
    file = tmp_path / "fleet.json"
    assert busy("snapshot", "dump", "-o", str(file)).code == 0
    taken = json.loads(file.read_text())["metadata"]["annotations"]["fairway.dev/now"]
    planned = json.loads(busy("plan", "-f", str(file), "-o", "json").out)
    assert planned["now"] == pytest.approx(float(taken))


def test_top_looks_once_into_a_pipe(busy: Fairway) -> None:
    lines = busy("top").out.splitlines()
    assert re.match(r"Fleet Running   \d+ running, \d+ starting, \d+ waiting", lines[0])
    assert lines[2].split()[:4] == ["CLUSTER", "STATE", "FLAVOR", "RESOURCE"]
    assert lines[3].split()[:6] == ["here", "Ready", "any", "nvidia.com/gpu", "1", "4"]
    shown = json.loads(busy("top", "clusters", "-o", "json").out)
    assert shown["clusters"][0]["rooms"][0]["total"] == "4"


def test_logs_of_one_that_never_ran_say_so(busy: Fairway) -> None:
    busy("run", "-d", "-q", "research", "--gpus=90", "--name=huge", "--", "true")
    outcome = busy("logs", "huge")
    assert (outcome.code, outcome.err) == (1, "error: huge has not run anywhere yet\n")


SEVERAL = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  taints: [{key: far, effect: NoSchedule}]
  simulated: {nodePools: [{name: a, count: 1, shape: {cpu: "1", memory: 1Gi, pods: 9}}]}
---
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: west}
spec:
  taints: [{key: far, effect: NoSchedule}]
  simulated: {nodePools: [{name: a, count: 1, shape: {cpu: "1", memory: 1Gi, pods: 9}}]}
---
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: far}
spec:
  tolerations: [{key: far, operator: Exists}]
  selector: {names: [east, west]}
---
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: sweep}
spec:
  queue: spare
  policy: far
  mode: Independent
  tasks: {count: 2}
  runSeconds: {estimate: 3600}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: sweep}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]
"""


def test_logs_of_several_clusters_come_from_all_and_say_from_where(
    busy: Fairway, busy_client: Client
) -> None:
    try:
        assert busy("apply", "-f", "-", stdin=SEVERAL).code == 0
        runs = ("--for", "jsonpath={.status.phase}=Running", "--timeout", "120s")
        assert busy("wait", "workload/sweep", *runs).code == 0
        seen_at_last(
            lambda: {line.partition("] ")[0] for line in busy("logs", "sweep").out.splitlines()},
            lambda prefixes: prefixes == {"[east/sweep-0-0", "[west/sweep-1-0"},
            "lines of both clusters",
        )
        assert busy("logs", "sweep", "--pod", "sweep-1-0").out
    finally:
        for name in ("east", "west"):
            busy_client.delete("clusters.fairway.dev", name)
