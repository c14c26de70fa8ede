"""A kind that a user describes by a rule runs like any other; a rule that is wrong says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.api import codec
from fairway.api.kindrule import KindRule
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey
from fairway.store.keys import KIND_RULES
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET
from tests.kinds.rules.test_loading import SWEEP

SWEEPS = ResourceKey("sweeps.example.com", "v1", "sweeps")
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sweeps.sweeps.example.com}
spec:
  group: sweeps.example.com
  scope: Namespaced
  names: {plural: sweeps, singular: sweep, kind: Sweep, listKind: SweepList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
OBJECT = """
apiVersion: sweeps.example.com/v1
kind: Sweep
metadata: {name: rates, namespace: default, labels: {fairway.dev/queue: research}}
spec:
  trials: 3
  trial:
    spec:
      containers:
        - {name: trial, image: trial, resources: {limits: {nvidia.com/gpu: 4}}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def rule_of(fleet: Fleet, name: str) -> KindRule:
    return codec.decode((await fleet.store.get(KIND_RULES, name)).raw, KindRule)


@pytest.mark.parametrize("first", ["the rule", "the definition"])
async def test_an_object_of_an_own_kind_runs_from_end_to_end(fleet: Fleet, first: str) -> None:
    rule = codec.to_yaml(SWEEP)
    steps = [rule, DEFINITION] if first == "the rule" else [DEFINITION, rule]
    for step in steps:
        await fleet.apply(step)
        await fleet.clock.advance(1)
    await fleet.apply(OBJECT)
    await fleet.clock.advance(1)
    started = await fleet.until("sweep-rates", "Running", 60)
    assert started.status.pods.ready == 3
    assert await fleet.pods("hangzhou") == 3
    await fleet.until("sweep-rates", "Succeeded", 400)
    await fleet.clock.advance(10)
    found = (await fleet.store.get(SWEEPS, "rates", "default")).object()
    assert found["status"]
    (condition,) = (await rule_of(fleet, SWEEP["metadata"]["name"])).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("InUse", "True", "Loaded")


async def test_an_object_that_was_there_before_its_rule_runs_once_the_rule_is_there(
    fleet: Fleet,
) -> None:
    await fleet.apply(DEFINITION)
    await fleet.apply(OBJECT)
    await fleet.clock.advance(30)
    await fleet.apply(codec.to_yaml(SWEEP))
    await fleet.clock.advance(1)
    await fleet.until("sweep-rates", "Running", 60)


async def test_a_rule_with_a_wrong_expression_says_so_and_is_not_used(fleet: Fleet) -> None:
    name = SWEEP["metadata"]["name"]
    wrong = {**SWEEP, "spec": {**SWEEP["spec"], "subdomain": "name +"}}
    await fleet.apply(codec.to_yaml(wrong))
    await fleet.clock.advance(1)
    (condition,) = (await rule_of(fleet, name)).status.conditions
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert "spec.subdomain" in condition.message
    await fleet.apply(codec.to_yaml(SWEEP))
    await fleet.clock.advance(1)
    (condition,) = (await rule_of(fleet, name)).status.conditions
    assert condition.status == "True"
