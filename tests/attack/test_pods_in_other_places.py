"""Pods are described in many places of many kinds, and operators run them from all of these.

Once only the templates that a kind counts were checked: a step of an Argo workflow, a sidecar of a
Spark driver or a model of KServe had what the same pod in a Job was refused.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from fairway.api import codec
from fairway.api.cluster import Permits
from fairway.api.kindrule import KindRule
from fairway.kinds.permitted import faults_in
from fairway.kinds.registry import Kinds, built_in
from fairway.kinds.rules.load import kind_of
from tests.kinds.recorded import samples

Json = dict[str, Any]
SAMPLES = {sample.name.partition("-")[0]: sample.manifest for sample in reversed(samples())}
ACCOUNTS = ("models", "spark", "trainer", "workflow")  # of the samples

OTHER = {"name": "other", "image": "program"}
PRIVILEGED = {**OTHER, "securityContext": {"privileged": True}}
CAPABLE = {**OTHER, "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
ROOTED = [{"name": "root", "hostPath": {"path": "/"}}]
SHARED = [{"name": "all", "nfs": {"server": "10.0.0.1", "path": "/"}}]
POD = {"spec": {"containers": [OTHER], "hostPID": True}}
HIDDEN = yaml.safe_dump({"kind": "Pod", "spec": {"containers": [OTHER], "hostPID": True}})
CONTEXT = {"privileged": True}

# Kind, place, what is put there, and what of it is refused.
PLACES: list[tuple[str, str, Any, str]] = [
    (
        "workflow",
        "spec.templates.2.container.securityContext",
        CONTEXT,
        "container.securityContext",
    ),
    ("workflow", "spec.templates.1.script.securityContext", CONTEXT, "script.securityContext"),
    ("workflow", "spec.templates.2.sidecars", [PRIVILEGED], "sidecars[other].securityContext"),
    ("workflow", "spec.templates.2.initContainers", [CAPABLE], "capabilities.add: SYS_ADMIN"),
    ("workflow", "spec.templates.2.containerSet", {"containers": [CAPABLE]}, "SYS_ADMIN"),
    ("workflow", "spec.templates.2.volumes", ROOTED, "volumes[root].hostPath: / of the node"),
    ("workflow", "spec.volumes", ROOTED, "spec.volumes[root].hostPath"),
    ("workflow", "spec.hostNetwork", True, "spec.hostNetwork"),
    ("workflow", "spec.templateDefaults", {"container": PRIVILEGED}, "templateDefaults.container"),
    ("workflow", "spec.podSpecPatch", "hostNetwork: true", "spec.podSpecPatch"),
    ("workflow", "spec.templates.2.podSpecPatch", "{{inputs.parameters.any}}", "podSpecPatch"),
    ("workflow", "spec.executor", {"serviceAccountName": "argo"}, "service account argo"),
    ("workflow", "spec.templates.2.executor", {"serviceAccountName": "argo"}, "account argo"),
    ("workflow", "spec.templates.2.serviceAccountName", "argo", "service account argo"),
    ("workflow", "spec.podPriorityClassName", "system-node-critical", "podPriorityClassName"),
    ("workflow", "spec.templates.2.priorityClassName", "{{inputs.any}}", "priorityClassName"),
    (
        "workflow",
        "spec.templates.2.metadata",
        {"annotations": {"{{inputs.parameters.any}}": "unconfined"}},
        "a key with parameters",
    ),
    ("workflow", "spec.templates.2.source", {"any": PRIVILEGED}, "source.any.securityContext"),
    ("workflow", "spec.templates.2.resource", {"manifest": HIDDEN}, "manifest.spec.hostPID"),
    ("workflow", "spec.templates.2.resource", {"manifest": "a: '{{b}}'"}, "with parameters"),
    ("workflow", "spec.templates.2.resource", {"manifestFrom": {}}, "manifestFrom"),
    ("workflow", "spec.arguments", {"parameters": [{"name": "a", "value": HIDDEN}]}, "hostPID"),
    ("sparkapplication", "spec.driver.sidecars", [PRIVILEGED], "driver.sidecars[other]"),
    ("sparkapplication", "spec.executor.initContainers", [CAPABLE], "executor.initContainers"),
    ("sparkapplication", "spec.driver.template", POD, "driver.template.spec.hostPID"),
    ("sparkapplication", "spec.executor.hostNetwork", True, "executor.hostNetwork"),
    ("sparkapplication", "spec.driver.securityContext", CONTEXT, "driver.securityContext"),
    (
        "sparkapplication",
        "spec.driver.podSecurityContext",
        {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
        "podSecurityContext.sysctls[kernel.msgmax].name",
    ),
    ("sparkapplication", "spec.volumes", ROOTED, "spec.volumes[root].hostPath"),
    (
        "sparkapplication",
        "spec.batchSchedulerOptions",
        {"priorityClassName": "system-cluster-critical"},
        "batchSchedulerOptions.priorityClassName",
    ),
    *(
        ("sparkapplication", "spec.sparkConf", {setting: "/"}, setting)
        for setting in (
            "spark.kubernetes.driver.podTemplateFile",
            "spark.kubernetes.executor.volumes.hostPath.root.mount.path",
            "spark.kubernetes.authenticate.driver.serviceAccountName",
            "spark.kubernetes.namespace",
            "spark.master",
        )
    ),
    ("inferenceservice", "spec.predictor.model.securityContext", CONTEXT, "model.securityContext"),
    ("inferenceservice", "spec.predictor.pytorch", PRIVILEGED, "pytorch.securityContext"),
    (
        "inferenceservice",
        "spec.predictor.workerSpec",
        {"containers": [CAPABLE], "hostIPC": True},
        "predictor.workerSpec.hostIPC",
    ),
    ("inferenceservice", "spec.predictor.volumes", ROOTED, "predictor.volumes[root].hostPath"),
    ("inferenceservice", "spec.explainer", {"containers": [PRIVILEGED]}, "explainer.containers"),
    (
        "trainjob",
        "spec.podTemplateOverrides",
        [{"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "operator"}}],
        "podTemplateOverrides[0].spec.serviceAccountName",
    ),
    (
        "trainjob",
        "spec.podTemplateOverrides",
        [{"spec": {"volumes": ROOTED}}],
        "podTemplateOverrides[0].spec.volumes[root].hostPath",
    ),
    (
        "trainjob",
        "spec.runtimePatches",
        [{"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {"deep": [POD]}}}}],
        "runtimePatches[0].trainingRuntimeSpec.template.spec.deep[0].spec.hostPID",
    ),
    ("raycluster", "spec.autoscalerOptions", PRIVILEGED, "autoscalerOptions.securityContext"),
    (
        "raycluster",
        "spec.headGroupSpec.headService",
        {"spec": {"externalIPs": ["10.0.0.1"]}},
        "headService.spec.externalIPs",
    ),
    (
        "raycluster",
        "spec.workerGroupSpecs.0.template.spec.nodeName",
        "control-plane-0",
        "workerGroupSpecs[0].template.spec.nodeName",
    ),
    ("rayjob", "spec.submitterPodTemplate", POD, "submitterPodTemplate.spec.hostPID"),
    ("rayservice", "spec.serveService", {"spec": {"externalIPs": ["10.0.0.1"]}}, "externalIPs"),
    ("volcano", "spec.tasks.0.template.spec.initContainers", [CAPABLE], "SYS_ADMIN"),
    ("volcano", "spec.priorityClassName", "system-node-critical", "spec.priorityClassName"),
    ("jobset", "spec.replicatedJobs.1.template.spec.template.spec.volumes", SHARED, "[all].nfs"),
    (
        "leaderworkerset",
        "spec.leaderWorkerTemplate.leaderTemplate.spec.securityContext",
        {"seLinuxOptions": {"type": "spc_t"}},
        "leaderTemplate.spec.securityContext.seLinuxOptions.type: spc_t",
    ),
    ("mpijob", "spec.mpiReplicaSpecs.Launcher.template.spec.hostUsers2", True, "hostUsers2"),
    ("statefulset", "spec.template.spec.ephemeralContainers", [CAPABLE], "ephemeralContainers"),
    ("deployment", "spec.template.spec.containers.0.ports.0.hostPort", 80, "hostPort"),
    ("job", "spec.template.spec.HOSTPID", True, "HOSTPID"),
    ("job", "spec.template.spec.volumes.0.NFS", {"server": "10.0.0.1"}, "volumes[data].NFS"),
    (
        "job",
        "spec.template.metadata",
        {"annotations": {"sidecar.istio.io/userVolume": json.dumps(ROOTED)}},
        "annotations.sidecar.istio.io/userVolume[root].hostPath",
    ),
    (
        "job",
        "spec.template.metadata",
        {"annotations": {"patch": '{"host\\u0050ID": true}'}},
        "annotations.patch.hostPID",
    ),
    ("job", "spec.template.spec.ho\u017ftPID", True, "PID: sight of the node's processes"),
    ("workflow", "spec.pod\u017fpecPatch", "{}", "a patch of pods"),
    *(
        ("workflow", "spec.templates.0.resource", {"manifest": manifest}, said)
        for manifest, said in (
            ("spec: {hostPID: true}", "manifest.spec.hostPID"),
            ("spec: {ho\u017ftPID: true}", "manifest.spec.ho\u017ftPID"),
            ('spec: {? !!binary "aG9zdFBJRA==" : true}', "is not YAML"),
            ("spec: {? !<tag:yaml.org,2002:binary> aG9zdFBJRA== : true}", "is not YAML"),
            ("%TAG ! tag:yaml.org,2002:\n--- {? !binary aG9zdFBJRA== : true}", "is not YAML"),
            (
                "{apiVersion: v1, kind: Pod, spec: {containers: [], hostUsers2: true}}",
                "manifest.spec.hostUsers2: is not permitted",
            ),
        )
    ),
    ("job", "spec.template.metadata", {"annotations": {"patch": "hostPID: [true"}}, "is not YAML"),
    (
        "job",
        "spec.template.metadata",
        {"annotations": {"patch": "hostPID: true\n#" + "x" * 100_000}},
        "is too long",
    ),
]


def altered(kind: str, place: str, value: Any) -> Json:
    """A sample with something else at a place."""
    body = copy.deepcopy(SAMPLES[kind])
    *steps, last = place.split(".")
    inner: Any = body
    for step in steps:
        inner = inner[int(step)] if isinstance(inner, list) else inner.setdefault(step, {})
    inner[last] = value
    return body


def refusals(*manifests: Json, kinds: Kinds | None = None) -> list[str]:
    found = faults_in(manifests, Permits(service_accounts=ACCOUNTS), (kinds or built_in()).of)
    return [fault for several in found.values() for fault in several]


@pytest.mark.parametrize(
    ("kind", "place", "value", "said"),
    PLACES,
    ids=[f"{kind} {place} {index}" for index, (kind, place, _, _) in enumerate(PLACES)],
)
def test_a_pod_is_checked_wherever_it_stands(kind: str, place: str, value: Any, said: str) -> None:
    assert refusals(SAMPLES[kind]) == []
    refused = refusals(altered(kind, place, value))
    assert [fault for fault in refused if said in fault] != []


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "Service", "spec": {"externalIPs": ["10.0.0.1"]}},
            "spec.externalIPs",
            id="a service of another's address",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/service-account-token",
                "metadata": {"annotations": {"kubernetes.io/service-account.name": "operator"}},
            },
            "service account operator",
            id="a secret with the token of an account",
        ),
        pytest.param(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "spec": {
                    "devices": {"requests": [{"name": "a", "exactly": {"adminAccess": True}}]}
                },
            },
            "requests[a].exactly.adminAccess",
            id="a claim to devices of others",
        ),
    ],
)
def test_what_pods_need_beside_them_is_checked_too(manifest: Json, said: str) -> None:
    (fault,) = refusals(manifest)
    assert said in fault


def test_a_kind_that_a_cluster_permits_is_checked_too() -> None:
    template = {"spec": {"template": {"spec": {"containers": [OTHER], "hostNetwork": True}}}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": template}}
    found = faults_in([cron], Permits(kinds=("batch/CronJob",)), built_in().of)
    assert "spec.jobTemplate.spec.template.spec.hostNetwork" in found[0][0]


RULE = """
apiVersion: kinds.fairway.dev/v1alpha1
kind: KindRule
metadata: {name: sweeper}
spec:
  apiVersions: [example.com/v1]
  kind: Sweeper
  podSets:
    - {name: main, at: spec.main, template: pod}
  status:
    phases: [{phase: Running, when: "true"}]
  play:
    status: {}
"""


def test_a_kind_of_a_new_rule_is_checked_beyond_what_its_rule_names() -> None:
    rule = codec.decode(yaml.safe_load(RULE), KindRule)
    kinds = Kinds.of_code(kind_of(rule))
    main = {"pod": {"spec": {"containers": [OTHER]}}}
    body = {"apiVersion": "example.com/v1", "kind": "Sweeper", "spec": {"main": main}}
    assert refusals(body, kinds=kinds) == []
    body["spec"]["cleaners"] = {"hourly": {"run": PRIVILEGED, "as": {"serviceAccount": "root"}}}
    assert len(refusals(body, kinds=kinds)) == 2
