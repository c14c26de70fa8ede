"""The decision, and a cluster's own words, written into manifests."""

from __future__ import annotations

import pytest

from fairway.api.amounts import Quantity
from fairway.api.cluster import Mirror, Profile
from fairway.api.meta import EnvironmentVariable, NodeRequirement, NodeTerm, Toleration
from fairway.kinds.decision import Change, decorate, work_label
from fairway.kinds.profile import apply_profile
from fairway.kinds.registry import built_in
from tests.kinds.recorded import samples

SAMPLES = {sample.name: sample.manifest for sample in samples()}
KINDS = built_in()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def decorated(sample: str, **changes: Change) -> dict:
    manifest = SAMPLES[sample]
    kind = KINDS.of(manifest)
    assert kind is not None
    return decorate(kind, manifest, changes)


def in_zones(*zones: str) -> tuple[NodeTerm, ...]:
    return tuple(
        NodeTerm(match_expressions=(NodeRequirement(key="zone", operator="In", values=(zone,)),))
        for zone in zones
    )


def job(**spec) -> dict:
    template = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], **spec}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": template},
    }


def pod_of(manifest: dict, **change) -> dict:
    kind = KINDS.of(manifest)
    assert kind is not None
    return decorate(kind, manifest, {"pod": Change(**change)})["spec"]["template"]["spec"]


def test_each_pod_set_gets_its_own() -> None:
    found = decorated(
        "jobset-pytorch",
        driver=Change(node_selector={"pool": "cpu"}),
        workers=Change(node_selector={"pool": "h100"}, labels={"team": "vision"}),
    )
    driver, workers = (
        replicated_job["template"]["spec"]["template"]
        for replicated_job in found["spec"]["replicatedJobs"]
    )
    assert driver["spec"]["nodeSelector"] == {"pool": "cpu"}
    assert workers["spec"]["nodeSelector"] == {"pool": "h100"}
    assert "labels" not in driver.get("metadata", {})
    assert workers["metadata"]["labels"] == {"team": "vision"}


def test_a_pod_is_its_own_template() -> None:
    found = decorated("pod-notebook", pod=Change(node_selector={"zone": "a"}))
    assert found["spec"]["nodeSelector"] == {"accelerator": "a100", "zone": "a"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], [["zone=a"], ["zone=b"]]),
        ([["disk=ssd"]], [["disk=ssd", "zone=a"], ["disk=ssd", "zone=b"]]),
        (
            [["disk=ssd"], ["disk=nvme"]],
            [
                ["disk=ssd", "zone=a"],
                ["disk=ssd", "zone=b"],
                ["disk=nvme", "zone=a"],
                ["disk=nvme", "zone=b"],
            ],
        ),
    ],
    ids=["nothing was required", "one term", "each with each"],
)
def test_required_terms_hold_beside_those_there_are(own: list, expected: list) -> None:
    def plain(term: list[str]) -> dict:
        tests = [item.split("=") for item in term]
        return {"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in tests]}

    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [plain(item) for item in own]}}}
    pod = pod_of(job(**({"affinity": affinity} if own else {})), node_affinity=in_zones("a", "b"))
    terms = pod["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [plain(item) for item in expected]


def test_a_toleration_is_added_once() -> None:
    gpu = Toleration(key="gpu", operator="Exists", effect="NoSchedule")
    own = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert pod_of(job(tolerations=[own]), tolerations=(gpu,))["tolerations"] == [own]
    assert pod_of(job(), tolerations=(gpu,))["tolerations"] == [own]


def test_variables_of_a_decision_count_before_those_written() -> None:
    written = [
        {"name": "a", "env": [{"name": "FORM", "value": "old"}, {"name": "X", "value": "1"}]}
    ]
    (container,) = pod_of(job(containers=written), environment={"FORM": "new"})["containers"]
    assert container["env"] == [{"name": "X", "value": "1"}, {"name": "FORM", "value": "new"}]


def test_another_form_asks_for_other_amounts_with_another_image() -> None:
    containers = [
        {"name": "side", "image": "side:1", "resources": {"requests": {"cpu": "1"}}},
        {"name": "main", "image": "cuda:1", "resources": {"limits": {"nvidia.com/gpu": 8}}},
    ]
    pod = pod_of(
        job(containers=containers),
        requests={"nvidia.com/gpu": Quantity.of(0), "amd.com/gpu": Quantity.of(4)},
        image="rocm:1",
    )
    side, main = pod["containers"]
    assert main["resources"] == {"limits": {}}
    assert side["resources"]["limits"] == {"amd.com/gpu": "4"}
    assert (side["image"], main["image"]) == ("rocm:1", "rocm:1")


def test_priorities_and_all_else_are_left_alone() -> None:
    manifest = job(priorityClassName="high", hostNetwork=True)
    kind = KINDS.of(manifest)
    assert kind is not None
    assert decorate(kind, manifest, {"pod": Change(), "other": Change(image="x")}) == manifest


def test_a_long_name_of_a_work_is_shortened_and_stays_its_own() -> None:
    short, one, other = "vision.train", "vision." + "a" * 80, "vision." + "a" * 81
    assert work_label(short) == short
    assert len(work_label(one)) == len(work_label(other)) == 63
    assert work_label(one) != work_label(other)


PROFILE = Profile(
    resources={"rdma/fabric": "rdma/hca_shared_devices_a", "nvidia.com/gpu": "vendor.example/gpu"},
    node_labels={"fleet/zone": "topology.kubernetes.io/zone"},
    storage_classes={"fast": "premium-rwo", "premium-rwo": "other"},
    mirrors=(
        Mirror(prefix="registry.example/llm/", replacement="mirror.local/models/"),
        Mirror(prefix="registry.example/", replacement="mirror.local/"),
    ),
    environment=(
        EnvironmentVariable(name="NCCL_IB_HCA", value="mlx5"),
        EnvironmentVariable(name="HTTP_PROXY", value="proxy:80"),
    ),
    tolerations=(Toleration(key="fleet", operator="Exists"),),
    scheduler_name="gang-scheduler",
)


def fitted(manifest: dict) -> dict:
    return apply_profile(KINDS.of(manifest), manifest, PROFILE)


def test_a_profile_speaks_the_words_of_its_cluster() -> None:
    container = {
        "name": "c",
        "image": "registry.example/llm/server:2",
        "env": [{"name": "HTTP_PROXY", "value": "own"}],
        "resources": {"limits": {"rdma/fabric": 1, "cpu": "2"}},
    }
    preferred = {"key": "fleet/zone", "operator": "Exists"}
    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [preferred]}}
            ]
        },
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "fleet/zone"}]},
    }
    manifest = job(
        containers=[container], nodeSelector={"fleet/zone": "a", "kept": "b"}, affinity=affinity
    )
    pod = fitted(manifest)["spec"]["template"]["spec"]
    (found,) = pod["containers"]
    assert found["image"] == "mirror.local/models/server:2"
    assert found["resources"]["limits"] == {"rdma/hca_shared_devices_a": 1, "cpu": "2"}
    assert {variable["name"]: variable["value"] for variable in found["env"]} == {
        "HTTP_PROXY": "own",
        "NCCL_IB_HCA": "mlx5",
    }
    assert pod["nodeSelector"] == {"topology.kubernetes.io/zone": "a", "kept": "b"}
    terms = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert terms[0]["preference"]["matchExpressions"][0]["key"] == "topology.kubernetes.io/zone"
    (near,) = pod["affinity"]["podAntiAffinity"][REQUIRED]
    assert near["topologyKey"] == "topology.kubernetes.io/zone"
    assert pod["tolerations"] == [{"key": "fleet", "operator": "Exists"}]
    assert pod["schedulerName"] == "gang-scheduler"


def test_storage_classes_are_renamed_once_wherever_they_are() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }
    assert fitted(claim)["spec"]["storageClassName"] == "premium-rwo"
    (template,) = fitted(SAMPLES["statefulset-store"])["spec"]["volumeClaimTemplates"]
    assert template["spec"]["storageClassName"] == "premium-rwo"


def test_a_scheduler_that_a_controller_chose_stays() -> None:
    found = fitted(SAMPLES["volcano-job-distributed"])
    assert "schedulerName" not in found["spec"]["tasks"][0]["template"]["spec"]
    assert pod_scheduler("default-scheduler") == "gang-scheduler"
    assert pod_scheduler("kai-scheduler") == "kai-scheduler"


def pod_scheduler(name: str) -> str:
    return fitted(job(schedulerName=name))["spec"]["template"]["spec"]["schedulerName"]


def test_an_empty_profile_changes_nothing() -> None:
    for manifest in SAMPLES.values():
        assert apply_profile(KINDS.of(manifest), manifest, Profile()) == manifest
