"""What if in a hub that runs: what `fairway plan` says of its snapshot with the same edit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from fairway.cli.main import run
from fairway.clock import VirtualClock
from fairway.controllers.whatif.edits import read_change
from fairway.controllers.whatif.whatif import WhatIf
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
