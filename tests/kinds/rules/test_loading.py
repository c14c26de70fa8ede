"""A rule is checked when it is loaded; what is wrong is told with the field's path."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.codec import decode
from fairway.api.errors import Invalid
from fairway.api.kindrule import KindRule
from fairway.kinds.rules import built_in_kinds, built_in_rules, kind_of, kinds_of, load

ROOT = Path(__file__).parent.parent.parent.parent
SWEEP: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "fleet" / "kindrules.yaml").read_text())


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    rule = copy.deepcopy(SWEEP)
    change(rule["spec"])
    return rule


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an expression that is no CEL": (
        lambda spec: spec["status"]["phases"][0].update(when="status.state =="),
        "spec.status.phases[0].when: Invalid value: 1:",
    ),
    "a variable that this expression cannot see": (
        lambda spec: spec["environment"][0].update(value="string(tally.ready)"),
        "spec.environment[0].value: Invalid value: 1:13: undeclared reference to 'tally.ready'",
    ),
    "an expression deep in the status": (
        lambda spec: spec["play"]["status"].update(parts=[{"a": "=nobody"}]),
        "spec.play.status.parts[0].a: Invalid value: 1:1: undeclared reference to 'nobody'",
    ),
    "an expression deep in a variable": (
        lambda spec: spec["environment"][2]["json"].update(name="=nobody"),
        "spec.environment[2].json.name: Invalid value: 1:1: undeclared reference to 'nobody'",
    ),
    "a condition of a part of the status": (
        lambda spec: spec["play"]["status"].update(part={"?": "nobody", "a": 1}),
        "spec.play.status.part.?: Invalid value: 1:1: undeclared reference to 'nobody'",
    ),
    "a path that cannot be read": (
        lambda spec: spec["podSets"][0].update(at="spec..trial"),
        "spec.podSets[0].at: Invalid value: the path 'spec..trial' cannot be read at '..trial'",
    ),
    "a number in many places": (
        lambda spec: spec["podSets"][0]["count"].update(path="groups[*].size"),
        "spec.podSets[0].count.path: Invalid value: the path 'groups[*].size' must lead to one",
    ),
    "an unknown field": (
        lambda spec: spec.update(podsets=[]),
        'unknown field "spec.podsets"',
    ),
    "a pod set without a name": (
        lambda spec: spec["podSets"][0].pop("name"),
        "exactly one of name and nameFrom is given",
    ),
    "a divided kind without replicas": (
        lambda spec: spec.update(mode="Divided"),
        "spec.replicas: Invalid value",
    ),
    "no phases": (
        lambda spec: spec["status"].update(phases=[]),
        "spec.status.phases",
    ),
    "more variables than are allowed": (
        lambda spec: spec.update(environment=[{"name": f"V{n}", "value": "''"} for n in range(65)]),
        "spec.environment: Too many: 65: must have at most 64 items",
    ),
    "a variable with two values": (
        lambda spec: spec["environment"][2].update(value="name"),
        "exactly one of value and json is given",
    ),
    "a status that nests too deep": (
        lambda spec: spec["play"]["status"].update(deep=_nested(40)),
        "nests more than 16 deep",
    ),
}


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_rule_is_said_with_its_path(
    change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    with pytest.raises(Invalid) as raised:
        kind_of(changed(change))
    assert said in str(raised.value)
    assert 'KindRule.kinds.fairway.dev "sweep" is invalid' in str(raised.value)


def test_all_faults_come_together() -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["status"]["phases"][1]["reason"] = "nobody"
        spec["podSets"][0]["podName"] = "nobody"

    with pytest.raises(Invalid) as raised:
        kind_of(changed(change))
    fields = [cause["field"] for cause in raised.value.details["causes"]]
    assert fields == ["spec.podSets[0].podName", "spec.status.phases[1].reason"]


def test_a_rule_that_is_wrong_does_not_stop_the_others() -> None:
    good = decode(SWEEP, KindRule)
    wrong = changed(lambda spec: spec["podSets"][0].update(podName="nobody"))
    wrong["metadata"] = {"name": "another"}
    loaded = kinds_of([good, decode(wrong, KindRule)])
    assert [kind.name for kind in loaded.kinds] == ["Sweep"]
    assert list(loaded.faults) == ["another"]
    assert "spec.podSets[0].podName" in str(loaded.faults["another"])


def test_rules_past_the_limit_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "RULES_MAX", 1)
    rules = [
        decode({**SWEEP, "metadata": {"name": name}}, KindRule) for name in ("second", "first")
    ]
    loaded = kinds_of(rules)
    assert [kind.rule.metadata.name for kind in loaded.kinds] == ["first"]
    assert "there are 1 rules" in str(loaded.faults["second"])


def test_loading_leaves_the_rule_as_it_is() -> None:
    before = copy.deepcopy(SWEEP)
    kind_of(SWEEP)
    assert before == SWEEP


def test_the_rules_that_come_with_fairway_are_those_of_the_design() -> None:
    assert {(kind.name, *kind.api_versions) for kind in built_in_kinds()} == {
        ("InferenceService", "serving.kserve.io/v1beta1"),
        ("JAXJob", "kubeflow.org/v1"),
        ("MPIJob", "kubeflow.org/v2beta1", "kubeflow.org/v1"),
        ("PaddleJob", "kubeflow.org/v1"),
        ("PyTorchJob", "kubeflow.org/v1"),
        ("RayCluster", "ray.io/v1"),
        ("RayJob", "ray.io/v1"),
        ("RayService", "ray.io/v1"),
        ("SparkApplication", "sparkoperator.k8s.io/v1beta2"),
        ("TFJob", "kubeflow.org/v1"),
        ("TrainJob", "trainer.kubeflow.org/v1alpha1"),
        ("Workflow", "argoproj.io/v1alpha1"),
        ("XGBoostJob", "kubeflow.org/v1"),
    }


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: rule["metadata"]["name"])
def test_a_rule_is_in_a_file_of_its_kinds_name(rule: dict[str, Any]) -> None:
    assert rule["metadata"]["name"] == rule["spec"]["kind"].lower()
    assert isinstance(kind_of(rule).rule, KindRule)
