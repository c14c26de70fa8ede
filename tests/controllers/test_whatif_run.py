"""What if in a hub that runs: what `fairway plan` says of its snapshot with the same edit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from fairway.api.errors import BadRequest
from fairway.cli.main import run
from fairway.clock import VirtualClock
from fairway.controllers.whatif.edits import read_change
from fairway.controllers.whatif.whatif import WhatIf
from fairway.hub.agent_lines import Reaching
from fairway.hub.answers import HubAnswers
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_history_run import SERVICE
from tests.controllers.test_running import ELSEWHERE, FLEET, job

QUOTA = {"queue": "research", "flavor": "h100", "resource": "nvidia.com/gpu"}
NODES = {"flavor": "h100", "count": 2, "shape": {"cpu": "64", "nvidia.com/gpu": 8}}
LARGE = job("large", pods=2)
CHANGES: dict[str, dict[str, Any]] = {
    "a workload": {"apply": [yaml.safe_load(job("urgent", priority=10))]},
    "workloads as text": {"manifests": f"{job('one')}---{job('two', gpus=4)}"},
    "another priority of one that waits": {"manifests": job("large", pods=2, priority=10)},
    "one that runs is gone": {
        "remove": [{"kind": "Workload", "namespace": "default", "name": "train"}]
    },
    "more quota": {"quota": [{**QUOTA, "nominal": 64}], "manifests": job("urgent", gpus=4)},
    "less quota": {"quota": [{**QUOTA, "nominal": "8"}]},
    "a lost cluster": {"lose": ["hangzhou"]},
    "both lost": {"lose": ["hangzhou", "shanghai"]},
    "a copy of a cluster": {"clusters": [{"name": "copy", "copyOf": "hangzhou"}]},
    "a new cluster": {
        "clusters": [{"name": "new", "nodes": [NODES], "labels": {"a": "b"}, "priceFactor": "0.5"}]
    },
    "one for another": {"lose": ["hangzhou"], "clusters": [{"name": "new", "copyOf": "hangzhou"}]},
    "all together": {
        "apply": [yaml.safe_load(job("urgent", priority=10))],
        "manifests": job("two", gpus=4),
        "remove": [{"kind": "Workload", "namespace": "default", "name": "chat"}],
        "lose": ["shanghai"],
        "quota": [{**QUOTA, "nominal": 48}],
        "clusters": [
            {"name": "copy", "copyOf": "shanghai"},
            {"name": "new", "nodes": [NODES, {**NODES, "count": 1}]},
        ],
    },
}


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(f"{FLEET}---{ELSEWHERE}---{SERVICE}---{job('train', seconds=600)}")
        await found.until("train", "Running", 60)
        await found.until("chat", "Running", 60)
        await found.apply(LARGE)
        await found.until("large", lambda item: item.status.reason == "QuotaExceeded", 60)
        yield found


async def test_every_change_gives_the_plan_of_the_command_line(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = await fleet.plane.snapshot()
    now = float(snapshot["metadata"]["annotations"]["fairway.dev/now"])
    dumped, edit = tmp_path / "fleet.json", tmp_path / "edit.yaml"
    dumped.write_bytes(msgspec.json.encode(snapshot))

    def planned(*with_change: str) -> dict[str, Any]:
        assert run(["plan", "-f", str(dumped), *with_change, "-o", "json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    unchanged = planned()
    for name, change in CHANGES.items():
        answer = await WhatIf().answer(snapshot["items"], now, read_change(change))
        edit.write_text(yaml.safe_dump(change))
        assert answer["before"] == unchanged, name
        assert answer["after"] == planned("--if", str(edit)), name
        assert answer["after"] != unchanged, name


_BAD_WORKLOAD = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "bad", "namespace": "default"},
    "spec": {"queue": "research", "podSets": [{"name": "worker", "count": 1}]},
}
_BAD_POLICY = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "bad", "namespace": "default"},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a field that there is not": (
        {**_BAD_WORKLOAD, "spec": {**_BAD_WORKLOAD["spec"], "quueue": "x"}},
        "spec.quueue: Forbidden: unknown field",
    ),
    "a value that is not allowed": (
        {**_BAD_WORKLOAD, "spec": {"queue": "research", "podSets": [{"name": "w", "count": -1}]}},
        "spec.podSets[0].count: Invalid value: -1",
    ),
    "a rule that is broken": (
        {**_BAD_WORKLOAD, "spec": {**_BAD_WORKLOAD["spec"], "tasks": {"count": 3}}},
        "spec.tasks",
    ),
    "an expression that does not compile": (
        {**_BAD_POLICY, "spec": {"selector": {"expressions": ["cluster.labels.("]}}},
        "spec.selector.expressions[0]",
    ),
    "a kind that there is not": ({**_BAD_WORKLOAD, "kind": "Worklod"}, "there is no kind"),
    "no version": ({"kind": "Workload", "metadata": {"name": "bad"}}, "apiVersion: Required value"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_objects_that_a_hub_would_not_accept_are_refused_as_by_the_command_line(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    bad, fault = REFUSED[case]
    good = yaml.safe_load(job("urgent", priority=10))
    change = {"apply": [good, bad]}
    reaching = Reaching(fleet.agents, fleet.plane.cache, fleet.clock)
    with pytest.raises(BadRequest) as refused:
        await HubAnswers(fleet.plane, reaching).whatif(change, lambda _: True)
    await reaching.close()
    (line,) = refused.value.message.splitlines()[1:]
    assert line.startswith(f"  apply[1]: {bad['kind']} ")
    assert fault in line
    dumped, edit = tmp_path / "fleet.json", tmp_path / "edit.yaml"
    dumped.write_bytes(msgspec.json.encode(await fleet.plane.snapshot()))
    edit.write_text(yaml.safe_dump(change))
    assert run(["plan", "-f", str(dumped), "--if", str(edit)]) != 0
    assert line.partition(": ")[2] in capsys.readouterr().err


async def test_an_object_in_the_text_of_a_change_is_refused_by_its_position(fleet: Fleet) -> None:
    reaching = Reaching(fleet.agents, fleet.plane.cache, fleet.clock)
    change = {"manifests": f"{job('one')}---\n{json.dumps(REFUSED['a kind that there is not'][0])}"}
    with pytest.raises(BadRequest, match=r"manifests\[1\]: Worklod default/bad"):
        await HubAnswers(fleet.plane, reaching).whatif(change, lambda _: True)
    await reaching.close()
