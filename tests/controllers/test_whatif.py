"""What if: what `fairway plan` says of the snapshot with the same change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairway.api.errors import BadRequest
from fairway.cli.main import run
from fairway.controllers.whatif import WhatIf, changed, read_change
from fairway.controllers.whatif_process import planned

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
    return [one["workload"] for one in plan["steps"] if one["action"] == "Admit"]


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
    assert answer["before"] == planned(FLEET, NOW)


async def test_the_plan_is_that_of_the_command_line_on_the_same_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = read_change({"apply": [with_quota("16"), workload("third", 3)]})
    answer = await WhatIf().answer(FLEET, NOW, change)
    dumped = {"apiVersion": "v1", "kind": "List", "items": changed(FLEET, change)}
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(dumped))
    assert run(["plan", "-f", str(file), "--now", str(NOW), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer["after"]


def test_what_ran_in_a_lost_cluster_waits_again_and_replicas_elsewhere_go_on() -> None:
    claim = {"attempt": 1, "placements": [{"cluster": "east"}, {"cluster": "west"}]}
    gang = workload("gang", 1) | {"status": {"phase": "Running", "claim": claim}}
    service = json.loads(json.dumps(gang))
    service["metadata"]["name"], service["spec"]["mode"] = "service", "Divided"
    found = changed([gang, service], read_change({"lose": ["east"]}))
    assert found[0]["status"] == {"phase": "Waiting"}
    assert found[1]["status"]["claim"]["placements"] == [{"cluster": "west"}]
    assert gang["status"]["claim"] is claim


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"forget": ["east"]}, "unknown field `forget`"),
        ({"lose": "east"}, r"at `\$.lose`"),
    ],
)
def test_a_change_that_cannot_be_read_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_change(change)


async def test_an_object_that_is_no_good_is_refused_with_its_field() -> None:
    broken = {"apply": [workload("broken", 1) | {"spec": {"queue": 7}}]}
    with pytest.raises(BadRequest, match="queue"):
        await WhatIf().answer(FLEET, NOW, read_change(broken))
