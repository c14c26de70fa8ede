"""Records the statuses that real controllers write, for the tests of kinds.

    python -m tests.kinds.record [WORD ...]      all scenarios, or those with a word in their file

Needs the programs of tests.kubernetes.binaries. Runs a whole control plane with a small kubelet,
plays each scenario, and writes statuses/<kind>/recorded-<name>.yaml. What is to be read from each
status is for a person to say: it is kept where the file had that status before (but for moments,
names and identities), and is `phase: unjudged`, which no test passes, where the status is new.
"""

from __future__ import annotations

import copy
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from fairway.client import Client
from tests.kinds import ray
from tests.kinds.operators import JOBSET, TRAINING, Operator, start
from tests.kinds.operators_recorded import ARGO, KUBERAY, LATER_TRAINING, LWS, MPI, TRAINER, VOLCANO
from tests.kinds.recorded import HERE, merged
from tests.kinds.scenarios import SCENARIOS
from tests.kinds.scenarios_of_operators import LEADER_WORKER_SETS, VOLCANO_JOBS, WORKFLOWS
from tests.kinds.scenarios_of_ray import RAY
from tests.kinds.scenarios_of_training import (
    JAX_JOBS,
    JOB_SETS,
    MPI_JOBS,
    OLDER_MPI_JOBS,
    TRAIN_JOBS,
    TRAININGS,
)
from tests.kinds.stage import Change, Json, Scenario, Stage
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.kubelet import ADDRESS, Kubelet

AT_A_TIME = 6
LOG_LENGTH_MAX = 6000
UNJUDGED = {"phase": "unjudged"}
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "MOMENT"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "IDENTITY"),
    # Suffixes of generated names; Kubernetes leaves out letters that could make words.
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}\b"), "-SUFFIX"),
    # The namespace is numbered by the scenario.
    (re.compile(r"-\d+/"), "-NUMBER/"),
    # How long a Volcano job ran, and how often its controller looked at it since.
    (re.compile(r'"runningDuration": "[^"]*"|"version": \d+'), "LOOK"),
)


def record(plane: control_plane.ControlPlane, scenarios: Sequence[Scenario], source: str) -> bool:
    """Plays scenarios and writes what was seen; tells whether all were played to their end."""
    is_whole = True
    with Client.connect(str(plane.kubeconfig)) as client, Kubelet(client) as kubelet:
        prepare(client, kubelet)
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            played = [
                threads.submit(_play, client, kubelet, each, number)
                for number, each in enumerate(scenarios)
            ]
            for scenario, each in zip(scenarios, played, strict=True):
                error = each.exception()
                if error is None:
                    _write(scenario, each.result(), source)
                is_whole = is_whole and error is None
                print(f"{scenario.file}: {error or len(each.result())}", flush=True)
    return is_whole


def prepare(client: Client, kubelet: Kubelet) -> None:
    """Nodes with GPUs, and volumes for those who claim them."""
    for number in range(1, 4):
        kubelet.add_node(f"gpu-node-{number}", accelerator="a100")
    for number in range(40):
        client.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"volume-{number}"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "100Gi"},
                    "storageClassName": "fast",
                    "hostPath": {"path": f"/volumes/{number}"},
                },
            }
        )


def _play(client: Client, kubelet: Kubelet, scenario: Scenario, number: int) -> list[Change]:
    documents = list(yaml.safe_load_all((HERE / "samples" / scenario.sample).read_text()))
    manifest = copy.deepcopy(documents[scenario.document])
    manifest["metadata"]["namespace"] = f"{manifest['metadata']['namespace']}-{number}"
    manifest["spec"] = merged(manifest["spec"], scenario.spec)
    namespace = manifest["metadata"]["namespace"]
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for item in scenario.before:
        client.create(merged(item, {"metadata": {"namespace": namespace}}))
    stage = Stage(client, kubelet, manifest)
    try:
        for act in scenario.acts:
            stage.play(act)
    finally:
        stage.close()
    return stage.changes


def _write(scenario: Scenario, changes: Sequence[Change], source: str) -> None:
    path = HERE / "statuses" / scenario.file
    path.parent.mkdir(parents=True, exist_ok=True)
    judged = _judged(path)
    steps, times, before = [], dict[str, int](), ""
    for change in changes:
        number = times.get(change.what, 0) + 1
        step: Json = {
            "what": change.what if number == 1 else f"{change.what} ({number})",
            "metadata": {"generation": change.generation},
            "spec": change.spec,
            "status": change.status,
        }
        key = _key(step)
        if key == before:  # it says again what it said
            continue
        before, times[change.what] = key, number
        step["reads"] = judged.get(key, UNJUDGED)
        steps.append({name: value for name, value in step.items() if value or name == "status"})
    whole: Json = {
        "recorded": source,
        "sample": scenario.sample,
        "document": scenario.document,
        "spec": scenario.spec,
        "steps": steps,
    }
    text = text_of({name: value for name, value in whole.items() if value or name != "spec"})
    path.write_text(text.replace(ray.address(), ADDRESS))


def text_of(value: Json) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, width=100)


class _Plain(yaml.SafeDumper):
    """Writes the same value twice rather than refer to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _judged(path: Path) -> dict[str, Json]:
    """What is read from each status that the file already had."""
    if not path.exists():
        return {}
    return {_key(step): step["reads"] for step in yaml.safe_load(path.read_text())["steps"]}


def _key(step: Json) -> str:
    """What makes a status this one, whenever it is recorded."""
    generation = step.get("metadata", {}).get("generation")
    text = json.dumps([generation, step.get("spec", {}), step["status"]], sort_keys=True)
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


RECORDINGS: tuple[tuple[Operator | None, tuple[Scenario, ...]], ...] = (
    (None, SCENARIOS),
    (JOBSET, JOB_SETS),
    (TRAINING, (*TRAININGS, *OLDER_MPI_JOBS)),
    (MPI, MPI_JOBS),
    (LATER_TRAINING, JAX_JOBS),
    (LWS, LEADER_WORKER_SETS),
    (VOLCANO, VOLCANO_JOBS),
    (TRAINER, TRAIN_JOBS),
    (ARGO, WORKFLOWS),
    (KUBERAY, RAY),
)


def main(words: Sequence[str]) -> None:
    for operator, scenarios in RECORDINGS:
        chosen = [
            scenario
            for scenario in scenarios
            if not words or any(word in scenario.file for word in words)
        ]
        source = f"Kubernetes {binaries.VERSION}"
        if not chosen:
            continue
        with (
            tempfile.TemporaryDirectory() as folder,
            control_plane.running(Path(folder), print, is_whole=True) as plane,
        ):
            if operator is not None:
                source = f"{operator.source} on {source}"
                with Client.connect(str(plane.kubeconfig)) as client:
                    start(plane, client, operator)
            if operator is KUBERAY:
                ray.start()
            if not record(plane, chosen, source) and operator is not None:
                print((plane.folder / f"{operator.name}.log").read_text()[-LOG_LENGTH_MAX:])


if __name__ == "__main__":
    main(sys.argv[1:])
