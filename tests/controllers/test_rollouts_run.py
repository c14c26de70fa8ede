"""A new version of a service goes out in batches, and stops or goes back when it is bad."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.names import work_namespace
from fairway.api.rollout import APPROVED, RESUMED, approval_of, failure_of
from fairway.clock import VirtualClock
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import REVISIONS, ROLLOUTS, WORKS
from tests.controllers.fleets import Fleet, running
from tests.controllers.rollouts import (
    BAD,
    BETTER,
    FLEET,
    GOOD,
    USER,
    Numbers,
    found,
    images,
    patch,
    ready,
    rollout,
    service,
    until,
)

CANARY = {"canary": {"percent": 10}, "maxUnavailable": 2}
PROMETHEUS = """
apiVersion: fairway.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {metrics: {prometheus: {url: "http://prometheus.example"}}}
"""


@pytest.fixture
def numbers() -> Numbers:
    return Numbers()


@pytest.fixture
async def fleet(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path, numbers: Numbers
) -> AsyncIterator[Fleet]:
    async with running(store, clock, tmp_path / "clusters", sources=numbers) as found:
        await found.apply(FLEET)
        await clock.advance(1)
        yield found


async def served(fleet: Fleet, kind: str = "Deployment", **spec: object) -> None:
    """A service that runs, and a Rollout that has seen it."""
    await fleet.apply(service(kind=kind))
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await fleet.apply(rollout(**spec))
    await until(fleet, "Completed", 30)


async def watched(fleet: Fleet, seconds: float, floor: int) -> None:
    """Lets time pass, in which never fewer replicas are ready than may be."""
    for _ in range(int(seconds * 4)):
        assert ready(fleet) >= floor, images(fleet)
        await fleet.clock.advance(0.25)


async def test_a_rollout_that_is_made_for_a_service_starts_nothing_anew(fleet: Fleet) -> None:
    await served(fleet)
    began = {
        pod.name: pod.started_at for pod in fleet.worlds.world("beijing").pods("default.llm") or []
    }
    await fleet.clock.advance(60)
    pods = fleet.worlds.world("beijing").pods("default.llm") or []
    assert {pod.name: pod.started_at for pod in pods} == began
    told = await found(fleet)
    assert (told.status.revision, told.status.stable_revision) == (1, 1)
    assert [(cluster.cluster, cluster.ready) for cluster in told.status.clusters] == [
        ("beijing", 4),
        ("hangzhou", 3),
        ("shanghai", 1),
    ]


async def test_a_new_version_goes_out_batch_by_batch_and_never_lacks_more_than_allowed(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy={**CANARY, "byGroup": True, "soakSeconds": 30})
    await fleet.apply(service(BETTER))
    soaking = await until(fleet, "Soaking")
    assert soaking.status.current_batch == 0
    assert images(fleet) == {"beijing": [GOOD] * 4, "hangzhou": [GOOD] * 3, "shanghai": [BETTER]}
    await watched(fleet, 25, floor=6)
    assert images(fleet)["beijing"] == [GOOD] * 4
    await until(fleet, lambda item: item.status.current_batch == 1)
    await watched(fleet, 20, floor=6)
    assert images(fleet)["hangzhou"] == [GOOD] * 3
    await watched(fleet, 100, floor=6)
    done = await until(fleet, "Completed")
    assert images(fleet) == {
        "beijing": [BETTER] * 4,
        "hangzhou": [BETTER] * 3,
        "shanghai": [BETTER],
    }
    assert (done.status.revision, done.status.stable_revision, done.status.updated) == (2, 2, 8)
    assert [item.outcome for item in done.status.history] == ["Completed", "Completed"]


async def test_a_bad_version_never_goes_past_its_canary_and_the_good_one_comes_back(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy=CANARY)
    await fleet.apply(service(BAD))
    await watched(fleet, 55, floor=7)
    assert images(fleet) == {"beijing": [GOOD] * 4, "hangzhou": [GOOD] * 3, "shanghai": [BAD]}
    back = await until(fleet, "RolledBack")
    assert back.status.reason == "ProgressDeadlineExceeded"
    assert images(fleet)["shanghai"] == [GOOD]
    assert (back.status.revision, back.status.stable_revision) == (2, 1)
    assert [cluster.revision for cluster in back.status.clusters] == [1, 1, 1]
    await fleet.clock.advance(120)
    assert (await found(fleet)).status.phase == "RolledBack"  # until there is another template
    await fleet.apply(service(BETTER))
    done = await until(fleet, "Completed")
    assert done.status.revision == 3
    assert images(fleet)["beijing"] == [BETTER] * 4


async def test_a_bad_version_stays_where_it_is_if_asked_and_may_be_tried_again(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy=CANARY, onFailure="Pause")
    await fleet.apply(service(BAD))
    paused = await until(fleet, "Paused")
    assert paused.status.reason == "ProgressDeadlineExceeded"
    await watched(fleet, 90, floor=7)
    assert images(fleet)["shanghai"] == [BAD]
    for name in ("beijing", "hangzhou", "shanghai"):
        await fleet.change_cluster(name, {"spec": {"simulated": {"faults": {"badImages": []}}}})
    await patch(fleet, {"metadata": {"annotations": {RESUMED: failure_of(paused.status)}}})
    fleet.worlds.world("shanghai").fail_pod(
        (fleet.worlds.world("shanghai").pods("default.llm") or [])[0], fleet.clock.now()
    )
    await until(fleet, "Completed")
    assert images(fleet)["beijing"] == [BAD] * 4


async def test_a_gate_that_fails_takes_the_version_back(fleet: Fleet, numbers: Numbers) -> None:
    gate = {
        "name": "errors",
        "query": 'errors{revision="${revision}",cluster=~"${clusters}"}',
        "condition": "< 0.01",
        "intervalSeconds": 10,
        "failureLimit": 1,
    }
    await fleet.apply(PROMETHEUS)
    numbers.number = 0.001
    await served(fleet, strategy={**CANARY, "soakSeconds": 60, "gates": [gate]})
    await fleet.apply(service(BETTER))
    soaking = await until(fleet, "Soaking")
    await fleet.clock.advance(15)
    assert (await found(fleet)).status.gates[0].successes >= 1
    assert f'revision="{soaking.status.target}",cluster=~"shanghai"' in numbers.queries[-1]
    numbers.number = 0.5
    back = await until(fleet, "RolledBack")
    assert (back.status.reason, back.status.message) == (
        "GateFailed",
        "gate errors: 0.5 is not < 0.01",
    )
    assert back.status.gates[0].failures == 2  # once is borne
    assert images(fleet)["shanghai"] == [GOOD]


async def test_a_gate_asks_the_server_that_it_names_where_the_fleet_allows_it(
    fleet: Fleet, numbers: Numbers
) -> None:
    gate = {
        "name": "errors",
        "query": "errors",
        "condition": "< 1",
        "intervalSeconds": 10,
        "prometheus": {"url": "https://own.example"},
    }
    allowed = PROMETHEUS.replace("metrics: {", "metrics: {allowOwnServers: true, ")
    await fleet.apply(allowed)
    numbers.number = 0.0
    await served(fleet, strategy={**CANARY, "soakSeconds": 60, "gates": [gate]})
    await fleet.apply(service(BETTER))
    await until(fleet, lambda item: bool(item.status.gates and item.status.gates[0].successes))
    assert {address.url for address in numbers.addresses} == {"https://own.example"}
    await fleet.apply(PROMETHEUS)
    message = "the fleet does not allow servers of one's own (metrics.allowOwnServers)"
    await until(fleet, lambda item: item.status.gates[0].message == message)


async def test_a_gate_without_an_answer_lets_nothing_pass_and_fails_in_the_end(
    fleet: Fleet, numbers: Numbers
) -> None:
    gate = {"name": "errors", "query": "errors", "condition": "< 1", "intervalSeconds": 10}
    await fleet.apply(PROMETHEUS)
    await served(fleet, strategy={**CANARY, "gates": [gate]})
    await fleet.apply(service(BETTER))
    await until(fleet, "Soaking")
    await fleet.clock.advance(40)
    told = await found(fleet)
    assert (told.status.phase, told.status.gates[0].message) == ("Soaking", "nobody answers")
    back = await until(fleet, "RolledBack")
    assert back.status.reason == "GateInconclusive"


async def test_a_batch_waits_for_an_approval_and_goes_on_with_it(fleet: Fleet) -> None:
    await served(fleet, strategy={**CANARY, "approval": "EachBatch"})
    await fleet.apply(service(BETTER))
    waiting = await until(fleet, "AwaitingApproval")
    await fleet.clock.advance(600)
    assert images(fleet)["beijing"] == [GOOD] * 4
    await patch(fleet, {"metadata": {"annotations": {APPROVED: approval_of(waiting.status)}}})
    await until(fleet, "Completed")
    assert images(fleet)["beijing"] == [BETTER] * 4


async def test_what_is_paused_goes_no_further_and_its_time_does_not_run(fleet: Fleet) -> None:
    await served(fleet, strategy={**CANARY, "soakSeconds": 20})
    await fleet.apply(service(BETTER))
    await until(fleet, "Soaking")
    await patch(fleet, {"spec": {"paused": True}})
    await until(fleet, "Paused")
    await fleet.clock.advance(300)
    assert images(fleet)["beijing"] == [GOOD] * 4
    await patch(fleet, {"spec": {"paused": False}})
    await until(fleet, "Completed")


async def test_an_undo_in_the_middle_goes_straight_back(fleet: Fleet) -> None:
    await served(fleet, strategy={**CANARY, "soakSeconds": 600})
    await fleet.apply(service(BETTER))
    await until(fleet, "Soaking")
    await fleet.apply(service(GOOD))
    done = await until(fleet, "Completed", 30)
    assert images(fleet)["shanghai"] == [GOOD]
    assert [(item.revision, item.outcome) for item in done.status.history] == [
        (2, "Superseded"),
        (3, "Completed"),
    ]


async def test_a_stateful_service_has_two_revisions_in_one_cluster(fleet: Fleet) -> None:
    batches = [{"percent": 50}]
    await served(
        fleet, kind="StatefulSet", strategy={**CANARY, "batches": batches, "approval": "EachBatch"}
    )
    await fleet.apply(service(BETTER, kind="StatefulSet"))
    await until(fleet, "AwaitingApproval")
    waiting = await found(fleet)
    await patch(fleet, {"metadata": {"annotations": {APPROVED: approval_of(waiting.status)}}})
    await until(
        fleet,
        lambda item: item.status.phase == "AwaitingApproval" and item.status.current_batch == 1,
    )
    assert images(fleet) == {
        "beijing": [GOOD, BETTER, BETTER, BETTER],
        "hangzhou": [GOOD] * 3,
        "shanghai": [BETTER],
    }


async def test_more_replicas_are_claimed_while_a_version_goes_out_if_none_may_be_lacking(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy={"maxUnavailable": 0, "maxSurge": 1})
    await fleet.apply(service(BETTER))
    await until(fleet, lambda item: item.status.phase == "Progressing", 30)
    await fleet.until("llm", lambda item: item.status.replicas == 9, 60)  # claimed, hence charged
    for _ in range(600):
        assert ready(fleet) >= 8
        await fleet.clock.advance(0.25)
    await until(fleet, "Completed")
    await fleet.until("llm", lambda item: item.status.replicas == 8, 60)
    assert images(fleet)["beijing"] == [BETTER] * 4


async def test_a_rollout_may_be_there_before_its_service(fleet: Fleet) -> None:
    await fleet.apply(rollout(strategy=CANARY))
    told = await until(fleet, lambda item: item.status.reason == "WorkloadMissing", 30)
    assert told.status.phase is None
    await fleet.apply(service())
    await fleet.until("llm", lambda item: item.status.pods.ready == 8, 60)
    await until(fleet, "Completed", 30)
    await fleet.apply(service(BETTER))
    await until(fleet, lambda item: item.status.phase == "Completed" and item.status.revision == 2)
    assert images(fleet)["beijing"] == [BETTER] * 4


async def test_of_two_rollouts_for_one_service_the_older_counts(fleet: Fleet) -> None:
    await served(fleet, strategy={**CANARY, "approval": "EachBatch"})
    await fleet.clock.advance(5)
    other = rollout(strategy={"maxUnavailable": 8})
    await fleet.apply(other.replace("name: llm\n", "name: other\n", 1))
    await fleet.apply(service(BETTER))
    await until(fleet, "AwaitingApproval")
    await fleet.clock.advance(60)
    assert images(fleet)["beijing"] == [GOOD] * 4
    told = (await fleet.store.get(ROLLOUTS, "other", "default")).object()
    assert told["status"]["reason"] == "AnotherRollout"


async def test_a_service_that_is_scaled_meanwhile_goes_on(fleet: Fleet) -> None:
    await served(fleet, strategy={**CANARY, "approval": "EachBatch"})
    await fleet.apply(service(BETTER))
    waiting = await until(fleet, "AwaitingApproval")
    await fleet.apply(service(BETTER, replicas=12))
    await fleet.until("llm", lambda item: item.status.pods.ready == 12, 60)
    assert images(fleet)["beijing"] == [GOOD] * 4
    assert images(fleet)["shanghai"] == [BETTER] * 5  # it has the new one already, hence all of it
    await patch(fleet, {"metadata": {"annotations": {APPROVED: approval_of(waiting.status)}}})
    done = await until(fleet, "Completed")
    assert done.status.updated == 12


async def test_a_cluster_that_is_lost_meanwhile_holds_nobody_up(fleet: Fleet) -> None:
    await served(fleet, strategy={"maxUnavailable": 5})
    outage = {"spec": {"simulated": {"faults": {"outage": True}}}}
    await fleet.change_cluster("hangzhou", outage)
    await fleet.clock.advance(400)
    await fleet.apply(service(BETTER))
    done = await until(
        fleet, lambda item: item.status.phase == "Completed" and item.status.revision == 2
    )
    assert [cluster.cluster for cluster in done.status.clusters if cluster.is_unheard] == [
        "hangzhou"
    ]
    assert images(fleet)["beijing"] == [BETTER] * 4
    await fleet.change_cluster("hangzhou", {"spec": {"simulated": {"faults": {"outage": False}}}})
    await fleet.clock.advance(120)
    assert images(fleet)["hangzhou"] == [BETTER] * 3  # it gets it when it is back


async def test_a_service_whose_rollout_goes_asks_for_no_more_replicas(fleet: Fleet) -> None:
    await served(fleet, strategy={"maxUnavailable": 0, "maxSurge": 2, "soakSeconds": 600})
    await fleet.apply(service(BETTER))
    await fleet.until("llm", lambda item: item.status.replicas == 10, 60)
    await fleet.store.delete(ROLLOUTS, "llm", namespace="default", write=USER)
    await fleet.until("llm", lambda item: item.status.replicas == 8, 60)
    assert (await fleet.workload("llm")).status.surge_replicas == 0


async def test_a_native_deployment_is_staged_like_a_workload(fleet: Fleet) -> None:
    def native(image: str) -> str:
        body = yaml.safe_load(service(image))["spec"]["template"]["manifests"][0]
        body["metadata"] = {
            "name": "llm",
            "namespace": "default",
            "labels": {"fairway.dev/queue": "serving"},
            "annotations": {"fairway.dev/policy": "home-first"},
        }
        body["spec"]["replicas"] = 8
        return str(yaml.safe_dump(body))

    def run(name: str) -> list[str]:
        pods = fleet.worlds.world(name).pods("default.deployment-llm") or []
        return sorted(pod.images[0] for pod in pods if pod.is_live)

    await fleet.apply(native(GOOD))
    await fleet.clock.advance(1)
    await fleet.until("deployment-llm", lambda item: item.status.pods.ready == 8, 60)
    target = {"kind": "Deployment", "name": "llm"}
    await fleet.apply(rollout(workload=target, strategy={**CANARY, "approval": "EachBatch"}))
    await until(fleet, "Completed", 30)
    await fleet.apply(native(BETTER))
    await until(fleet, "AwaitingApproval")
    assert (run("beijing"), run("shanghai")) == ([GOOD] * 4, [BETTER])


async def test_a_hub_that_starts_anew_at_any_point_ends_at_the_same(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    worlds = None
    async with running(store, clock, tmp_path / "clusters") as fleet:
        worlds = fleet.worlds
        await fleet.apply(FLEET)
        await served(fleet, strategy={**CANARY, "soakSeconds": 10})
        await fleet.apply(service(BAD))
    for _ in range(60):
        async with running(store, clock, tmp_path / "clusters", worlds=worlds) as fleet:
            await clock.advance(2.5)
            assert images(fleet)["beijing"] == [GOOD] * 4
    async with running(store, clock, tmp_path / "clusters", worlds=worlds) as fleet:
        await until(fleet, "RolledBack")
        await clock.advance(10)
        assert images(fleet) == {
            "beijing": [GOOD] * 4,
            "hangzhou": [GOOD] * 3,
            "shanghai": [GOOD],
        }


async def test_revisions_past_the_limit_are_forgotten_and_go_with_their_rollout(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy={"maxUnavailable": 8}, revisionHistoryLimit=1)
    for number in range(2, 6):
        await fleet.apply(service(f"vllm:{number}"))
        await until(
            fleet,
            lambda item, number=number: (
                item.status.phase == "Completed" and item.status.revision == number
            ),
        )
    await fleet.clock.advance(5)
    told = await found(fleet)
    assert [item.revision for item in told.status.history] == [4, 5]
    kept = await fleet.store.list(REVISIONS)
    assert len(kept.items) == 2
    await fleet.store.delete(ROLLOUTS, "llm", namespace="default", write=USER)
    began = [pod.started_at for pod in fleet.worlds.world("beijing").pods("default.llm") or []]
    await fleet.clock.advance(60)
    assert (await fleet.store.list(REVISIONS)).items == []
    pods = fleet.worlds.world("beijing").pods("default.llm") or []
    assert [pod.started_at for pod in pods] == began  # its mark stays, and nothing starts anew


PART = {
    "canary": {"percent": 25, "clusters": ["beijing"]},
    "partOfCluster": True,
    "maxUnavailable": 1,
    "soakSeconds": 30,
}


def objects(fleet: Fleet, cluster: str) -> dict[str, int]:
    """Pods of each object in a cluster; their names end in a number."""
    pods = fleet.worlds.world(cluster).pods("default.llm") or []
    names = [pod.name.rpartition("-")[0] for pod in pods]
    return {name: names.count(name) for name in sorted(set(names))}


async def test_a_canary_may_be_a_part_of_a_cluster_in_a_second_deployment(fleet: Fleet) -> None:
    await served(fleet, strategy=PART)
    began = {pod.name: pod.started_at for pod in fleet.worlds.world("beijing").pods("default.llm")}
    await fleet.apply(service(BETTER))
    await fleet.clock.advance(0.25)
    while (await found(fleet)).status.phase != "Soaking":
        await watched(fleet, 1, floor=7)
    assert images(fleet)["beijing"] == [GOOD, GOOD, BETTER, BETTER]
    assert images(fleet)["hangzhou"] == [GOOD] * 3
    assert objects(fleet, "beijing") == {"llm": 2, "llm-canary": 2}
    pods = fleet.worlds.world("beijing").pods("default.llm") or []
    kept = {pod.name: pod.started_at for pod in pods if pod.images == (GOOD,)}
    assert kept.items() <= began.items(), "the others are not touched"
    second = await manifest(fleet, "beijing", "llm-canary")
    first = await manifest(fleet, "beijing", "llm")
    labels = second["spec"]["template"]["metadata"]["labels"]
    assert labels.items() >= second["spec"]["selector"]["matchLabels"].items()
    assert labels.items() >= first["spec"]["selector"]["matchLabels"].items(), "Services see both"
    assert first["spec"]["template"]["metadata"]["labels"].items() >= {"app": "llm"}.items()
    while (await found(fleet)).status.phase != "Completed":
        await watched(fleet, 1, floor=7)
    await watched(fleet, 60, floor=7)
    assert images(fleet)["beijing"] == [BETTER] * 4
    assert objects(fleet, "beijing") == {"llm": 4}


async def test_a_bad_part_of_a_cluster_goes_back_and_the_rest_never_restarts(
    fleet: Fleet,
) -> None:
    await served(fleet, strategy=PART)
    pods = fleet.worlds.world("beijing").pods("default.llm") or []
    began = {pod.name: pod.started_at for pod in pods}
    await fleet.apply(service(BAD))
    await watched(fleet, 50, floor=7)
    assert images(fleet)["beijing"].count(BAD) == 1, "the second of them waits for the first"
    back = await until(fleet, "RolledBack")
    assert back.status.reason == "ProgressDeadlineExceeded"
    await watched(fleet, 60, floor=7)
    assert objects(fleet, "beijing") == {"llm": 4}
    assert images(fleet)["beijing"] == [GOOD] * 4
    pods = fleet.worlds.world("beijing").pods("default.llm") or []
    same = [pod.name for pod in pods if began.get(pod.name) == pod.started_at]
    assert len(same) == 3, "those of the first Deployment ran all the time"


async def test_a_hub_that_restarts_goes_on_with_a_part_of_a_cluster(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await fleet.apply(FLEET)
        await served(fleet, strategy={**PART, "approval": "AfterCanary"})
        await fleet.apply(service(BETTER))
        waits = await until(fleet, "AwaitingApproval")
        before = [(item.beside, item.base) for item in waits.status.clusters]
        assert before[0] == (2, waits.status.stable)
        worlds = fleet.worlds
    async with running(store, clock, tmp_path / "clusters", worlds=worlds) as fleet:
        await fleet.clock.advance(30)
        again = await found(fleet)
        assert [(item.beside, item.base) for item in again.status.clusters] == before
        assert objects(fleet, "beijing") == {"llm": 2, "llm-canary": 2}
        await patch(fleet, {"metadata": {"annotations": {APPROVED: approval_of(again.status)}}})
        await until(fleet, "Completed")
        await watched(fleet, 60, floor=7)
        assert objects(fleet, "beijing") == {"llm": 4}


async def manifest(fleet: Fleet, cluster: str, name: str) -> dict[str, Any]:
    """An object as the work of a cluster has it."""
    work = (await fleet.store.get(WORKS, "default.llm", work_namespace(cluster))).object()
    bodies = [item["object"] for item in work["spec"]["manifests"]]
    return next(body for body in bodies if body["metadata"]["name"] == name)
