"""A user's own kind, by the rule in examples/fleet."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from fairway.kinds.interface import PodState
from fairway.kinds.rules import kind_of
from tests.kinds.rules.test_loading import SWEEP

KIND = kind_of(SWEEP)


def sweep(**spec: Any) -> dict[str, Any]:
    container = {
        "name": "trial",
        "image": "example.com/trial:1",
        "resources": {"requests": {"cpu": "2"}},
    }
    return {
        "apiVersion": "sweeps.example.com/v1",
        "kind": "Sweep",
        "metadata": {"name": "lr", "generation": 2},
        "spec": {"trials": 3, "trial": {"spec": {"containers": [container]}}, **spec},
    }


def states(*phases: Any) -> list[PodState]:
    return [
        PodState(name=f"lr-trial-{n}", pod_set="trial", index=n, phase=phase, started_at=100.0)
        for n, phase in enumerate(phases)
    ]


def test_its_pods_are_as_the_rule_says() -> None:
    (pod_set,) = KIND.pod_sets(sweep(leastTrials=2))
    assert (pod_set.name, pod_set.count, pod_set.least_count) == ("trial", 3, 2)
    assert {key: str(request) for key, request in pod_set.requests.items()} == {"cpu": "2"}
    last = KIND.pods(sweep())[-1]
    variables = {
        variable["name"]: variable["value"] for variable in last.spec["containers"][0]["env"]
    }
    assert last.name == "lr-trial-2"
    assert last.labels == {"sweeps.example.com/name": "lr"}
    assert (variables["TRIAL"], variables["TRIALS"]) == ("2", "3")
    assert json.loads(variables["SWEEP_CONFIG"]) == {
        "name": "lr",
        "trial": 2,
        "peers": ["lr-trial-0", "lr-trial-1", "lr-trial-2"],
    }


def test_a_variable_that_a_user_wrote_is_kept() -> None:
    manifest = sweep()
    own = [{"name": "TRIAL", "value": "mine"}]
    manifest["spec"]["trial"]["spec"]["containers"][0]["env"] = own
    (first, *_) = KIND.pods(manifest)
    assert first.spec["containers"][0]["env"][0] == {"name": "TRIAL", "value": "mine"}
    assert [variable["name"] for variable in first.spec["containers"][0]["env"]].count("TRIAL") == 1


def test_without_a_least_number_all_are_needed() -> None:
    assert KIND.pod_sets(sweep())[0].least_count is None


WRONG = {
    "no role": ({"spec": None}, ["spec: must be a map"]),
    "no spec": ({}, ["spec: is required"]),
    "too many": ({"spec": {"trials": 2000}}, ["spec.trials: at most 1000 trials"]),
    "no number": (
        {"spec": {"trials": "three"}},
        ["spec.trials: must be a whole number, zero or more"],
    ),
    "no template": ({"spec": {"trials": 1}}, ["spec.trial: is required"]),
    "no container": (
        {"spec": {"trial": {"spec": {}}}},
        ["spec.trial.spec.containers: a pod needs at least one container"],
    ),
}


@pytest.mark.parametrize(("manifest", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_manifest_is_said_with_its_path(
    manifest: dict[str, Any], said: list[str]
) -> None:
    assert KIND.faults(manifest) == said


@pytest.mark.parametrize("spec", [None, [], "text", 3, {"trial": 3}, {"trials": True}])
def test_no_manifest_makes_it_stumble(spec: Any) -> None:
    manifest = {**sweep(), "spec": spec}
    assert KIND.faults(manifest)
    assert KIND.read({**manifest, "status": spec}).phase == "Pending"
    KIND.pod_sets(manifest)
    KIND.dependencies(manifest)
    KIND.is_held(manifest)


def test_it_is_held_and_released_by_its_patches() -> None:
    held = KIND.hold(sweep())
    assert held["spec"]["paused"] is True
    assert KIND.is_held(held)
    assert KIND.pods(held) == ()
    assert KIND.release(held)["spec"]["paused"] is False
    assert KIND.release(sweep()) == sweep(), "what is not held is left alone"


def test_a_kind_without_a_way_is_never_held() -> None:
    rule = copy.deepcopy(SWEEP)
    del rule["spec"]["hold"]
    kind = kind_of(rule)
    assert kind.hold(sweep()) == sweep()
    assert not kind.is_held(kind.hold(sweep()))


def test_counts_are_written_where_they_stand() -> None:
    assert KIND.with_counts(sweep(), {"trial": 2})["spec"]["trials"] == 2
    bare = sweep()
    del bare["spec"]["trials"]
    assert KIND.with_counts(bare, {"trial": 5})["spec"]["trials"] == 5
    assert KIND.with_counts(bare, {"trial": 1}) == bare, "the default needs no writing"


PLAYED = {
    "nothing yet": ((), "New", "Pending"),
    "one waits": (("Pending",), "New", "Pending"),
    "one runs": (("Running", "Pending"), "Active", "Running"),
    "some are done": (("Succeeded", "Ready"), "Active", "Running"),
    "all are done": (("Succeeded", "Succeeded", "Succeeded"), "Done", "Succeeded"),
    "one failed": (("Succeeded", "Failed", "Ready"), "Broken", "Failed"),
}


@pytest.mark.parametrize(("phases", "state", "phase"), PLAYED.values(), ids=PLAYED)
def test_the_status_follows_from_the_pods(phases: tuple[str, ...], state: str, phase: str) -> None:
    status = KIND.play(sweep(), states(*phases), now=200.0)
    assert status["state"] == state
    assert KIND.read({**sweep(), "status": status}).phase == phase
    assert ("began" in status) == bool(phases), "null is left out"
    assert ("why" in status) == (phase == "Failed")


def test_numbers_add_up_over_clusters_and_the_worst_phase_counts() -> None:
    merged = KIND.merge(
        sweep(),
        {
            "east": {"state": "Done", "active": 0, "done": 2},
            "west": {"state": "Active", "active": 1, "done": 1},
        },
    )
    assert merged == {"state": "Active", "active": 1, "done": 3}


def test_a_status_of_an_earlier_generation_is_told() -> None:
    assert not KIND.read({**sweep(), "status": {"observedGeneration": 1}}).is_current
    assert KIND.read({**sweep(), "status": {"observedGeneration": 2}}).is_current
    assert KIND.read({**sweep(), "status": {"state": "Active"}}).is_current


def test_dependencies_are_those_of_templates_and_of_paths() -> None:
    manifest = sweep(searchSpace={"configMap": "space"})
    manifest["spec"]["trial"]["spec"]["serviceAccountName"] = "runner"
    found = [(dependency.kind, dependency.name) for dependency in KIND.dependencies(manifest)]
    assert found == [("ConfigMap", "space"), ("ServiceAccount", "runner")]


def test_two_roles_of_one_name_are_refused() -> None:
    rule = copy.deepcopy(SWEEP)
    role = rule["spec"]["podSets"][0]
    role.pop("name")
    role.update(at="spec.groups[*]", nameFrom="role.name")
    group = {"name": "A_b", "trial": sweep()["spec"]["trial"]}
    manifest = {**sweep(), "spec": {"groups": [group, {**group, "name": "a-b"}]}}
    assert kind_of(rule).faults(manifest) == [
        "spec.groups[1]: has the same name as spec.groups[0]: a-b"
    ]
