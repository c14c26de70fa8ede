"""What if: what `fairway plan` says of the snapshot with the same change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from fairway.api.errors import BadRequest
from fairway.cli.main import run
from fairway.controllers.whatif.edits import apply_change, read_change
from fairway.controllers.whatif.process import make_plan
from fairway.controllers.whatif.whatif import WhatIf

CLUSTER: dict[str, Any] = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "east"},
    "spec": {"simulated": {"nodePools": [{"name": "a", "count": 2, "shape": {"cpu": "8"}}]}},
}
QUEUE: dict[str, Any] = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Queue",
    "metadata": {"name": "team"},
    "spec": {
        "resourceGroups": [
            {
                "resources": ["cpu"],
                "flavors": [
                    {"name": "any", "quotas": [{"resource": "cpu", "nominal": "8"}]},
                ],
            }
        ]
    },
}
FLAVOR: dict[str, Any] = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Flavor",
    "metadata": {"name": "any"},
    "spec": {},
}
NOW = 1_800_000_000.0


def workload(name: str, cpus: int) -> dict[str, Any]:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queue": "team",
            "podSets": [{"name": "pod", "count": 1, "requests": {"cpu": str(cpus)}}],
        },
    }


# One that is always there and too small: without any cluster, quota alone would decide.
TINY = json.loads(json.dumps(CLUSTER).replace("east", "tiny").replace('"8"', '"1"'))
FLEET = [CLUSTER, TINY, QUEUE, FLAVOR, workload("first", 6), workload("second", 6)]


def admitted(plan: dict[str, Any]) -> list[str]:
    return [step["workload"] for step in plan["steps"] if step["action"] == "Admit"]


def with_quota(nominal: str) -> dict[str, Any]:
    text = json.dumps(QUEUE).replace('"nominal": "8"', f'"nominal": "{nominal}"')
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("change", "starts"),
    [
        pytest.param({}, ["default/first"], id="nothing changes"),
        pytest.param(
            {"apply": [with_quota("16")]},
            ["default/first", "default/second"],
            id="twice the quota lets both start",
        ),
        pytest.param({"lose": ["east"]}, [], id="nothing starts in a cluster that is lost"),
        pytest.param(
            {"remove": [{"kind": "Workload", "namespace": "default", "name": "first"}]},
            ["default/second"],
            id="without the first, the second starts",
        ),
        pytest.param(
            {"manifests": json.dumps(workload("first", 2))},
            ["default/first", "default/second"],
            id="a smaller one in its place leaves room",
        ),
    ],
)
async def test_a_change_shows_in_the_plan(change: dict[str, Any], starts: list[str]) -> None:
    answer = await WhatIf().answer(FLEET, NOW, read_change(change))
    assert admitted(answer["after"]) == starts
    assert answer["before"] == make_plan(FLEET, NOW)


CHANGES: dict[str, dict[str, Any]] = {
    "a workload": {"apply": [workload("third", 3)]},
    "a workload as text": {"manifests": json.dumps(workload("third", 3))},
    "another quota": {
        "quota": [{"queue": "team", "flavor": "any", "resource": "cpu", "nominal": "16"}]
    },
    "a lost cluster": {"lose": ["east"]},
    "a copy of a cluster": {"clusters": [{"name": "copy", "copyOf": "east"}]},
    "a new cluster": {
        "clusters": [
            {
                "name": "new",
                "labels": {"region": "north"},
                "nodes": [{"flavor": "any", "count": 3, "shape": {"cpu": "32"}}],
                "priceFactor": "0.5",
            }
        ]
    },
    "all of it": {
        "apply": [workload("third", 3)],
        "quota": [{"queue": "team", "flavor": "any", "resource": "cpu", "nominal": 32}],
        "lose": ["east"],
        "clusters": [{"name": "copy", "copyOf": "east"}],
        "remove": [{"kind": "Workload", "namespace": "default", "name": "second"}],
    },
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_the_plan_is_that_of_the_command_line_with_the_same_change(
    change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = await WhatIf().answer(FLEET, NOW, read_change(change))
    dumped = {"apiVersion": "v1", "kind": "List", "items": FLEET}
    fleet, edit = tmp_path / "fleet.json", tmp_path / "edit.yaml"
    fleet.write_text(json.dumps(dumped))
    edit.write_text(yaml.safe_dump(change))
    now = ["--now", str(NOW), "-o", "json"]
    assert run(["plan", "-f", str(fleet), "--if", str(edit), *now]) == 0
    assert json.loads(capsys.readouterr().out) == answer["after"]
    assert run(["plan", "-f", str(fleet), *now]) == 0
    assert json.loads(capsys.readouterr().out) == answer["before"]


async def test_whom_a_change_touches_is_told_with_what_becomes_of_them() -> None:
    answer = await WhatIf().answer(FLEET, NOW, read_change(CHANGES["another quota"]))
    (second,) = answer["touched"]
    assert (second["workload"], second["queue"]) == ("default/second", "team")
    assert second["before"]["state"] == "Waits"
    assert second["before"]["expected"] > NOW
    assert second["after"] == {"state": "Starts", "places": [{"cluster": "east", "gpus": 0.0}]}


async def test_amounts_are_told_before_and_after() -> None:
    node = {"name": "gpu", "count": 2, "shape": {"cpu": "8", "nvidia.com/gpu": 8}}
    east = CLUSTER | {"spec": {"simulated": {"nodePools": [node]}}}
    quota = {"resource": "nvidia.com/gpu", "nominal": 8}
    group = {"resources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "quotas": [quota]}]}
    team = QUEUE | {"spec": {"resourceGroups": [group]}}
    train = workload("train", 1)
    train["spec"]["podSets"][0]["requests"] = {"nvidia.com/gpu": 8}
    more = {"name": "more", "copyOf": "east"}
    change = read_change({"apply": [train], "clusters": [more]})
    answer = await WhatIf().answer([east, team, FLAVOR], NOW, change)
    assert answer["clusters"] == {
        "before": {"east": {"any": {"room": 16.0, "used": 0.0}}},
        "after": {
            "east": {"any": {"room": 16.0, "used": 8.0}},
            "more": {"any": {"room": 16.0, "used": 0.0}},
        },
    }
    assert answer["queues"] == {
        "before": {"team": {"any": {"room": 8.0, "used": 0.0}}},
        "after": {"team": {"any": {"room": 8.0, "used": 8.0}}},
    }
    assert answer["touched"][0]["before"] == {"state": "Absent"}


def test_what_is_put_in_comes_now_and_what_it_replaces_keeps_its_age() -> None:
    old = workload("first", 6)
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    change = read_change({"apply": [workload("first", 1), workload("new", 1)]})
    born = [item["metadata"]["creationTimestamp"] for item in apply_change([old], change, NOW)]
    assert born == ["2020-01-01T00:00:00Z", "2027-01-15T08:00:00Z"]


def test_a_copy_of_a_cluster_has_its_nodes_and_nothing_that_runs_there() -> None:
    report = {
        "kind": "ClusterReport",
        "metadata": {"name": "east-0"},
        "spec": {"cluster": "east", "nodes": {"names": ["n"]}, "works": [{"work": "a"}]},
    }
    copy = {"name": "copy", "copyOf": "east", "labels": {"region": "north"}}
    found = apply_change(
        [CLUSTER, report], read_change({"clusters": [copy], "lose": ["east"]}), NOW
    )
    assert [item["metadata"] for item in found] == [
        {"name": "copy", "labels": {"region": "north"}},
        {"name": "copy-east-0"},
    ]
    assert found[1]["spec"] == {"cluster": "copy", "nodes": {"names": ["n"]}}


def test_what_ran_in_a_lost_cluster_waits_again_and_replicas_elsewhere_go_on() -> None:
    claim = {"attempt": 1, "placements": [{"cluster": "east"}, {"cluster": "west"}]}
    gang = workload("gang", 1) | {"status": {"phase": "Running", "claim": claim}}
    service = json.loads(json.dumps(gang))
    service["metadata"]["name"], service["spec"]["mode"] = "service", "Divided"
    found = apply_change([CLUSTER, gang, service], read_change({"lose": ["east"]}), NOW)
    assert found[0]["status"] == {"phase": "Waiting"}
    assert found[1]["status"]["claim"]["placements"] == [{"cluster": "west"}]
    assert gang["status"]["claim"] is claim


URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 10,
}


@pytest.mark.parametrize("kind", ["Workload", "PriorityClass", "Queue"])
def test_what_has_no_namespace_or_the_first_is_removed_by_its_name(kind: str) -> None:
    objects = [QUEUE, workload("first", 6), URGENT]
    (one,) = [each for each in objects if each["kind"] == kind]
    named = {"kind": kind, "name": one["metadata"]["name"]}
    found = apply_change(objects, read_change({"remove": [named]}), NOW)
    assert found == [each for each in objects if each is not one]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"forget": ["east"]}, "unknown field `forget`"),
        ({"lose": "east"}, r"at `\$.lose`"),
        ({"lose": ["west"]}, r"lose\[0\]: there is no cluster west"),
        ({"remove": [{"kind": "Queue", "name": "x"}]}, r"remove\[0\]: there is no Queue x"),
        (
            {"quota": [{"queue": "x", "flavor": "any", "resource": "cpu", "nominal": 1}]},
            r"quota\[0\].queue: there is no queue x",
        ),
        (
            {"quota": [{"queue": "team", "flavor": "any", "resource": "gpu", "nominal": 1}]},
            r"quota\[0\].resource: queue team has no group with gpu",
        ),
        ({"clusters": [{"name": "east", "copyOf": "tiny"}]}, r"clusters\[0\].name: there is"),
        ({"clusters": [{"name": "new"}]}, r"clusters\[0\]: a new cluster needs either"),
        ({"clusters": [{"name": "new", "copyOf": "x"}]}, r"clusters\[0\].copyOf: there is no"),
        (
            {"clusters": [{"name": "new", "nodes": [{"flavor": "x", "count": 1, "shape": {}}]}]},
            r"clusters\[0\].nodes\[0\].flavor: there is no flavor x",
        ),
        (
            {"clusters": [{"name": "new", "nodes": [{"flavor": "any", "count": 0, "shape": {}}]}]},
            r"clusters\[0\].nodes\[0\].count: expected 1 to",
        ),
        ({"apply": [{"kind": "Queue"}]}, "a Queue in the change has no metadata"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        apply_change(FLEET, read_change(change), NOW)


async def test_an_object_that_is_no_good_is_refused_with_its_field() -> None:
    broken = {"apply": [workload("broken", 1) | {"spec": {"queue": 7}}]}
    with pytest.raises(BadRequest, match="queue"):
        await WhatIf().answer(FLEET, NOW, read_change(broken))


async def test_objects_are_read_where_they_are_planned() -> None:
    raw = [msgspec.Raw(json.dumps(item).encode()) for item in FLEET]
    change = read_change({"apply": [workload("small", 1)]})
    assert await WhatIf().answer(raw, NOW, change) == await WhatIf().answer(FLEET, NOW, change)
