"""What is refused beyond the schema, in the words of a kube-apiserver where they are simple."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from fairway.resources.builtin import builtin_resources
from fairway.schema.validation import Findings, conform

BY_KIND = {resource.kind: resource for resource in builtin_resources()}
SELECTOR = {"matchLabels": {"a": "b"}}
LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def made(kind: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": "bad", "namespace": "default", "uid": "1"}
    return {"kind": kind, "metadata": metadata, **fields}


def pod(**spec: Any) -> dict[str, Any]:
    return made("Pod", spec={"containers": [{"name": "main", "image": "a:1"}], **spec})


def container(**parts: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "main", "image": "a:1", **parts}])


def template(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "a:1"}]
    return {
        "metadata": {"labels": labels or {"a": "b"}},
        "spec": {"containers": containers, **spec},
    }


def definition(name: str = "bads.example.com", **spec: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    whole = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "bads", "kind": "Bad"},
        "versions": [version],
        **spec,
    }
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": whole}


def structural(schema: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": schema}}},
    }
    return definition(versions=[version])


def faults(obj: dict[str, Any]) -> list[str]:
    resource = BY_KIND[obj["kind"]]
    obj = deepcopy(obj)
    findings = Findings()
    conform(obj, resource.schema, findings)
    if resource.prepare is not None:
        resource.prepare(obj, None)
    assert resource.check is not None
    return [str(fault) for fault in (*findings.faults, *resource.check(obj, None))]


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a pod needs containers": (pod(containers=[]), ["spec.containers: Required value"]),
    "a container needs an image": (
        pod(containers=[{"name": "main"}]),
        ["spec.containers[0].image: Required value"],
    ),
    "a container needs a name": (
        pod(containers=[{"image": "a:1"}]),
        ["spec.containers[0].name: Required value"],
    ),
    "a container's name is a DNS label": (
        pod(containers=[{"name": "Main_", "image": "a:1"}]),
        [f'spec.containers[0].name: Invalid value: "Main_": {LABEL_WORDS}'],
    ),
    "an init container does not share a container's name": (
        pod(initContainers=[{"name": "main", "image": "a:1"}]),
        ['spec.initContainers[0].name: Duplicate value: "main"'],
    ),
    "a restart policy is one of three": (
        pod(restartPolicy="Sometimes"),
        [
            (
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
                '"Always", "OnFailure", "Never"'
            )
        ],
    ),
    "a port has at most sixteen bits": (
        container(ports=[{"containerPort": 70000}]),
        [
            (
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between "
                "1 and 65535, inclusive"
            )
        ],
    ),
    "a variable's name has no equals sign": (
        container(env=[{"name": "A=B"}]),
        [
            (
                'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment '
                "variable name must consist only of printable ASCII characters other than '='"
            )
        ],
    ),
    "a mount names a volume of the pod": (
        container(volumeMounts=[{"name": "x", "mountPath": "/x"}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
    ),
    "an amount is not below zero": (
        container(resources={"requests": {"cpu": "-1"}}),
        [
            (
                'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater '
                "than or equal to 0"
            )
        ],
    ),
    "a request is within its limit": (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal to cpu limit of 1"
            )
        ],
    ),
    "accelerators are whole": (
        container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [
            f"spec.containers[0].resources.{part}[nvidia.com/gpu]: Invalid value: "
            '"500m": must be an integer'
            for part in ("limits", "requests")
        ],
    ),
    "accelerators are never overcommitted": (
        container(resources={"requests": {"nvidia.com/gpu": "1"}}),
        [
            (
                "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                "overcommitable resources"
            )
        ],
    ),
    "a deployment needs a selector": (
        made("Deployment", spec={"template": template()}),
        [
            "spec.selector: Required value",
            (
                'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not '
                "match template `labels`"
            ),
        ],
    ),
    "an empty selector selects too much": (
        made("Deployment", spec={"selector": {}, "template": template()}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    "a selector matches its own template": (
        made("StatefulSet", spec={"selector": SELECTOR, "template": template({"a": "c"})}),
        [
            (
                'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not '
                "match template `labels`"
            )
        ],
    ),
    "a deployment's pods restart always": (
        made(
            "Deployment", spec={"selector": SELECTOR, "template": template(restartPolicy="Never")}
        ),
        [
            (
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            )
        ],
    ),
    "a job's pods end": (
        made("Job", spec={"template": template()}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    "an indexed job knows its completions": (
        made(
            "Job",
            spec={
                "completionMode": "Indexed",
                "parallelism": 1,
                "template": template(restartPolicy="Never"),
            },
        ),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    "a key has no spaces": (
        made("ConfigMap", data={"a b": "x"}),
        [
            (
                'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric '
                "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
                "regex used for validation is '[-._a-zA-Z0-9]+')"
            )
        ],
    ),
    "a config map holds at most a mebibyte": (
        made("ConfigMap", data={"a": "x" * 1_048_577}),
        ["[]: Too long: may not be more than 1048576 bytes"],
    ),
    "a secret of certificates has both halves": (
        made("Secret", type="kubernetes.io/tls", data={}),
        ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
    ),
    "a service has ports": (made("Service", spec={}), ["spec.ports: Required value"]),
    "several ports have names": (
        made("Service", spec={"ports": [{"port": 1}, {"port": 2}]}),
        ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
    ),
    "a claim says how it is accessed and how much it wants": (
        made("PersistentVolumeClaim", spec={}),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    "a lease lasts": (
        made("Lease", spec={"leaseDurationSeconds": 0}),
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    "the highest priorities are the system's": (
        made("PriorityClass", value=2_000_000_000),
        [
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ],
    ),
    "an event stands beside its object": (
        made("Event", involvedObject={"namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    "a rule says what it allows": (
        made("Role", rules=[{}]),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
    "only cluster roles speak of plain paths": (
        made("Role", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
        [
            (
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to '
                "non-resource URLs"
            )
        ],
    ),
    "a cluster role binding gives a cluster role": (
        made("ClusterRoleBinding", roleRef={"kind": "Role", "name": "y"}),
        ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
    ),
    "a service account's binding names its namespace": (
        made(
            "ClusterRoleBinding",
            roleRef={"kind": "ClusterRole", "name": "y"},
            subjects=[{"kind": "ServiceAccount", "name": "a"}],
        ),
        ["subjects[0].namespace: Required value"],
    ),
    "a definition is named after what it defines": (
        definition("wrong.example.com"),
        [
            (
                'metadata.name: Invalid value: "wrong.example.com": must be '
                'spec.names.plural+"."+spec.group'
            )
        ],
    ),
    "a definition has a storage version": (
        definition(versions=[]),
        [
            (
                "spec.versions: Invalid value: []: must have exactly one version marked as storage "
                "version"
            )
        ],
    ),
    "a schema says the type of each field": (
        structural({}),
        [
            (
                "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must "
                "not be empty for specified object fields"
            )
        ],
    ),
    "an array says what it holds": (
        structural({"type": "array"}),
        [
            (
                "spec.versions[0].schema.openAPIV3Schema.properties[a].items: Required value: must "
                "be specified"
            )
        ],
    ),
    "a list-map names its keys": (
        structural({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
        [
            (
                "spec.versions[0].schema.openAPIV3Schema.properties[a].x-kubernetes-list-map-keys: "
                "Required value: must not be empty if x-kubernetes-list-type is map"
            )
        ],
    ),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_refused(rule: str) -> None:
    obj, expected = REFUSED[rule]
    assert faults(obj) == expected


def test_a_secret_s_faults_never_show_its_content() -> None:
    secret = BY_KIND["Secret"]
    assert secret.check is not None
    found = secret.check(made("Secret", data={"password": "not base64, and secret"}), None)
    assert [str(item) for item in found] == [
        'data[password]: Invalid value: "<hidden>": must be base64'
    ]
