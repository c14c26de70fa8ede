"""An agent's credential is worth its own cluster: what it makes up moves, claims and reads nothing.

An agent may create works in the namespace of its cluster, and write their status and its report.
Each test does with these rights what would take a run from another cluster.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairway.api.meta import JsonObject
from fairway.api.names import ADOPTED, PLACEMENT, PROOF, report_name, work_namespace
from fairway.clock import VirtualClock, timestamp
from fairway.kinds.volumes import BOUND_IN
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Stored, Write
from fairway.store.keys import QUEUES, REPORTS, VOLUME_CLAIMS, WORKLOADS, WORKS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_running import ELSEWHERE, FLEET, job
from tests.controllers.test_sweeps_run import sweep

AGENT = Write(user="system:serviceaccount:fairway-cluster-shanghai:fairway-agent", manager="agent")
BROUGHT_BACK = {ADOPTED: "true"}
HONEST, FORGER = "hangzhou", "shanghai"
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: default}
stringData: {token: opensesame}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: scans, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A job of hangzhou that uses a Secret; nothing is to run in shanghai."""
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET + "---\n" + ELSEWHERE + "---\n" + SECRET)
        await clock.advance(20)
        await fleet.change_cluster(FORGER, {"spec": {"hold": "Hold"}})
        await fleet.apply(with_secret(job("train", seconds=600)))
        assert summary_of(await fleet.until("train", "Running", 30)) == HONEST
        yield fleet


def with_secret(text: str) -> str:
    return text.replace(
        "image: training", "image: training\n                  envFrom: [{secretRef: {name: keys}}]"
    )


async def work_of(fleet: Fleet, cluster: str = HONEST, name: str = "default.train") -> JsonObject:
    return (await fleet.store.get(WORKS, name, work_namespace(cluster))).object()


async def forge(
    fleet: Fleet,
    *,
    labels: Mapping[str, str] = BROUGHT_BACK,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """A work that the agent of shanghai makes up after one of hangzhou, which it may have seen."""
    known = await work_of(fleet)
    if annotations is None:
        annotations = known["metadata"]["annotations"]
    body = {
        **known,
        "metadata": {
            "name": known["metadata"]["name"],
            "namespace": work_namespace(FORGER),
            "labels": dict(labels),
            "annotations": dict(annotations),
        },
        "spec": {**known["spec"], "cluster": FORGER, "attempt": 99, **spec},
        "status": {},
    }
    stored = await fleet.store.create(WORKS, body, namespace=work_namespace(FORGER), write=AGENT)
    return stored.object()


async def works_of_the_forger(fleet: Fleet) -> list[Stored]:
    works = (await fleet.store.list(WORKS)).items
    return [
        stored
        for stored in works
        if stored.object()["metadata"]["namespace"] == work_namespace(FORGER)
    ]


async def nothing_has_moved(fleet: Fleet) -> None:
    await fleet.clock.advance(30)
    workload = await fleet.workload("train")
    assert (workload.status.phase, summary_of(workload)) == ("Running", HONEST)
    assert (await fleet.pods(HONEST), await fleet.pods(FORGER)) == (1, 0)


@pytest.mark.parametrize("label", ["true", "ended"])
async def test_a_made_up_work_takes_no_run_from_another_cluster(fleet: Fleet, label: str) -> None:
    await forge(fleet, labels={ADOPTED: label}, annotations={})
    await nothing_has_moved(fleet)


async def test_a_proof_of_another_cluster_proves_nothing(fleet: Fleet) -> None:
    await forge(fleet)
    await nothing_has_moved(fleet)


async def test_a_placement_claims_no_room_in_another_cluster(fleet: Fleet) -> None:
    made_up = await forge(fleet, cluster=HONEST)
    assert HONEST in made_up["metadata"]["annotations"][PLACEMENT]
    await nothing_has_moved(fleet)


async def test_no_secret_is_sent_to_whoever_asks(fleet: Fleet) -> None:
    await forge(fleet, manifests=[])
    await nothing_has_moved(fleet)
    for stored in await works_of_the_forger(fleet):
        assert b"b3BlbnNlc2FtZQ" not in stored.raw


async def test_a_made_up_work_does_not_keep_a_workload_from_its_place(fleet: Fleet) -> None:
    await forge(fleet, cluster=HONEST)
    await fleet.change_cluster(FORGER, {"spec": {"hold": "None"}})
    await fleet.change_cluster(HONEST, {"spec": {"hold": "HoldAndDrain"}})
    moved = await fleet.until(
        "train", lambda it: it.status.phase == "Running" and summary_of(it) == FORGER, 200
    )
    assert moved.status.claim is not None
    assert moved.status.claim.attempt == 2


async def test_the_proof_of_an_earlier_run_takes_over_no_later_workload_of_that_name(
    fleet: Fleet,
) -> None:
    await fleet.change_cluster(FORGER, {"spec": {"hold": "None"}})
    await fleet.change_cluster(HONEST, {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", lambda it: summary_of(it) == FORGER, 120)
    await fleet.until("train", "Running", 60)
    kept = await work_of(fleet, FORGER)
    await fleet.store.delete(WORKLOADS, "train", namespace="default", write=AGENT)
    while (await fleet.store.list(WORKS)).items:
        await fleet.clock.advance(0.5)
    await fleet.change_cluster(HONEST, {"spec": {"hold": "None"}})
    await fleet.change_cluster(FORGER, {"spec": {"hold": "Hold"}})
    await fleet.apply(job("train", seconds=600))
    assert summary_of(await fleet.until("train", "Running", 60)) == HONEST
    metadata = {key: kept["metadata"][key] for key in ("name", "namespace", "annotations")}
    metadata["labels"] = {ADOPTED: "true"}
    body = {**kept, "metadata": metadata, "status": {}}
    await fleet.store.create(WORKS, body, namespace=work_namespace(FORGER), write=AGENT)
    await nothing_has_moved(fleet)


async def test_the_proof_of_a_job_takes_over_no_sweep_of_that_name(fleet: Fleet) -> None:
    kept = await work_of(fleet)
    await fleet.store.delete(WORKLOADS, "train", namespace="default", write=AGENT)
    while (await fleet.store.list(WORKS)).items:
        await fleet.clock.advance(0.5)
    for name in (HONEST, FORGER):
        await fleet.change_cluster(name, {"spec": {"hold": "Hold"}})
    await fleet.apply(sweep(count=4).replace("sweep", "train"))
    metadata = {key: kept["metadata"][key] for key in ("name", "namespace", "annotations")}
    body = {**kept, "metadata": {**metadata, "labels": BROUGHT_BACK}, "status": {}}
    await fleet.store.create(WORKS, body, namespace=work_namespace(HONEST), write=AGENT)
    await fleet.clock.advance(30)
    assert (await fleet.workload("train")).status.claim is None
    await fleet.change_cluster(HONEST, {"spec": {"hold": "None"}})
    await fleet.until("train", "Succeeded", 300)


@pytest.mark.parametrize("annotations", [{}, {PROOF: "made up"}], ids=["no proof", "a wrong proof"])
async def test_a_run_of_the_past_gives_no_agent_a_later_attempt(
    fleet: Fleet, annotations: Mapping[str, str]
) -> None:
    await fleet.change_cluster(FORGER, {"spec": {"hold": "None"}})
    await fleet.change_cluster(HONEST, {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", lambda it: summary_of(it) == FORGER, 120)
    await fleet.until("train", "Running", 60)
    placement = json.loads((await work_of(fleet, FORGER))["metadata"]["annotations"][PLACEMENT])
    await fleet.change_cluster(HONEST, {"spec": {"hold": "None"}})
    await fleet.change_cluster(FORGER, {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", lambda it: summary_of(it) == HONEST, 120)
    await fleet.until("train", "Running", 60)
    while await works_of_the_forger(fleet):
        await fleet.clock.advance(0.5)
    await fleet.change_cluster(FORGER, {"spec": {"hold": "Hold"}})
    later = json.dumps({**placement, "attempt": 99})
    await forge(fleet, annotations={**annotations, PLACEMENT: later}, attempt=2)
    await nothing_has_moved(fleet)


@pytest.mark.parametrize("fence", ["queue", "acceptance"])
async def test_what_an_agent_kept_of_earlier_gets_no_secret_where_nothing_may_run_now(
    fleet: Fleet, fence: str
) -> None:
    await fleet.change_cluster(FORGER, {"spec": {"hold": "None"}})
    await fleet.change_cluster(HONEST, {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("train", lambda it: summary_of(it) == FORGER, 120)
    await fleet.until("train", "Running", 60)
    kept = await work_of(fleet, FORGER)
    await fleet.store.delete(WORKLOADS, "train", namespace="default", write=AGENT)
    while (await fleet.store.list(WORKS)).items:
        await fleet.clock.advance(0.5)
    if fence == "queue":
        allowed = Patch(type="merge", body={"spec": {"clusters": {"names": [HONEST]}}})
        await fleet.store.patch(QUEUES, "research", allowed, write=Write())
    else:
        await fleet.change_cluster(FORGER, {"spec": {"accepted": False}})
    await fleet.apply(SECRET.replace("opensesame", "renewed"))
    await fleet.apply(with_secret(job("train", seconds=600)))
    metadata = {key: kept["metadata"][key] for key in ("name", "namespace", "annotations")}
    body = {**kept, "metadata": {**metadata, "labels": BROUGHT_BACK}, "status": {}}
    body["spec"]["manifests"] = []
    await fleet.store.create(WORKS, body, namespace=work_namespace(FORGER), write=AGENT)
    for _ in range(60):
        await fleet.clock.advance(0.5)
        for stored in await works_of_the_forger(fleet):
            assert b64encode(b"renewed") not in stored.raw


@pytest.mark.parametrize("is_difference", [False, True], ids=["whole", "a difference"])
@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Gone"])
async def test_no_report_tells_of_another_cluster(
    fleet: Fleet, phase: str, is_difference: bool
) -> None:
    known = (await fleet.store.get(REPORTS, report_name(HONEST, 0))).object()["spec"]
    ended = timestamp(fleet.clock.now())
    state = {"work": "default.train", "attempt": 1, "phase": phase, "finishedAt": ended}
    lies = {"cluster": HONEST, "sequence": known["sequence"] + 10, "seenAt": ended}
    spec = {**known, **lies, "states": [state], "agentEpoch": known["agentEpoch"] + 1}
    if is_difference:
        spec |= {"agentEpoch": known["agentEpoch"], "sinceSequence": known["sequence"]}
    name = report_name(FORGER, 7, is_difference=is_difference)
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": name},
        "spec": spec,
    }
    patch = Patch(type="apply", body=body, force=True)
    await fleet.store.patch(REPORTS, name, patch, write=AGENT)
    await nothing_has_moved(fleet)
    claim = (await fleet.workload("train")).status.claim
    assert claim is not None
    assert claim.attempt == 1


async def test_a_made_up_work_does_not_keep_a_workload_from_being_stopped(fleet: Fleet) -> None:
    await forge(fleet, labels={})
    await fleet.clock.advance(5)
    await fleet.change("train", {"spec": {"cancelled": True}})
    await fleet.until("train", "Cancelled", 90)
    assert await fleet.pods(HONEST) == 0


async def report(fleet: Fleet, number: int, *states: JsonObject) -> None:
    """A report of shanghai, beside those of its agent."""
    now, name = timestamp(fleet.clock.now()), report_name(FORGER, 7)
    spec = {"cluster": FORGER, "chunk": 7, "chunks": 8, "agentEpoch": 1, "sequence": number}
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": name},
        "spec": {**spec, "seenAt": now, "states": list(states)},
    }
    await fleet.store.patch(REPORTS, name, Patch(type="apply", body=body, force=True), write=AGENT)


async def test_an_agent_that_brings_nothing_back_delays_a_workload_once(fleet: Fleet) -> None:
    await fleet.change_cluster(FORGER, {"spec": {"hold": "None"}})
    await fleet.change_cluster(HONEST, {"spec": {"hold": "Hold"}})
    await fleet.apply(job("past", gpus=4, seconds=600))
    assert summary_of(await fleet.until("past", "Running", 60)) == FORGER
    past = await work_of(fleet, FORGER, "default.past")
    await fleet.change_cluster(HONEST, {"spec": {"hold": "None"}})
    await fleet.change_cluster(FORGER, {"spec": {"hold": "HoldAndDrain"}})
    await fleet.until("past", lambda it: summary_of(it) == HONEST, 120)
    while await works_of_the_forger(fleet):
        await fleet.clock.advance(0.5)
    metadata = {key: past["metadata"][key] for key in ("name", "namespace", "annotations")}
    body = {**past, "metadata": {**metadata, "labels": {ADOPTED: "ended"}}, "status": {}}
    ended = {"work": "default.past", "attempt": 1, "phase": "Succeeded"}
    await report(fleet, 0, ended)
    await fleet.clock.advance(1)
    await fleet.store.create(WORKS, body, namespace=work_namespace(FORGER), write=AGENT)
    await fleet.apply(job("next", gpus=1, seconds=5))
    for number in range(1, 50):
        later = {"work": "default.next", "attempt": 99, "phase": "Running"}
        await report(fleet, number, later, ended)
        noise = Patch(type="merge", body={"status": {"term": number}})
        place = work_namespace(FORGER)
        await fleet.store.patch(
            WORKS, "default.past", noise, namespace=place, subresource="status", write=AGENT
        )
        await fleet.clock.advance(4)
    assert await fleet.phase("next") == "Succeeded"


async def test_no_agent_uses_up_the_terms_of_the_fleet(fleet: Fleet) -> None:
    before = fleet.plane.terms.term
    patch = Patch(type="merge", body={"status": {"term": (1 << 30) - 1}})
    await fleet.store.patch(
        WORKS,
        "default.train",
        patch,
        namespace=work_namespace(HONEST),
        subresource="status",
        write=AGENT,
    )
    await fleet.change("train", {"spec": {"priority": 5}})
    await fleet.clock.advance(10)
    await fleet.apply(job("other", seconds=5))
    await fleet.until("other", "Succeeded", 60)
    assert fleet.plane.terms.term < before + 100


async def test_a_made_up_work_binds_no_volume(fleet: Fleet) -> None:
    await fleet.apply(CLAIM)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "scans", "namespace": "default"},
    }
    await forge(fleet, manifests=[{"object": volume}])
    await fleet.clock.advance(30)
    stored = await fleet.store.get(VOLUME_CLAIMS, "scans", "default")
    assert BOUND_IN not in stored.object()["metadata"].get("annotations", {})


async def test_what_is_made_up_is_deleted_in_the_end(fleet: Fleet) -> None:
    await forge(fleet)
    await fleet.clock.advance(70)
    assert await works_of_the_forger(fleet) == []
