"""What holds of every case, however workload, works and clusters are mixed."""

from __future__ import annotations

from dataclasses import replace as with_fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairway.api.fleet import FleetSpec
from fairway.api.meta import Taint
from fairway.api.workload import Workload
from fairway.controllers.lifecycle.case import (
    ClusterFacts,
    LifecycleCase,
    PodsSeen,
    Settings,
    WorkObservation,
)
from fairway.controllers.lifecycle.next_status import next_status
from tests.controllers.lives import NOW, claimed, moment, placement, replicas, running, tasks, text
from tests.controllers.test_lifecycle import MAY_FOLLOW, told_to_stop

CLUSTERS = ("a", "b", "c")
MODES: dict[str, dict[str, Any]] = {
    "Gang": {},
    "Divided": {"mode": "Divided", "replicas": 9},
    "Independent": {"mode": "Independent", "tasks": {"count": 9, "failedMax": 2}},
}
PHASES = ("Pending", "Reserved", "Running", "Stopping", "Succeeded", "Failed", "Gone")
REASONS = ("", "Evicted", "OOMKilled", "ImagePullBackOff", "NodeLost", "HubSilent")


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    mode = draw(st.sampled_from(sorted(MODES)))
    names = draw(st.lists(st.sampled_from(CLUSTERS), min_size=1, unique=True))
    make = {
        "Gang": lambda name: placement(name, 3),
        "Divided": lambda name: replicas(name, 3),
        "Independent": lambda name: tasks(name, f"{(at := 3 * CLUSTERS.index(name))}-{at + 2}", 3),
    }[mode]
    held = [make(name) for name in sorted(names)]
    leaving = draw(st.lists(st.sampled_from(CLUSTERS), unique=True))
    spec = {
        **MODES[mode],
        "hold": draw(st.sampled_from(("None", "Hold", "HoldAndDrain"))),
        "cancelled": draw(st.booleans()) and draw(st.booleans()),
    }
    status: dict[str, Any] = {
        "requeue": {"count": draw(st.integers(0, 4))},
        # Attempt 0 is one that ended before this claim.
        "releasing": [{**make(name), "attempt": 0} for name in leaving if name not in names],
        "claim": {"deadline": text(NOW + draw(st.sampled_from((-5, 5))))},
    }
    if mode == "Divided" and draw(st.booleans()):
        status["claim"]["missingCopies"] = draw(st.integers(0, 2))
        done = draw(st.lists(st.sampled_from(CLUSTERS), unique=True))
        status["succeededClusters"] = [name for name in sorted(done) if name not in names]
    return (running if draw(st.booleans()) else claimed)(*held, spec=spec, **status)


@st.composite
def sightings(draw: st.DrawFn) -> WorkObservation:
    pods = st.integers(0, 3)
    return WorkObservation(
        attempt=draw(st.integers(0, 2)),
        phase=draw(st.sampled_from(PHASES)),
        reason=draw(st.sampled_from(REASONS)),
        exit_code=draw(st.sampled_from((None, 1, 137))),
        node=draw(st.sampled_from(("", "n1"))),
        pods={
            "worker": PodsSeen(
                pending=draw(pods),
                bound=draw(pods),
                ready=draw(pods),
                pending_since=NOW - draw(st.sampled_from((10, 1000))),
            )
        },
        succeeded_tasks=draw(st.sampled_from(("", "0-2", "4", "0-8"))),
        failed_tasks=draw(st.sampled_from(("", "1", "1,5-7"))),
    )


@st.composite
def places(draw: st.DrawFn) -> ClusterFacts:
    phase = draw(st.sampled_from(("Ready", "Unready", "Lost")))
    return ClusterFacts(
        phase=phase,
        silent_seconds=draw(st.sampled_from((50.0, 5000.0))) if phase != "Ready" else 0.0,
        hold=draw(st.sampled_from(("None", "None", "Hold", "HoldAndDrain"))),
        mode=draw(st.sampled_from(("Manage", "Manage", "Observe"))),
        taints=draw(
            st.sampled_from(((), (), (Taint(key="x", effect="NoExecute", time_added=moment(NOW)),)))
        ),
    )


@st.composite
def cases(draw: st.DrawFn) -> LifecycleCase:
    lost = draw(st.sampled_from(("Wait", "StopAndMove", "AllowDuplicate")))
    workload = draw(workloads())
    claim = workload.status.claim
    return LifecycleCase(
        workload=workload,
        is_copied=claim is not None and claim.missing_copies is not None,
        now=NOW,
        works=draw(st.dictionaries(st.sampled_from(CLUSTERS), sightings())),
        places=draw(st.dictionaries(st.sampled_from(CLUSTERS), places(), min_size=1)),
        sent=draw(st.sampled_from(({}, told_to_stop(None), told_to_stop(900)))),
        settings=Settings(
            on_cluster_lost=lost, run_limit=draw(st.sampled_from((None, 30))), fleet=FleetSpec()
        ),
        may_move=draw(st.booleans()),
        refreshes=draw(st.booleans()),
    )


@settings(max_examples=400, deadline=None)
@given(cases())
def test_every_next_status_is_sound(found: LifecycleCase) -> None:
    before = found.workload.status
    change = next_status(found)
    status = change.status
    if status is None:
        return
    assert status.phase in MAY_FOLLOW[before.phase or "Waiting"]
    claimed_now = (
        {(placement.cluster, placement.attempt) for placement in status.claim.placements}
        if (status.claim)
        else set()
    )
    assert not claimed_now & {(item.cluster, item.attempt) for item in status.releasing}
    assert (status.claim is not None) == (status.phase in ("Claimed", "Running"))
    assert bool(status.releasing) or status.phase != "Stopping"
    assert (status.finished_at is not None) or status.phase not in (
        "Succeeded",
        "Failed",
        "Cancelled",
    )
    assert change.wake_at is None or change.wake_at > NOW
    again = next_status(with_fields(found, workload=replace(found.workload, status=status)))
    assert again.status is None


@settings(max_examples=400, deadline=None)
@given(cases().filter(lambda found: found.is_copied))
def test_copies_are_over_once_all_have_succeeded_and_are_never_forgotten(
    found: LifecycleCase,
) -> None:
    before = found.workload.status
    status = next_status(found).status
    if status is None or before.claim is None:
        return
    assert set(before.succeeded_clusters) <= set(status.succeeded_clusters)
    held = {placement.cluster for placement in before.claim.placements}
    if status.phase == "Succeeded":
        assert not before.claim.missing_copies
        assert held <= set(status.succeeded_clusters)
    if status.claim is not None:
        still = {placement.cluster for placement in status.claim.placements}
        lost = held - still - set(status.succeeded_clusters)
        assert (status.claim.missing_copies or 0) >= len(lost)
        assert not still & set(status.succeeded_clusters)


@settings(max_examples=400, deadline=None)
@given(cases())
def test_nothing_that_may_still_run_is_forgotten(found: LifecycleCase) -> None:
    """A place leaves the books only when it is over, gone, lost for good or out of the fleet."""
    before = found.workload.status
    status = next_status(found).status
    if status is None:
        return
    after = {item.cluster for item in status.releasing}
    after |= {placement.cluster for placement in status.claim.placements} if status.claim else set()
    assert before.claim is not None
    for held in before.claim.placements:
        if held.cluster in after or held.cluster not in found.places:
            continue
        seen = found.works.get(held.cluster)
        is_seen = seen is not None and seen.attempt == held.attempt
        is_over = is_seen and seen is not None and seen.phase in ("Succeeded", "Failed", "Gone")
        is_done = found.workload.spec.mode == "Independent" and is_seen
        place = found.places[held.cluster]
        is_given_up = place.phase in ("Unready", "Lost") and (
            found.settings.on_cluster_lost != "Wait"
        )
        is_newer = seen is not None and seen.attempt > held.attempt
        assert is_over or is_done or is_given_up or is_newer
