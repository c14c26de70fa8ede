"""Native objects on a Kubernetes hub that has controllers, a scheduler and nodes of its own.

What names a queue runs in members and never beside the hub; what names none is nobody's business
but the hub's own controllers'. Nodes of the hub would run any pod that is made there, so that a pod
that is not there was not made.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.workload import Workload
from fairway.store.kubernetes.held_back import NAME, STATUS_NAME
from tests.endtoend.hubs import HubProcess
from tests.kinds import operators
from tests.kubernetes.demand import demand
from tests.kubernetes.fixtures import IN_THE_FLEET
from tests.kubernetes.fleet import Fleet, Member, plain_node
from tests.kubernetes.fleet import member as whole
from tests.kubernetes.hubs import basics, clear, cluster_of, secret_of
from tests.kubernetes.test_hub import FLEET, hub_on, store_of, until_all
from tests.kubernetes.test_hub import QUEUE as RESEARCH
from tests.peers import programs

pytestmark = IN_THE_FLEET
Json = dict[str, Any]
PATIENCE_SECONDS = 90
TEAM = "team"
BRIEF = {"fairway.dev/run-seconds": "1"}  # as long as a simulated cluster runs it
QUEUE = {"fairway.dev/queue": "research"}
POD = {
    "restartPolicy": "Never",
    "containers": [
        {"name": "main", "image": "registry.example/train:1", "command": ["sleep", "1"]}
    ],
}
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


@pytest.fixture(scope="module")
def place(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    """A cluster that keeps the hub's objects, and could run pods itself."""
    with whole(tmp_path_factory.mktemp("hubs"), "hub", [plain_node("beside-0")]) as found:
        found.kubectl("create", "namespace", TEAM)
        _wait_for_account(found)
        yield found


@pytest.fixture(scope="module")
def training(place: Member, request: pytest.FixtureRequest) -> None:
    """PyTorchJobs beside the hub's objects; with their operator where peers are tested."""
    bring = operators.start if programs.is_asked_for() else operators.define
    demand(lambda _: bring(place.plane, place.client, operators.TRAINING), request.config)


def _wait_for_account(place: Member) -> None:
    words = ("wait", "serviceaccount/default", f"--namespace={TEAM}", "--for=create")
    place.kubectl(*words, "--timeout=60s")


def body_of(kind: str, name: str, **labels: str) -> Json:
    """An object of a kind, of pods that ask for a GPU, which the hub's own nodes have not."""
    pod = {**POD, "containers": [{**POD["containers"][0], **GPU}]}
    marks = {"metadata": {"labels": {"app": name}}}
    services = {
        "selector": {"matchLabels": {"app": name}},
        "template": {**marks, "spec": {**pod, "restartPolicy": "Always"}},
    }
    specs: dict[str, tuple[str, Json]] = {
        "Job": ("batch/v1", {"template": {"spec": pod}}),
        "Deployment": ("apps/v1", {"replicas": 2, **services}),
        "StatefulSet": ("apps/v1", {"replicas": 2, "serviceName": name, **services}),
        "Pod": ("v1", pod),
        "PyTorchJob": (
            "kubeflow.org/v1",
            {
                "pytorchReplicaSpecs": {
                    "Master": {
                        "replicas": 1,
                        "template": {"spec": {"containers": [{**pod["containers"][0], **_NAMED}]}},
                    }
                }
            },
        ),
    }
    api_version, spec = specs[kind]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": TEAM, "labels": labels, "annotations": BRIEF},
        "spec": spec,
    }


_NAMED = {"name": "pytorch"}


def runnable(body: Json) -> Json:
    """The same, of pods that the hub's own nodes can run."""
    template = body["spec"]["template"]["spec"]
    plain = [
        {key: container[key] for key in container if key != "resources"}
        for container in template["containers"]
    ]
    body["spec"]["template"]["spec"] = {**template, "containers": plain}
    return body


def simulated() -> list[Json]:
    """A simulated cluster, and a queue for it."""
    return [yaml.safe_load(FLEET % "simulated"), yaml.safe_load(RESEARCH)]


async def call(place: Member, *words: str, given: str = "") -> str:
    """What somebody of the team types."""
    home = () if any(word.startswith("--namespace") for word in words) else (f"--namespace={TEAM}",)
    return await asyncio.to_thread(place.kubectl, *words, *home, given=given)


async def apply(place: Member, *bodies: Json) -> None:
    await asyncio.to_thread(place.apply, *bodies)


async def refusal(place: Member, *words: str, given: str = "") -> str:
    """Why kubectl may not."""
    done = await asyncio.to_thread(place._call, (*words, f"--namespace={TEAM}"), given)
    assert done.returncode != 0, done.stdout
    return done.stderr


async def seen(place: Member, kind: str, name: str) -> Json:
    words = ("get", kind, name, "-o", "json")
    found: Json = json.loads(await call(place, *words))
    return found


async def until(
    place: Member, kind: str, name: str, is_so: Callable[[Json], bool], what: str
) -> Json:
    """Looks at an object of the hub until it is so."""
    found: Json = {}
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_so(found := await seen(place, kind, name)):
                await asyncio.sleep(0.1)
            return found
    except TimeoutError:
        words = ("get", "workloads,clusters", "--all-namespaces")
        told = await asyncio.to_thread(place.asked, *words)
        raise AssertionError(f"waited in vain for {what}: {found}\n{told}") from None


def says(kind: str) -> Callable[[Json], bool]:
    def is_so(found: Json) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any(
            condition["type"] == kind and condition["status"] == "True" for condition in conditions
        )

    return is_so


async def pods(place: Member) -> list[str]:
    """Pods that controllers beside the hub made, by their owners."""
    words = ("get", "pods", "-o", "json")
    found = json.loads(await call(place, *words))["items"]
    return [
        f"{owner['kind']} {owner['name']}"
        for item in found
        for owner in item["metadata"].get("ownerReferences", ())
    ]


async def events(place: Member, name: str) -> list[Json]:
    words = ("get", "events", "-o", "json")
    words += (f"--field-selector=involvedObject.name={name}",)
    found: list[Json] = json.loads(await call(place, *words))["items"]
    return found


@asynccontextmanager
async def hub(place: Member, folder: Path, *clusters: Json) -> AsyncIterator[HubProcess]:
    """A hub on the server of a place, with a queue and clusters."""
    async with hub_on(place.plane, folder) as running:
        await apply(place, *clusters)
        await until_held(place)
        yield running


async def until_held(place: Member) -> None:
    """A policy takes effect some moments after it was made."""
    trial = body_of("Job", "trial", **QUEUE)
    words = ("create", "--dry-run=server", "-f", "-", "-o", "json")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            done = await asyncio.to_thread(place._call, words, json.dumps(trial))
            if done.returncode == 0 and "managedBy" in json.loads(done.stdout)["spec"]:
                return
            await asyncio.sleep(0.2)


def has_succeeded(name: str) -> Callable[[Workload], bool]:
    return lambda item: item.metadata.name == name and item.status.phase == "Succeeded"


async def test_a_job_makes_no_pod_on_the_hub_and_runs_in_a_member(
    fleet: Fleet, place: Member, tmp_path: Path
) -> None:
    edge = fleet.members["edge"]
    try:
        basis = basics(h100=0, a100=0)
        async with hub(place, tmp_path, *basis, secret_of(edge), cluster_of(edge)):
            job = body_of("Job", "train", **QUEUE)
            await apply(place, job)
            done = await until(place, "job", "train", says("Complete"), "the job to be complete")
            assert done["spec"]["managedBy"] == "fairway.dev/hub"
            assert done["status"]["succeeded"] == 1
            assert "Job train" not in await pods(place)
            words = ("get", "pods", f"--namespace={TEAM}", "-o", "json")
            ran = json.loads(await asyncio.to_thread(edge.kubectl, *words))["items"]
            assert [item["spec"]["nodeName"][:3] for item in ran] == ["l4-"]
            # Whoever keeps it in a repository sees no difference, by either way to apply.
            for way in ("--server-side=true", "--server-side=false"):
                same = ("diff", way, "-f", "-")
                await call(place, *same, given=json.dumps(job))
            await call(place, "delete", "job/train", "cluster/edge")
    finally:
        await asyncio.to_thread(clear, edge)


async def test_a_job_is_suspended_while_it_is_queued_and_ends_when_it_is_cancelled_there(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path, *simulated()):
        job = body_of("Job", "queued", **QUEUE)
        container = job["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": 999}}
        await apply(place, job)
        waits = ("wait", "job/queued", "--timeout=60s")
        await call(place, *waits, "--for=condition=Suspended")
        assert (await seen(place, "job", "queued"))["spec"]["suspend"] is True
        for way in ("--server-side=true", "--server-side=false"):
            await call(place, "diff", way, "-f", "-", given=json.dumps(job))
        cancelled = ("patch", "workload/job-queued", "--type=merge", "-p")
        await call(place, *cancelled, json.dumps({"spec": {"cancelled": True}}))
        await call(place, *waits, "--for=condition=Failed")
        await call(place, "delete", "job/queued")


async def test_a_job_that_is_over_does_not_run_again_when_its_workload_is_deleted(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path / "first", *simulated()):
        for name, seconds in (("over", "1"), ("stopped", "600")):
            job = body_of("Job", name, **QUEUE)
            job["metadata"]["annotations"] = {"fairway.dev/run-seconds": seconds}
            await apply(place, job)
        await until(place, "job", "over", says("Complete"), "the job to be complete")
        running = lambda item: item.get("status", {}).get("phase") == "Running"  # noqa: E731 - named for the reader
        await until(place, "workload", "job-stopped", running, "the job to run")
        cancelled = ("patch", "workload/job-stopped", "--type=merge", "-p")
        await call(place, *cancelled, json.dumps({"spec": {"cancelled": True}}))
        await call(place, "wait", "job/stopped", "--for=condition=Failed", "--timeout=60s")
        failed = [
            item["reason"]
            for item in (await seen(place, "job", "stopped"))["status"]["conditions"]
            if item["type"] == "Failed"
        ]
        assert failed == ["Cancelled"]
        for name, how in (("over", "Succeeded"), ("stopped", "Cancelled")):
            await until(place, "job", name, remembers(how), "what the job remembers")
            await call(place, "delete", f"workload/job-{name}")
    # Whoever leads next learns it from the objects alone.
    async with hub_on(place.plane, tmp_path / "second"):
        await apply(place, body_of("Job", "next", **QUEUE))
        await until(place, "job", "next", says("Complete"), "another job to be complete")
        left = json.loads(await call(place, "get", "workloads", "-o", "json"))["items"]
        names = {item["metadata"]["name"] for item in left}
        assert not names & {"job-over", "job-stopped"}
        await call(place, "delete", "job/over", "job/stopped", "job/next")


def remembers(how: str) -> Callable[[Json], bool]:
    return lambda item: item["metadata"]["annotations"].get("fairway.dev/finished") == how


DENIES = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-untagged-jobs"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["jobs"],
                    }
                ]
            },
            "validations": [{"expression": "false", "message": "jobs need a cost centre"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-untagged-jobs"},
        "spec": {"policyName": "no-untagged-jobs", "validationActions": ["Deny"]},
    },
]


async def test_what_the_server_of_a_member_refuses_is_said_at_once_and_frees_its_claim(
    fleet: Fleet, place: Member, tmp_path: Path
) -> None:
    edge = fleet.members["edge"]
    policies = [f"{body['kind'].lower()}/{body['metadata']['name']}" for body in DENIES]
    try:
        await apply(edge, *DENIES)
        await until_denied(edge)
        basis = basics(h100=0, a100=0)
        async with hub(place, tmp_path, *basis, secret_of(edge), cluster_of(edge)):
            await apply(place, body_of("Job", "denied", **QUEUE))
            refused = await until(
                place,
                "workload",
                "job-denied",
                lambda item: (
                    item.get("status", {}).get("reason") == "TemplateRefused"
                    and item["status"]["phase"] == "Waiting"
                ),
                "the refusal to be said",
            )
            assert "jobs need a cost centre" in refused["status"]["message"]
            assert "claim" not in refused["status"]
            assert "releasing" not in refused["status"]
            assert refused["status"]["requeue"]["avoid"] == ["edge"]
            # Invalid by the rules of the server itself, which no policy states.
            await asyncio.to_thread(edge.kubectl, "delete", *policies)
            wrong = body_of("Job", "wrong", **QUEUE)
            del wrong["metadata"]["labels"]
            container = wrong["spec"]["template"]["spec"]["containers"][0]
            container["ports"] = [{"containerPort": 70_000}]
            spec = {"queue": "research", "template": {"manifests": [wrong]}}
            metadata = {"name": "wrong", "namespace": TEAM}
            kind = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Workload"}
            await apply(place, {**kind, "metadata": metadata, "spec": spec})
            refused = await until(
                place,
                "workload",
                "wrong",
                lambda item: item.get("status", {}).get("reason") == "TemplateRefused",
                "the refusal to be said",
            )
            assert "containerPort" in refused["status"]["message"]
            await call(place, "delete", "workload/wrong", "job/denied", "cluster/edge")
    finally:
        await asyncio.to_thread(edge.kubectl, "delete", "--ignore-not-found", *policies)
        await asyncio.to_thread(clear, edge)


async def until_denied(place: Member) -> None:
    """A policy takes effect some moments after it was made."""
    trial = json.dumps(runnable(body_of("Job", "trial")) | {"metadata": {"name": "trial"}})
    words = ("create", "--dry-run=server", "-f", "-", "--namespace=default")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await asyncio.to_thread(place._call, words, trial)).returncode == 0:
            await asyncio.sleep(0.2)


@pytest.mark.usefixtures("training")
async def test_other_kinds_are_held_back_too_and_their_status_is_the_fleets(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path, *simulated()):
        names = {"Deployment": "serve", "Pod": "alone", "PyTorchJob": "learn"}
        made = {kind: body_of(kind, name, **QUEUE) for kind, name in names.items()}
        await apply(place, *made.values())
        await until(place, "pytorchjob", "learn", says("Succeeded"), "the training to end")
        await until(place, "deployment", "serve", says("Available"), "the service to be there")
        is_over = lambda item: item["status"].get("phase") == "Succeeded"  # noqa: E731 - named for the reader
        alone = await until(place, "pod", "alone", is_over, "the pod to end")
        assert "nodeName" not in alone["spec"]
        assert not [pod for pod in await pods(place) if "learn" in pod or "serve" in pod]
        # The controllers beside the hub do not write over what the fleet says.
        before = {kind: await seen(place, kind, name) for kind, name in names.items()}
        assert before["Deployment"]["status"]["readyReplicas"] == 2
        assert before["PyTorchJob"]["spec"]["runPolicy"]["suspend"] is True
        writer = ("--as=system:kube-controller-manager", "--as-group=system:masters")
        said = json.dumps({"status": {"conditions": []}})
        for kind, name in names.items():
            words = ("patch", kind, name, "--subresource=status", "--type=merge", "-p", said)
            await call(place, *words, *writer)
        for kind, name in names.items():
            assert (await seen(place, kind, name))["status"] == before[kind]["status"]
            same = ("diff", "--server-side=true", "-f", "-")
            await call(place, *same, given=json.dumps(made[kind]))
        await call(place, "delete", *(f"{k}/{n}" for k, n in names.items()))


async def test_what_names_no_queue_of_ours_is_left_to_the_hubs_own_controllers(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path, *simulated()):
        kueues = {"kueue.x-k8s.io/queue-name": "research"}
        for name, labels in (("free", {}), ("queued-by-kueue", kueues)):
            await apply(place, runnable(body_of("Job", name, **labels)))
            done = await until(place, "job", name, says("Complete"), "the job to be complete")
            assert "managedBy" not in done["spec"]
            assert f"Job {name}" in await pods(place)
        await apply(place, runnable(body_of("StatefulSet", "own")))
        is_ready = lambda item: item["status"].get("replicas")  # noqa: E731 - named for the reader
        await until(place, "statefulset", "own", is_ready, "the hub's own controller to begin")
        async with store_of(place.plane) as store:
            found = await until_all(store, 0, lambda item: True, "are there")
            assert not {"job-free", "job-queued-by-kueue", "statefulset-own"} & set(found)
        await call(place, "delete", "job/free", "job/queued-by-kueue", "sts/own")


@pytest.mark.usefixtures("training")
async def test_what_cannot_be_held_back_is_refused_with_what_to_do_instead(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path, *simulated()):
        stateful = json.dumps(body_of("StatefulSet", "store", **QUEUE))
        told = await refusal(place, "create", "-f", "-", given=stateful)
        assert "submit a Workload that has it in spec.template.manifests" in told
        # An object that its controller has begun with takes no queue, but where that stops it.
        await apply(place, runnable(body_of("Job", "begun")))
        told = await refusal(place, "label", "job/begun", "fairway.dev/queue=research")
        assert "fairway.dev/hub in spec.managedBy, from the moment it is made" in told
        await call(place, "delete", "job/begun")
        await apply(place, body_of("PyTorchJob", "late"))
        labelled = ("label", "pytorchjob/late", "fairway.dev/queue=research")
        await call(place, *labelled)
        late = await seen(place, "pytorchjob", "late")
        assert late["spec"]["runPolicy"]["suspend"] is True
        resume = ("patch", "pytorchjob/late", "--type=merge", "-p")
        released = json.dumps({"spec": {"runPolicy": {"suspend": False}}})
        await call(place, *resume, released)
        late = await seen(place, "pytorchjob", "late")
        assert late["spec"]["runPolicy"]["suspend"] is True
        await call(place, "delete", "pytorchjob/late")


async def test_a_namespace_with_a_default_queue_holds_its_objects_back(
    place: Member, tmp_path: Path
) -> None:
    async with hub(place, tmp_path, *simulated()):
        labels = {"fairway.dev/default-queue": "research"}
        metadata = {"name": "research", "labels": labels}
        await apply(place, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        job = body_of("Job", "by-default")
        job["metadata"]["namespace"] = "research"
        await apply(place, job)
        async with store_of(place.plane) as store:
            await until_all(store, 1, has_succeeded("job-by-default"), "has succeeded")
        words = ("get", "pods,jobs", "--namespace=research", "-o", "json")
        found = json.loads(await call(place, *words))["items"]
        assert [(item["kind"], item["spec"]["managedBy"]) for item in found] == [
            ("Job", "fairway.dev/hub")
        ]
        await call(place, "delete", "namespace", "research")


async def test_objects_are_held_back_while_no_hub_runs(place: Member, tmp_path: Path) -> None:
    async with hub(place, tmp_path / "first", *simulated()):
        pass
    await apply(place, body_of("Job", "meanwhile", **QUEUE))
    made = await seen(place, "job", "meanwhile")
    assert made["spec"]["managedBy"] == "fairway.dev/hub"
    async with hub_on(place.plane, tmp_path / "second"):
        await until(place, "job", "meanwhile", says("Complete"), "the job to be complete")
    assert "Job meanwhile" not in await pods(place)


async def test_without_policies_that_write_people_say_it_themselves(
    place: Member, tmp_path: Path
) -> None:
    """As on servers before Kubernetes 1.36."""
    async with hub(place, tmp_path, *simulated()):
        gone = ("delete", "mutatingadmissionpolicybindings", NAME, STATUS_NAME)
        await call(place, *gone)
        job = body_of("Job", "by-hand", **QUEUE)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:  # until the server has noticed
                words = ("create", "--dry-run=server", "-f", "-")
                done = await asyncio.to_thread(place._call, words, json.dumps(job))
                if done.returncode != 0:
                    break
                await asyncio.sleep(0.2)
        assert "it must have fairway.dev/hub in spec.managedBy" in done.stderr
        job["spec"]["managedBy"] = "fairway.dev/hub"
        await apply(place, job)
        await until(place, "job", "by-hand", says("Complete"), "the job to be complete")
        assert "Job by-hand" not in await pods(place)


async def test_without_any_policy_nothing_runs_twice(place: Member, tmp_path: Path) -> None:
    """An object that the hub's own controllers run becomes no workload, and says why."""
    async with hub(place, tmp_path, *simulated()):
        for sort in ("mutating", "validating"):
            gone = ("delete", f"{sort}admissionpolicybindings", NAME, STATUS_NAME)
            await call(place, *gone)
        job = runnable(body_of("Job", "let-in", **QUEUE))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:  # until the server has noticed
                words = ("create", "--dry-run=server", "-f", "-", "-o", "json")
                done = await asyncio.to_thread(place._call, words, json.dumps(job))
                if done.returncode == 0 and "managedBy" not in json.loads(done.stdout)["spec"]:
                    break
                await asyncio.sleep(0.2)
        await apply(place, job)
        await until(place, "job", "let-in", says("Complete"), "the hub's own controller to run it")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (told := [
                event["message"]
                for event in await events(place, "let-in")
                if event["reason"] == "NotHeldBack"
            ]):  # fmt: skip
                await asyncio.sleep(0.1)
        assert "the hub's own controllers would run it, and so would a cluster" in told[0]
        async with store_of(place.plane) as store:
            found = await until_all(store, 0, lambda item: True, "are there")
            assert "job-let-in" not in found
        await call(place, "delete", "job/let-in")
