"""What the Kubernetes driver does beyond the contract of all drivers, on a real member."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairway.agent.drivers.interface import LogQuery, Observation
from fairway.agent.drivers.kubernetes import rights
from fairway.api.amounts import Quantity
from fairway.api.work import Manifest, Stop
from tests.contracts.drivers import (
    config_map,
    in_phase,
    is_absent,
    job,
    pods_of,
    seen,
    service,
    work,
)
from tests.kubernetes.control_plane import kubeconfig_text
from tests.kubernetes.driving import TENANT_KINDS, KubernetesRig, driven
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member
from tests.waiting import PATIENCE_SECONDS

pytestmark = AT_THE_EDGE
Json = dict[str, Any]
STOP = Stop(grace_seconds=1)


@pytest.fixture
def member(fleet: Fleet) -> Member:
    return fleet.members["edge"]


@pytest.fixture
async def rig(member: Member) -> AsyncIterator[KubernetesRig]:
    async with driven(member) as opened:
        yield opened


def running(name: str, *command: str, **pod: Any) -> Json:
    made = job(name)
    spec = made["spec"]["template"]["spec"]
    spec["containers"][0]["command"] = list(command) or ["sleep", "3600"]
    spec.update(pod)
    return made


async def kubectl(member: Member, *words: str, given: str = "") -> str:
    return await asyncio.to_thread(member.kubectl, *words, given=given)


async def there(member: Member, kind: str, name: str, namespace: str = "default") -> Json | None:
    words = ("get", kind, name, f"--namespace={namespace}", "--ignore-not-found", "-o", "json")
    told = await kubectl(member, *words)
    return json.loads(told) if told.strip() else None


class TestWhatIsSeen:
    async def test_nodes_have_what_others_leave_of_them(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        foreign = service("foreign")
        container = foreign["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
        await asyncio.to_thread(member.apply, foreign)

        def used(observation: Observation) -> list[int]:
            return [node.others.get("nvidia.com/gpu", 0) // 10**9 for node in observation.nodes]

        observation = await rig.until(lambda item: sorted(used(item)) == [0, 0, 2], "two in use")
        node = next(node for node in observation.nodes if node.name == "l4-0")
        assert node.labels["nvidia.com/gpu.product"] == "NVIDIA-L4"
        assert node.allocatable["nvidia.com/gpu"] == 2 * 10**9
        assert observation.claims["fairway.dev/accelerators"] == "NVIDIA-L4"
        score = "resource-usage-score/gpuClusterAvailable"
        await rig.until(lambda item: item.claims[score] == "-80", "a score for two free GPUs")
        assert "batch/v1/Job" in observation.kinds
        assert observation.version.startswith("v1.")
        await kubectl(member, "delete", "deployment", "foreign")
        await rig.until(lambda item: used(item) == [0, 0, 0], "none in use")

    async def test_a_node_that_is_cordoned_says_so(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        await kubectl(member, "cordon", "l4-1")
        try:
            await rig.until(
                lambda item: any(node.taints for node in item.nodes if node.name == "l4-1"),
                "a taint of the node",
            )
        finally:
            await kubectl(member, "uncordon", "l4-1")
        await rig.until(lambda item: not any(node.taints for node in item.nodes), "no taint")

    @pytest.mark.parametrize(
        ("command", "reason", "code"),
        [(("oom",), "OOMKilled", 137), (("sh", "-c", "exit 3"), "Error", 3)],
        ids=["killed for its memory", "ended with a code"],
    )
    async def test_why_a_pod_failed_is_told(
        self, rig: KubernetesRig, command: tuple[str, ...], reason: str, code: int
    ) -> None:
        failing = work("failing", running("failing", *command))
        await rig.driver.apply(failing)
        observation = await rig.until(in_phase(failing, "Failed"), "a failed pod")
        (pod,) = pods_of(observation, failing)
        assert (pod.reason, pod.exit_code) == (reason, code)

    async def test_an_image_that_cannot_be_pulled_is_told(self, rig: KubernetesRig) -> None:
        body = running("pulling")
        body["spec"]["template"]["spec"]["containers"][0]["image"] = "absent:1"
        pulling = work("pulling", body)
        await rig.driver.apply(pulling)
        await rig.until(
            lambda item: (
                [(pod.phase, pod.reason) for pod in pods_of(item, pulling)]
                == [("Bound", "ErrImagePull")]
            ),
            "a pod that cannot pull its image",
        )

    async def test_pods_that_no_node_can_take_are_told(self, rig: KubernetesRig) -> None:
        large = work("large", job("large", cpu="1000"))
        await rig.driver.apply(large)
        observation = await rig.until(
            lambda item: (
                [(pod.phase, pod.reason) for pod in pods_of(item, large)]
                == [("Pending", "Unschedulable")]
            ),
            "a pod that finds no node",
        )
        (pod,) = pods_of(observation, large)
        assert "Insufficient cpu" in pod.message

    async def test_pods_that_a_quota_keeps_from_being_made_are_told(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "tight", "namespace": "default"},
            "spec": {"hard": {"pods": "0"}},
        }
        await asyncio.to_thread(member.apply, quota)
        try:
            # Until it is counted, the server says only that it does not know yet.
            counted = ("--for=jsonpath={.status.hard.pods}=0", f"--timeout={PATIENCE_SECONDS}s")
            await kubectl(member, "wait", "resourcequota/tight", *counted)
            told = await rig.until(lambda item: bool(item.namespaces), "the rules of a namespace")
            assert [rules.name for rules in told.namespaces] == ["default"]
            assert told.namespaces[0].quotas[0].hard == {"pods": Quantity.of(0)}
            one = work("one")
            await rig.driver.apply(one)
            await rig.until(
                lambda told: "exceeded quota" in told.works[one.metadata.name].faults.get(0, ""),
                "a fault that tells of the quota",
            )
        finally:
            await kubectl(member, "delete", "resourcequota", "tight", "--namespace=default")
        await rig.until(lambda item: not item.namespaces, "no rules any more")

    async def test_devices_of_resource_slices_are_counted_and_those_in_use_are_not_free(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        product = {"productName": {"string": "Example-Accelerator-1"}}
        devices = [{"name": f"device-{at}", "attributes": product} for at in range(4)]
        devices.append({"name": "ill", "taints": [{"key": "ill", "effect": "NoSchedule"}]})
        pool = {"name": "l4-0", "generation": 1, "resourceSliceCount": 1}
        published = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "l4-0-devices"},
            "spec": {
                "driver": "devices.example.com",
                "nodeName": "l4-0",
                "pool": pool,
                "devices": devices,
            },
        }
        sort = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "example"},
            "spec": {
                "selectors": [{"cel": {"expression": "device.driver == 'devices.example.com'"}}]
            },
        }
        exactly = {"deviceClassName": "example", "count": 3}
        template = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "three", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [{"name": "all", "exactly": exactly}]}}},
        }
        foreign = running(
            "claims", resourceClaims=[{"name": "all", "resourceClaimTemplateName": "three"}]
        )
        await asyncio.to_thread(member.apply, published, sort, template)

        def counted(observation: Observation) -> tuple[int, int]:
            node = next(node for node in observation.nodes if node.name == "l4-0")
            name = "deviceclass.resource.kubernetes.io/example"
            return node.allocatable.get(name, 0) // 10**9, node.others.get(name, 0) // 10**9

        try:
            await rig.until(lambda other: counted(other) == (4, 0), "four devices")
            uncounted = "fairway.dev/uncounted-devices"
            await rig.until(
                lambda item: item.claims.get(uncounted) == "1 device with a taint", "what is ill"
            )
            await asyncio.to_thread(member.apply, foreign)
            await rig.until(lambda item: counted(item) == (4, 3), "three in use")
            await kubectl(member, "delete", "job", "claims")
            await rig.until(lambda item: counted(item) == (4, 0), "four devices again")
        finally:
            words = ("resourceslice/l4-0-devices", "deviceclass/example")
            await kubectl(member, "delete", *words)
            await kubectl(member, "delete", "resourceclaimtemplate", "three")
        await rig.until(lambda item: counted(item) == (0, 0), "no device")

    async def test_logs_are_read_as_they_are_asked_for(self, rig: KubernetesRig) -> None:
        words = work("words", running("words", "sh", "-c", "echo one; echo two; sleep 3"))
        await rig.driver.apply(words)
        await rig.until(
            lambda seen: in_phase(words, "Ready")(seen) or in_phase(words, "Succeeded")(seen),
            "a pod that has begun, and may be over where the machine is slow",
        )
        query = LogQuery(work=words.metadata.name, follow=True)
        told = b"".join([part async for part in rig.driver.logs(query)]).decode().splitlines()
        assert told[1:3] == ["one", "two"]
        assert told[-1].endswith("ended")
        query = LogQuery(work=words.metadata.name, tail_lines=2)
        told = b"".join([part async for part in rig.driver.logs(query)]).decode().splitlines()
        assert len(told) == 2


class TestRights:
    async def test_a_namespace_that_is_missing_is_made_for_its_tenant(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        body = running("one")
        body["metadata"]["namespace"] = "new-team"
        one = work("one", body)
        await rig.driver.apply(one)
        await rig.until(in_phase(one, "Ready"), "a ready pod")
        assert await there(member, "serviceaccount", "fairway-tenant", "new-team") is not None
        await rig.driver.remove(one.metadata.name)
        await rig.until(is_absent(one), "the work gone")
        await kubectl(member, "delete", "namespace", "new-team", "--wait=false")

    async def test_a_namespace_of_somebody_else_gives_only_what_its_owner_gave(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        await kubectl(member, "create", "namespace", "strangers")
        body = running("one")
        body["metadata"]["namespace"] = "strangers"
        one = work("one", body)
        await rig.driver.apply(one)
        found = seen(await rig.driver.observe(), one)
        assert found is not None
        who = 'User "system:serviceaccount:strangers:fairway-tenant" cannot'
        assert who in found.faults[0]
        assert await there(member, "job", "one", "strangers") is None
        await kubectl(member, "delete", "namespace", "strangers", "--wait=false")

    @pytest.mark.parametrize(
        ("manifest", "what"),
        [
            pytest.param(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": "all", "namespace": "default"},
                    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
                },
                "Role is not allowed",
                id="a role",
            ),
            pytest.param(
                running("disk", volumes=[{"name": "etc", "hostPath": {"path": "/etc"}}]),
                "hostPath",
                id="a path of the node",
            ),
            pytest.param(
                running("account", serviceAccountName="fairway-tenant"),
                "service account fairway-tenant",
                id="a service account with rights",
            ),
        ],
    )
    async def test_an_agent_makes_nothing_that_gives_rights_whatever_its_hub_says(
        self, rig: KubernetesRig, member: Member, manifest: Json, what: str
    ) -> None:
        bad = work("bad", manifest)
        await rig.driver.apply(bad)
        found = seen(await rig.driver.observe(), bad)
        assert found is not None
        assert what in found.faults[0]
        kind, name = manifest["kind"].lower(), manifest["metadata"]["name"]
        assert await there(member, kind, name) is None

    async def test_a_service_account_that_is_there_already_cannot_be_brought(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        await kubectl(member, "create", "serviceaccount", "powerful", "--namespace=default")
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "powerful", "namespace": "default"},
        }
        brought = Manifest(object=account, update="CreateOnly", deletion="Orphan")
        one = work("one", brought, running("one", serviceAccountName="powerful"))
        await rig.driver.apply(one)
        found = seen(await rig.driver.observe(), one)
        assert found is not None
        assert "may have rights of its own" in found.faults[0]
        await kubectl(member, "delete", "serviceaccount", "powerful", "--namespace=default")

    async def test_an_agent_needs_no_more_rights_than_its_role(
        self, member: Member, tmp_path: Path
    ) -> None:
        account = rights.account("fairway-system", rights.AGENT)
        await asyncio.to_thread(give_rights, member)
        token = await kubectl(member, "create", "token", rights.AGENT, "--namespace=fairway-system")
        certificate = member.plane.folder / "serving.crt"
        limited = tmp_path / "kubeconfig"
        limited.write_text(kubeconfig_text(member.plane.url, token.strip(), certificate))
        for verb, kind in (("create", "jobs"), ("get", "secrets"), ("delete", "pods")):
            words = ("auth", "can-i", verb, kind, "--all-namespaces", f"--as={account}")
            answer = await asyncio.to_thread(member.asked, *words)
            assert answer.strip() == "no"
        async with driven(member, kubeconfig=str(limited)) as rig:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "key", "namespace": "limited"},
                "stringData": {"a": "b"},
            }
            body = running("one")
            body["metadata"]["namespace"] = "limited"
            one = work("one", secret, body)
            await rig.driver.apply(one)
            await rig.until(in_phase(one, "Ready"), "a ready pod")
            query = LogQuery(work=one.metadata.name)
            assert [part async for part in rig.driver.logs(query)]
            await rig.driver.stop(one.metadata.name, STOP)
            await rig.until(lambda told: not pods_of(told, one), "the pod gone")
            await rig.driver.remove(one.metadata.name)
            await rig.until(is_absent(one), "the work gone")
            assert await there(member, "secret", "key", "limited") is None
        await kubectl(member, "delete", "namespace", "limited", "--wait=false")


def give_rights(member: Member) -> None:
    """What an administrator does once so that an agent may look after a cluster."""
    system = {"name": rights.AGENT, "namespace": "fairway-system"}
    member.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fairway-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": system},
        rights.agent_role(TENANT_KINDS),
        rights.tenant_role(TENANT_KINDS),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": rights.AGENT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": rights.AGENT,
            },
            "subjects": [{"kind": "ServiceAccount", **system}],
        },
    )


class TestWhatIsThereAlready:
    async def test_what_somebody_else_runs_is_not_taken_over(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        await asyncio.to_thread(member.apply, running("theirs"))
        before = await there(member, "job", "theirs")
        one = work("one", running("theirs", "sleep", "1"))
        await rig.driver.apply(one)
        found = seen(await rig.driver.observe(), one)
        assert found is not None
        assert "was not made by this fleet" in found.faults[0]
        await rig.driver.remove(one.metadata.name)
        after = await there(member, "job", "theirs")
        assert before is not None
        assert after is not None
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"] == before["spec"]
        await kubectl(member, "delete", "job", "theirs")

    async def test_what_was_there_before_a_work_and_what_is_to_stay_outlive_it(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        await asyncio.to_thread(member.apply, config_map("found", a="theirs"))
        left = Manifest(object=config_map("left", b="2"), deletion="Orphan")
        one = work("one", config_map("found", a="ours"), left, config_map("ours", c="3"))
        await rig.driver.apply(one)
        await rig.driver.apply(one)
        await rig.driver.remove(one.metadata.name)
        await rig.until(is_absent(one), "the work gone")
        assert await there(member, "configmap", "ours") is None
        for name in ("found", "left"):
            body = await there(member, "configmap", name)
            assert body is not None
            assert "fairway.dev/work" not in body["metadata"].get("labels", {})
            await kubectl(member, "delete", "configmap", name)

    async def test_what_two_works_need_stays_until_both_are_removed(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        shared = config_map("shared", a="1")
        first, second = work("first", shared, job("first")), work("second", shared, job("second"))
        for item in (first, second):
            await rig.driver.apply(item)
        await rig.driver.remove(first.metadata.name)
        await rig.until(is_absent(first), "the first gone")
        found = seen(await rig.driver.observe(), second)
        assert found is not None
        assert set(found.objects) == {0, 1}
        assert await there(member, "configmap", "shared") is not None
        await rig.driver.remove(second.metadata.name)
        await rig.until(is_absent(second), "the second gone")
        assert await there(member, "configmap", "shared") is None

    async def test_a_driver_without_memory_tells_what_it_finds(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        name = "long-" * 14 + "name"
        manifests = (config_map("settings", a="1"), job("found"))
        long = work(name, *manifests, attempt=4)
        await rig.driver.apply(long)
        await rig.until(in_phase(long, "Ready"), "a ready pod")
        await rig.restart()
        found = seen(await rig.driver.observe(), long)
        assert found is not None
        assert (found.attempt, len(found.pods)) == (4, 1)
        assert [found.objects[at]["kind"] for at in (0, 1)] == ["ConfigMap", "Job"]
        await rig.driver.stop(found.name, STOP)
        await rig.driver.remove(found.name)
        await rig.until(is_absent(long), "the work gone")
        assert await there(member, "configmap", "settings") is None


class TestHowObjectsAreUpdated:
    @pytest.mark.parametrize(
        ("how", "expected"),
        [
            pytest.param({}, {"a": "ours", "b": "theirs"}, id="what we say is put right again"),
            pytest.param({"force": False}, None, id="a conflict is told where we may not force"),
            pytest.param({"update": "CreateOnly"}, {"a": "theirs", "b": "theirs"}, id="never"),
            pytest.param({"update": "Update"}, {"a": "ours", "b": "theirs"}, id="by an update"),
            pytest.param(
                {"ignored_fields": ("/data/a",)},
                {"a": "theirs", "b": "theirs"},
                id="but for fields that the cluster may change",
            ),
        ],
    )
    async def test_a_difference_is_mended(
        self, rig: KubernetesRig, member: Member, how: Json, expected: Json | None
    ) -> None:
        one = work("one", Manifest(object=config_map("settings", a="ours"), **how))
        await rig.driver.apply(one)
        patch = json.dumps({"data": {"a": "theirs", "b": "theirs"}})
        await kubectl(member, "patch", "configmap", "settings", "--type=merge", "-p", patch)

        def is_changed(observation: Observation) -> bool:
            found = seen(observation, one)
            return found is not None and found.objects[0]["data"].get("a") == "theirs"

        await rig.until(is_changed, "the change of somebody else")
        await rig.driver.apply(one)
        found = seen(await rig.driver.observe(), one)
        assert found is not None
        if expected is None:
            assert "conflict" in found.faults[0]
        else:
            assert found.faults == {}
            assert found.objects[0]["data"] == expected

    async def test_applying_what_is_there_changes_nothing(
        self, rig: KubernetesRig, member: Member
    ) -> None:
        one = work("one", config_map("settings", a="1"), service("web"))
        await rig.driver.apply(one)
        await rig.until(in_phase(one, "Ready"), "a ready pod")
        before = [await there(member, *what) for what in _OBJECTS]
        await rig.driver.apply(one)
        after = [await there(member, *what) for what in _OBJECTS]
        assert [_generation(item) for item in after] == [_generation(item) for item in before]

    async def test_what_is_no_longer_listed_goes(self, rig: KubernetesRig, member: Member) -> None:
        await rig.driver.apply(work("one", config_map("old"), config_map("kept")))
        await rig.driver.apply(work("one", config_map("kept")))
        assert await there(member, "configmap", "old") is None
        assert await there(member, "configmap", "kept") is not None


_OBJECTS = (("configmap", "settings"), ("deployment", "web"))


def _generation(body: Json | None) -> tuple[str, Any]:
    assert body is not None
    return body["metadata"]["uid"], body["metadata"].get("generation")


async def test_a_job_that_something_else_suspends_is_never_silently_so(
    rig: KubernetesRig, member: Member
) -> None:
    """As a Kueue does that manages every job of a namespace: by its word on admission."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "suspends"},
        "spec": {
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
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": "Object{metadata: Object.metadata{labels: "
                        "{'kueue.x-k8s.io/queue-name': 'default'}}, "
                        "spec: Object.spec{suspend: true}}"
                    },
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "suspends"},
        "spec": {"policyName": "suspends"},
    }
    await asyncio.to_thread(member.apply, policy, binding)
    try:
        one = work("one")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:  # the server heeds a new policy after a moment
                await rig.driver.apply(one)
                found = seen(await rig.driver.observe(), one)
                assert found is not None
                if found.faults:
                    break
                await rig.driver.remove(one.metadata.name)
                await rig.until(is_absent(one), "the work gone")
        assert "Kueue in the cluster holds it back" in found.faults[0]
        assert found.objects[0]["spec"]["suspend"] is True
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            await kubectl(member, "delete", kind, "suspends")
