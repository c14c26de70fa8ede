"""A hub whose objects are on a real kube-apiserver: submitted there, run in simulated clusters."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.names import FINALIZER
from fairway.api.submission import CREATED_BY, SUBMITTED_BY
from fairway.api.workload import Workload
from fairway.clock import SystemClock
from fairway.controllers.cache import WORKLOADS, WORKS
from fairway.controllers.terms import LEASES, NAME
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kubeapi import KubeApi, load_access
from fairway.store.interface import Patch, WatchFrom, Write
from fairway.store.keys import CLUSTERS, DEFINITIONS, EVENTS, FLEET_POLICIES
from fairway.store.kubernetes.stamps import Stamps
from fairway.store.kubernetes.store import KubernetesStore
from tests.endtoend.hubs import HubProcess
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.demand import demand
from tests.kubernetes.sweeping import sweep
from tests.waiting import seen

pytestmark = pytest.mark.real

PATIENCE_SECONDS = 180
_DEFINES = 'resource="customresourcedefinitions"'
FLEET = """
apiVersion: fairway.dev/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  simulated:
    nodePools:
      - name: gpu
        count: 2
        shape: {cpu: "64", memory: 512Gi, nvidia.com/gpu: 8, pods: 110}
"""
QUEUE = """
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {uncovered: Unlimited}
"""
JOB = """
apiVersion: fairway.dev/v1alpha1
kind: Workload
metadata: {name: train-%d, namespace: default}
spec:
  queue: research
  runSeconds: {estimate: 1}
  template:
    manifests:
      - apiVersion: batch/v1
        kind: Job
        metadata: {name: train-%d}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
                - {name: main, image: training, resources: {limits: {nvidia.com/gpu: 4}}}
"""
POLICY = """
apiVersion: governance.fairway.dev/v1alpha1
kind: FleetPolicy
metadata: {name: ours}
spec: %s
"""

LONG_AGO = "2000-01-01T00:00:00Z"
# Shows annotations as the server has them, whenever it began to write them.
AS_THEY_ARE = Stamps(workloads_since=LONG_AGO, natives_since=LONG_AGO)


@pytest.fixture
def kubectl(request: pytest.FixtureRequest) -> Path:
    return demand(binaries.newest_kubectl, request.config).path


async def call(plane: ControlPlane, kubectl: Path, *words: str, given: str = "") -> str:
    """Runs kubectl against the server of the hub."""
    command = [str(kubectl), f"--kubeconfig={plane.kubeconfig}", *words]
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@asynccontextmanager
async def hub_on(plane: ControlPlane, folder: Path, *words: str) -> AsyncIterator[HubProcess]:
    where = ("--store", "kubernetes", "--kubeconfig", str(plane.kubeconfig))
    hub = HubProcess(folder, *where, *words)
    try:
        await hub.start()
        yield hub
    finally:
        await hub.end()


@asynccontextmanager
async def store_of(plane: ControlPlane) -> AsyncIterator[KubernetesStore]:
    store = KubernetesStore(KubeApi(load_access(str(plane.kubeconfig)), SystemClock()))
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def clean_store(plane: ControlPlane) -> AsyncIterator[KubernetesStore]:
    """The store of a server that other tests use as well."""
    async with store_of(plane) as store:
        await sweep(store)
        yield store
        await sweep(store)


async def until_all(
    store: KubernetesStore, count: int, is_so: Callable[[Workload], bool], what: str
) -> dict[str, Workload]:
    """Follows workloads until so many are so."""
    found: dict[str, Workload] = {}
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for event in await store.watch(WORKLOADS, start=WatchFrom(bookmarks=True)):
                if event.type in ("ADDED", "MODIFIED"):
                    workload = codec.decode(event.stored.raw, Workload)
                    found[workload.metadata.name] = workload
                if sum(is_so(item) for item in found.values()) >= count:
                    return found
    except TimeoutError:
        phases = {name: value.status.phase for name, value in found.items()}
        raise AssertionError(f"waited in vain until {count} {what}: {phases}") from None
    raise AssertionError("a watch ended")


def has_run_once(workload: Workload) -> bool:
    """Whether one attempt succeeded; where the machine is slow, a place may have been given up."""
    *earlier, last = workload.status.history
    return last.reason == "Succeeded" and all(past.blame == "Place" for past in earlier)


def has(workload: Workload, condition: str) -> bool:
    return any(
        item.type == condition and item.status == "True" for item in workload.status.conditions
    )


def has_succeeded(workload: Workload) -> bool:
    return workload.status.phase == "Succeeded"


async def test_what_kubectl_submits_to_the_server_runs_and_finishes(
    real: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    jobs = 12
    async with clean_store(real) as store, hub_on(real, tmp_path) as hub:
        await call(real, kubectl, "apply", "-f", "-", given=f"{FLEET % 'first'}---{QUEUE}")
        manifests = "---".join(JOB % (number, number) for number in range(jobs))
        await call(real, kubectl, "apply", "-f", "-", given=manifests)
        done = await until_all(store, jobs, has_succeeded, "have succeeded")
        assert [item for item in done.values() if not has_run_once(item)] == []
        shown = await call(real, kubectl, "get", "workloads", "--no-headers")
        assert [line.split()[3] for line in shown.splitlines()] == ["Succeeded"] * jobs

        # The hub's own API answers what a server of objects cannot.
        standing = await hub.client.ask("fleets", "fleet", "standing")
        assert [queue["queue"] for queue in standing["queues"]] == ["research"]
        listing = await hub.client.list("workloads")
        assert len(listing.items) == jobs
        await call(real, kubectl, "delete", "workloads", "--all", "--timeout=120s")
        assert (await store.list(WORKS)).items == []


async def test_a_fleet_policy_on_the_server_decides_what_runs(
    real: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    async with clean_store(real) as store, hub_on(real, tmp_path) as hub:
        await call(real, kubectl, "apply", "-f", "-", given=f"{FLEET % 'first'}---{QUEUE}")
        for wrong, said in (
            ("{priority: {min: 2, max: 1}}", "min must not exceed max"),
            ("{registries: [acme]}", "spec.registries"),
            ("{regions: [eu]}", "unknown field"),
        ):
            with pytest.raises(AssertionError, match=said):
                await call(real, kubectl, "apply", "-f", "-", given=POLICY % wrong)
        allowed = "{namespaces: {names: [default]}, registries: [%s]}"
        await call(real, kubectl, "apply", "-f", "-", given=POLICY % allowed % "ghcr.io/acme")
        await call(real, kubectl, "apply", "-f", "-", given=JOB % (0, 0))
        await until_all(
            store, 1, lambda item: item.status.reason == "PolicyViolated", "breaks a policy"
        )
        answer = await hub.client.ask("workloads", "train-0", "explain", namespace="default")
        assert "fleet policy ours does not allow image training" in answer["message"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await call(real, kubectl, "get", "fp", "--no-headers")).split()[3:4] != ["1"]:
                await asyncio.sleep(0.5)
        await call(real, kubectl, "apply", "-f", "-", given=POLICY % allowed % "docker.io")
        await until_all(store, 1, has_succeeded, "has succeeded")

        # What runs when the policy changes.
        long = (JOB % (1, 1)).replace("estimate: 1", "estimate: 600")
        await call(real, kubectl, "apply", "-f", "-", given=long)
        await until_all(store, 1, lambda item: item.status.phase == "Running", "runs")
        await call(real, kubectl, "apply", "-f", "-", given=POLICY % allowed % "ghcr.io/acme")
        await until_all(store, 1, lambda item: has(item, "PolicyViolated"), "has the condition")
        stops = {"spec": {"onViolation": "Stop", "graceSeconds": 1}}
        await store.patch(
            FLEET_POLICIES, "ours", Patch(type="merge", body=stops), write=Write(user="root")
        )
        stopped = await until_all(
            store, 1, lambda item: item.status.reason == "PolicyViolated", "waits"
        )
        past = stopped["train-1"].status.history[-1]
        assert "fleet policy ours does not allow image training" in past.message
        events = await call(real, kubectl, "get", "events", "-o", "name")
        assert "train-1" in events


BEARS = """
apiVersion: fairway.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: bears, namespace: default}
spec: {tolerations: [{key: repairs, operator: Exists, tolerationSeconds: 4}]}
"""


async def test_policies_queues_and_what_can_never_start_on_the_server(
    real: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    """The status of a policy that chooses, a queue that refuses, and one of an earlier hub."""

    async def read(kind: str, name: str) -> dict[str, Any]:
        return yaml.safe_load(await call(real, kubectl, "get", kind, name, "-o", "yaml"))

    async def change(words: str, patch: dict[str, Any]) -> None:
        text = codec.to_yaml(patch)
        await call(real, kubectl, "patch", *words.split(), "--type=merge", "-p", text)

    chooses = (
        "apiVersion: fairway.dev/v1alpha1\nkind: PlacementPolicy\n"
        "metadata: {name: single, namespace: default}\nspec: {numberOfClusters: 1}\n"
    )
    refuses = QUEUE.replace("uncovered: Unlimited", "uncovered: Unlimited, refuseImpossible: true")
    earlier = QUEUE.replace("research", "earlier").replace("uncovered: Unlimited", "")
    huge = yaml.safe_load(JOB % (9, 9))
    job = huge["spec"]["template"]["manifests"][0]
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 999}}
    async with clean_store(real), hub_on(real, tmp_path):
        given = [FLEET % "first", chooses, refuses, earlier]
        await call(real, kubectl, "apply", "-f", "-", given="---\n".join(given))
        chosen = await seen(
            lambda: read("placementpolicy", "single"),
            lambda found: bool(found.get("status", {}).get("decisions")),
            "the choice of the policy",
        )
        assert [each["cluster"] for each in chosen["status"]["decisions"]] == ["first"]
        assert chosen["status"]["chosen"] == 1
        await call(real, kubectl, "apply", "-f", "-", given=codec.to_yaml(huge))
        await seen(
            lambda: read("workload", "train-9"),
            lambda found: found.get("status", {}).get("reason") == "Impossible",
            "the refusal",
        )
        await seen(
            lambda: read("queue", "earlier"),
            lambda found: found.get("status", {}).get("uncovered") == "Unavailable",
            "what the queue does with the uncovered",
        )
        # As a hub left it that did not know the field: what it meant is kept.
        status = {"status": {"uncovered": None, "observedGeneration": 1}}
        await change("queue earlier --subresource=status", status)
        await seen(
            lambda: read("queue", "earlier"),
            lambda found: found["spec"].get("uncovered") == "Unlimited",
            "the migration",
        )


async def test_a_taint_without_a_time_evicts_once_and_belongs_to_its_user(
    real: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    """The server stamps nothing; the hub notes in the status when it first saw the taint."""
    place = FLEET % "first"
    tainted = f"{place}  taints: [{{key: repairs, effect: NoExecute}}]\n"
    job = yaml.safe_load(JOB % (1, 1))
    job["spec"] |= {"policy": "bears", "runSeconds": {"estimate": 3600}}

    async def apply(given: str) -> None:
        await call(real, kubectl, "apply", "--server-side", "-f", "-", given=given)

    async with clean_store(real) as store, hub_on(real, tmp_path):
        await apply(f"{place}---{QUEUE}---{BEARS}---\n{yaml.safe_dump(job)}")
        await until_all(store, 1, lambda item: item.status.phase == "Running", "run")
        await apply(tainted)
        await until_all(store, 1, lambda item: bool(item.status.history), "have left")
        await apply(tainted)
        await asyncio.sleep(5)  # as long as it took to be evicted again before
        (left,) = (await until_all(store, 1, lambda item: True, "are there")).values()
        assert [past.reason for past in left.status.history] == ["ClusterTainted"]
        assert left.status.claim is None
        seen = codec.decode((await store.get(CLUSTERS, "first")).raw, Cluster)
        assert [(taint.key, taint.time_added is None) for taint in seen.status.taints] == [
            ("repairs", False)
        ]
        await apply(place)
        await until_all(store, 1, lambda item: item.status.phase == "Running", "run again")
        seen = codec.decode((await store.get(CLUSTERS, "first")).raw, Cluster)
        assert seen.spec.taints == ()


async def test_a_hub_goes_on_when_its_server_and_etcd_were_killed(
    request: pytest.FixtureRequest, kubectl: Path, tmp_path: Path
) -> None:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    (tmp_path / "plane").mkdir()
    jobs = 8
    with control_plane.running(tmp_path / "plane") as plane:
        async with store_of(plane) as store, hub_on(plane, tmp_path):
            await call(plane, kubectl, "apply", "-f", "-", given=f"{FLEET % 'first'}---{QUEUE}")
            manifests = "---".join(JOB % (number, number) for number in range(jobs))
            await call(plane, kubectl, "apply", "-f", "-", given=manifests)
            await until_all(store, 1, lambda item: item.status.claim is not None, "is claimed")
            await store.end_watches()
            for name in ("kube-apiserver", "etcd"):
                plane.kill(name)
            for name in ("etcd", "kube-apiserver"):
                control_plane.start(plane, name, plane.commands[name])
            await asyncio.to_thread(plane.wait_until_ready)
            done = await until_all(store, jobs, has_succeeded, "have succeeded")
            assert [item for item in done.values() if not has_run_once(item)] == []


async def test_another_replica_takes_over_from_one_that_is_killed(
    real: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    jobs, soon = 6, "--lease-seconds=6"
    async with clean_store(real) as store:
        async with (
            hub_on(real, tmp_path / "one", soon) as one,
            hub_on(real, tmp_path / "two", soon) as two,
        ):
            await call(real, kubectl, "apply", "-f", "-", given=f"{FLEET % 'first'}---{QUEUE}")
            await call(real, kubectl, "apply", "-f", "-", given=JOB % (0, 0))
            await until_all(store, 1, has_succeeded, "has succeeded")
            before = await lease(store)
            assert before["leaseDurationSeconds"] == 6
            leader = next(
                hub for hub in (one, two) if before["holderIdentity"].endswith(f"-{hub.pid}")
            )
            # Agents inside run with the leader; whichever replica is asked, they answer.
            for hub in (one, two):
                assert "started on" in await hub.log("train-0")
            await leader.kill()
            manifests = "---".join(JOB % (number, number) for number in range(1, jobs))
            await call(real, kubectl, "apply", "-f", "-", given=manifests)
            done = await until_all(store, jobs, has_succeeded, "have succeeded")
            after = await lease(store)
            # What was decided is told by any replica, also what another one decided.
            await leader.start()
            for hub in (one, two):
                admitted = await seen(
                    lambda hub=hub: admissions(hub),
                    lambda admitted: len(admitted) >= jobs,
                    "the decisions of both replicas",
                )
                assert set(admitted) == {f"default/train-{number}" for number in range(jobs)}
        events = [item.object() for item in (await store.list(EVENTS)).items]
        uid = done["train-0"].metadata.uid
        reasons = {event["reason"] for event in events if event["involvedObject"]["uid"] == uid}
        assert {"Admitted", "Succeeded"} <= reasons
        assert before["holderIdentity"] != after["holderIdentity"]
        assert before["leaseTransitions"] < after["leaseTransitions"]
        assert [item for item in done.values() if not has_run_once(item)] == []


async def test_a_hub_defines_anew_only_what_is_not_what_it_says(
    real: ControlPlane, kubectl: Path
) -> None:
    async def asked() -> int:
        """How often the server was told a definition."""
        told = (await call(real, kubectl, "get", "--raw", "/metrics")).splitlines()
        mine = [
            item for item in told if item.startswith("apiserver_request_total") and _DEFINES in item
        ]
        return sum(int(float(item.rpartition(" ")[2])) for item in mine if 'verb="APPLY"' in item)

    async with clean_store(real) as store:
        await prepare_kubernetes(store, SystemClock())
        before = await asked()
        await prepare_kubernetes(store, SystemClock())
        assert await asked() == before
        right = (await store.get(DEFINITIONS, "queues.fairway.dev")).object()["spec"]
        version = {**right["versions"][0], "additionalPrinterColumns": []}
        changed = Patch(type="merge", body={"spec": {"versions": [version]}})
        await store.patch(DEFINITIONS, "queues.fairway.dev", changed, write=Write())
        await prepare_kubernetes(store, SystemClock())
        assert await asked() == before + 1
        assert (await store.get(DEFINITIONS, "queues.fairway.dev")).object()["spec"] == right


async def test_the_server_notes_who_creates_a_workload_and_lets_nobody_say_otherwise(
    real: ControlPlane,
) -> None:
    body = yaml.safe_load(JOB % (0, 0))
    async with clean_store(real) as store:
        await prepare_kubernetes(store, SystemClock())
        ada = KubernetesStore(store.api.acting_as("ada", ("system:masters",)))
        store.stamps = ada.stamps = AS_THEY_ARE

        async def creator() -> str:
            made = await ada.create(
                WORKLOADS, body, namespace="default", write=Write(user="root", dry_run=True)
            )
            return made.object()["metadata"]["annotations"][CREATED_BY]

        async with asyncio.timeout(PATIENCE_SECONDS):
            while await creator() == "root":  # a policy takes effect a little after it is made
                await asyncio.sleep(0.1)
        made = (
            await ada.create(WORKLOADS, body, namespace="default", write=Write(user="root"))
        ).object()
        assert made["metadata"]["annotations"][CREATED_BY] == "ada"
        assert made["metadata"]["finalizers"] == [FINALIZER]
        for note in ("root", None):
            patch = Patch(type="merge", body={"metadata": {"annotations": {CREATED_BY: note}}})
            changed, _ = await ada.patch(
                WORKLOADS, "train-0", patch, namespace="default", write=Write()
            )
            assert changed.object()["metadata"]["annotations"][CREATED_BY] == "ada"
        # Whoever names another queue submits it anew; nobody else says who did.
        ben = KubernetesStore(store.api.acting_as("ben", ("lab", "system:masters")))
        ben.stamps = AS_THEY_ARE
        assert made["metadata"]["annotations"][SUBMITTED_BY].startswith("ada\n")
        for who, patch, submitter in (
            (ben, {"metadata": {"annotations": {SUBMITTED_BY: "eve"}}}, "ada\n"),
            (store, {"metadata": {"annotations": {SUBMITTED_BY: "eve"}}}, "ada\n"),
            (ben, {"spec": {"priority": 3}}, "ada\n"),
            (ben, {"spec": {"queue": "another"}}, "ben\nlab\n"),
        ):
            changed, _ = await who.patch(
                WORKLOADS,
                "train-0",
                Patch(type="merge", body=patch),
                namespace="default",
                write=Write(),
            )
            assert changed.object()["metadata"]["annotations"][SUBMITTED_BY].startswith(submitter)
        # The finalizer is given once, and others stay beside it.
        none = Patch(type="merge", body={"metadata": {"finalizers": None}})
        changed, _ = await ada.patch(WORKLOADS, "train-0", none, namespace="default", write=Write())
        assert "finalizers" not in changed.object()["metadata"]
        other = {"name": "another", "finalizers": ["example.com/other"]}
        made = (
            await ada.create(
                WORKLOADS, {**body, "metadata": other}, namespace="default", write=Write(user="ada")
            )
        ).object()
        assert set(made["metadata"]["finalizers"]) == {"example.com/other", FINALIZER}
        body["metadata"]["name"] = "by-the-hub"
        made = (
            await store.create(
                WORKLOADS, body, namespace="default", write=Write(user="grace", groups=("lab",))
            )
        ).object()
        assert made["metadata"]["annotations"][CREATED_BY] == "grace"
        assert made["metadata"]["annotations"][SUBMITTED_BY] == "grace\nlab"


async def admissions(hub: HubProcess) -> list[str]:
    """The workloads that were admitted, as a replica tells it."""
    answer = await hub.client.ask("fleets", "fleet", "decisions")
    steps = [step for made in answer["decisions"] for step in made["steps"]]
    return [step["workload"] for step in steps if step["action"] == "Admit"]


async def lease(store: KubernetesStore) -> dict[str, Any]:
    """Who leads, and in which term."""
    return (await store.get(LEASES, NAME, "fairway-system")).object()["spec"]
