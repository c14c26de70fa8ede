"""What a hub writes of a plan is what its planner assumes until it hears of the write.

The core says what a decided plan changes (`transitions`), the scheduler writes it (`claims`). If
they differed, the next plan would be made from facts that no store has.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api import codec
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.scheduling import claims
from fairway.controllers.scheduling.claims import Batch, Leaving
from fairway.controllers.scheduling.commit import deals_of
from fairway.core import model
from fairway.core.cycle import plan
from fairway.core.plan import Admit, Move, Plan, Preempt, Provision
from fairway.core.snapshot import Snapshot
from fairway.core.transitions import apply_plan
from fairway.view.objects import Objects
from tests.builders import H100, NOW, Plain
from tests.core.test_plans import ROWS
from tests.properties.checks import cases
from tests.view.events import Story

TERM = 7


class Hub:
    """Objects, and what a plan writes to them."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.plain: dict[str, Plain] = {}

    def hear(self, what: str, plain: Plain) -> None:
        if what == "put":
            self.objects.put(plain)
        else:
            self.objects.remove(plain)
        if plain["kind"] == "Workload":
            self.plain[f"team/{plain['metadata']['name']}"] = plain

    def workload(self, key: str) -> Workload:
        return codec.decode(self.plain[key], Workload)

    def write(self, key: str, status: WorkloadStatus) -> None:
        changed = copy.deepcopy(self.plain[key])
        changed["status"] = codec.to_plain(status)
        version = int(changed["metadata"]["resourceVersion"])
        changed["metadata"]["resourceVersion"] = str(version + 1)
        self.plain[key] = changed
        self.objects.put(changed)

    def carry_out(self, made: Plan, queues: dict[str, str]) -> None:
        """Writes a plan as the committer does: all victims, then each workload."""
        batch = Batch(now=made.now, term=TERM, queues=queues)
        for step in made.steps:
            if isinstance(step, Preempt):
                uid = self.plain[step.for_]["metadata"]["uid"]
                victim = self.workload(step.workload)
                self.write(step.workload, claims.preempt(victim, step, batch, by_uid=uid))
        for deal in deals_of(made.steps):
            provisions = [step for step in deal if isinstance(step, Provision)]
            for step in deal:
                if isinstance(step, Admit):
                    before = self.workload(step.workload)
                    left = self.leaving(step)
                    status = claims.take_claim(before, step, provisions, batch, left)
                    self.write(step.workload, status)
                elif isinstance(step, Move):
                    before = self.workload(step.workload)
                    self.write(step.workload, claims.move(before, step, batch))

    def leaving(self, step: Admit) -> dict[str, Leaving]:
        result = {}
        for key in step.waits_for:
            victim = self.workload(key)
            attempts = [placement.attempt for placement in victim.status.releasing]
            if attempts:
                result[key] = Leaving(uid=victim.metadata.uid, attempt=max(attempts))
        return result


def comparable(workload: model.Workload) -> dict[str, object]:
    """What later plans depend on, without numbers that only the store gives."""
    held = workload.held
    return {
        "held": held
        and {
            "queue": held.queue,
            "form": held.form,
            "rung": held.rung,
            "placed": sorted((replace(unbound(item), attempt=0) for item in held.placed), key=repr),
            "started": held.started_at,
            "victims": held.waits_for_victims,
        },
        "releasing": sorted(map(unbound, workload.releasing), key=repr),
        "reservation": workload.reservation,
        "was preempted": workload.was_preempted,
        "tasks": workload.tasks,
    }


def unbound(placement: model.Placed) -> model.Placed:
    """Without its nodes, which agents report."""
    return replace(placement, bound={})


def check(hub: Hub, now: float) -> None:
    facts = hub.objects.facts(now, {})
    made: Plan = plan(Snapshot(facts))[0]
    assumed = apply_plan(facts.workloads, made)
    hub.carry_out(made, {key: workload.queue for key, workload in facts.workloads.items()})
    written = hub.objects.facts(now, {}).workloads
    for key, workload in assumed.items():
        assert comparable(written[key]) == comparable(workload), key


@pytest.mark.parametrize("objects", [pytest.param(row.values[0], id=row.id) for row in ROWS])
def test_it_is_in_every_small_fleet(objects: list[Plain]) -> None:
    hub = Hub()
    for object_ in copy.deepcopy([H100, *objects]):
        metadata = object_["metadata"]
        metadata |= {"uid": f"uid-{metadata['name']}", "resourceVersion": "1"}
        for placement in object_.get("status", {}).get("claim", {}).get("placements", ()):
            placement.setdefault("attempt", object_["status"]["claim"]["attempt"])
        hub.hear("put", object_)
    check(hub, NOW)


@cases(250)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_it_is_in_a_busy_fleet(seed: int, count: int) -> None:
    story, hub = Story(Random(seed)), Hub()
    story.listeners.append(hub.hear)
    story.begin()
    for _ in range(count):
        story.happen()
    check(hub, story.now)
