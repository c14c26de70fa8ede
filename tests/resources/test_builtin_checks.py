"""What is refused beyond the schema, in the words of a kube-apiserver where they are simple."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.resources.builtin import builtin_resources
from fairway.schema.validation import Findings, conform

BY_KIND = {one.kind: one for one in builtin_resources()}
STORED = {
    (one["kind"], one["metadata"]["name"]): one
    for one in map(
        json.loads,
        (Path(__file__).parent / "data" / "stored.jsonl").read_text().splitlines(),
    )
}
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
    return [str(one) for one in (*findings.faults, *resource.check(obj, None))]


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
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
            '"Always", "OnFailure", "Never"'
        ],
    ),
    "a port has at most sixteen bits": (
        container(ports=[{"containerPort": 70000}]),
        [
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 "
            "and 65535, inclusive"
        ],
    ),
    "a variable's name has no equals sign": (
        container(env=[{"name": "A=B"}]),
        [
            'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable '
            "name must consist only of printable ASCII characters other than '='"
        ],
    ),
    "a mount names a volume of the pod": (
        container(volumeMounts=[{"name": "x", "mountPath": "/x"}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
    ),
    "an amount is not below zero": (
        container(resources={"requests": {"cpu": "-1"}}),
        [
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater '
            "than or equal to 0"
        ],
    ),
    "a request is within its limit": (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
            "equal to cpu limit of 1"
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
            "spec.containers[0].resources.limits: Required value: Limit must be set for non "
            "overcommitable resources"
        ],
    ),
    "a deployment needs a selector": (
        made("Deployment", spec={"template": template()}),
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match '
            "template `labels`",
        ],
    ),
    "an empty selector selects too much": (
        made("Deployment", spec={"selector": {}, "template": template()}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    "a selector matches its own template": (
        made("StatefulSet", spec={"selector": SELECTOR, "template": template({"a": "c"})}),
        [
            'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match '
            "template `labels`"
        ],
    ),
    "a deployment's pods restart always": (
        made(
            "Deployment", spec={"selector": SELECTOR, "template": template(restartPolicy="Never")}
        ),
        [
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
            '"Always"'
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
            'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric '
            "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
            "used for validation is '[-._a-zA-Z0-9]+')"
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
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to '
            "non-resource URLs"
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
            'metadata.name: Invalid value: "wrong.example.com": must be '
            'spec.names.plural+"."+spec.group'
        ],
    ),
    "a definition has a storage version": (
        definition(versions=[]),
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage "
            "version"
        ],
    ),
    "a schema says the type of each field": (
        structural({}),
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not "
            "be empty for specified object fields"
        ],
    ),
    "an array says what it holds": (
        structural({"type": "array"}),
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[a].items: Required value: must be "
            "specified"
        ],
    ),
    "a list-map names its keys": (
        structural({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[a].x-kubernetes-list-map-keys: "
            "Required value: must not be empty if x-kubernetes-list-type is map"
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
    assert [str(one) for one in found] == [
        'data[password]: Invalid value: "<hidden>": must be base64'
    ]


# What: kind, name, path to change, new value, start of the fault; an empty one is allowed.
CHANGES: dict[str, tuple[str, str, str, Any, str]] = {
    "a deployment keeps its selector": (
        "Deployment",
        "dep",
        "spec.selector.matchLabels.x",
        "y",
        "spec.selector: Invalid value: ",
    ),
    "a deployment scales": ("Deployment", "dep", "spec.replicas", 5, ""),
    "a stateful set keeps its service": (
        "StatefulSet",
        "sts",
        "spec.serviceName",
        "other",
        "spec: Forbidden: updates to statefulset spec for fields other than",
    ),
    "a stateful set scales": ("StatefulSet", "sts", "spec.replicas", 3, ""),
    "a job keeps its completions": (
        "Job",
        "plain",
        "spec.completions",
        4,
        "spec.completions: Invalid value: 4: field is immutable",
    ),
    "an indexed job changes both counts together": (
        "Job",
        "indexed",
        "spec.completions",
        4,
        "spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism",
    ),
    "a job can be suspended": ("Job", "plain", "spec.suspend", True, ""),
    "a running job keeps its template": (
        "Job",
        "plain",
        "spec.template.spec.containers.0.image",
        "other",
        "spec.template: Invalid value: ",
    ),
    "a secret keeps its type": (
        "Secret",
        "s",
        "type",
        "other",
        'type: Invalid value: "other": field is immutable',
    ),
    "a claim keeps its access modes": (
        "PersistentVolumeClaim",
        "disk",
        "spec.accessModes",
        ["ReadWriteMany"],
        "spec: Forbidden: spec is immutable after creation",
    ),
    "a priority class keeps its value": (
        "PriorityClass",
        "high",
        "value",
        3,
        "value: Forbidden: may not be changed in an update.",
    ),
    "a binding keeps its role": (
        "RoleBinding",
        "b",
        "roleRef.name",
        "other",
        "roleRef: Invalid value: ",
    ),
    "a pod may change its image": ("Pod", "full", "spec.containers.0.image", "other", ""),
    "a pod keeps the rest": (
        "Pod",
        "full",
        "spec.hostNetwork",
        True,
        "spec: Forbidden: pod updates may not change fields other than",
    ),
    "a pod is bound once": ("Pod", "full", "spec.nodeName", "node", ""),
    "a gated pod may be placed": ("Pod", "small", "spec.nodeSelector", {"a": "b"}, ""),
    "a definition keeps its scope": (
        "CustomResourceDefinition",
        "things.example.com",
        "spec.scope",
        "Cluster",
        'spec.scope: Invalid value: "Cluster": field is immutable',
    ),
    "a definition gains a short name": (
        "CustomResourceDefinition",
        "things.example.com",
        "spec.names.shortNames",
        ["th"],
        "",
    ),
    "a definition keeps a version that was stored": (
        "CustomResourceDefinition",
        "things.example.com",
        "spec.versions.0.name",
        "v2",
        'status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions',
    ),
}


@pytest.mark.parametrize("rule", CHANGES)
def test_changed(rule: str) -> None:
    kind, name, path, value, fault = CHANGES[rule]
    old = STORED[kind, name]
    new = deepcopy(old)
    part: Any = new
    *parents, last = path.split(".")
    for step in parents:
        part = part[int(step)] if step.isdigit() else part.setdefault(step, {})
    part[last] = value
    resource = BY_KIND[kind]
    if resource.prepare is not None:
        resource.prepare(new, old)
    assert resource.check is not None
    found = [str(one) for one in resource.check(new, old)]
    assert [one[: len(fault)] for one in found] == ([fault] if fault else [])


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_is_marked_immutable_stays(kind: str) -> None:
    old = made(kind, type="Opaque", immutable=True, data={"a": "eA=="})
    resource = BY_KIND[kind]
    assert resource.check is not None
    for change in ({"data": {"a": "eQ=="}}, {"immutable": False}):
        found = resource.check({**old, **change}, old)
        assert [str(one) for one in found] == [
            f"{next(iter(change))}: Forbidden: field is immutable when `immutable` is set"
        ]


def test_a_suspended_job_that_never_ran_may_be_placed() -> None:
    old = deepcopy(STORED["Job", "plain"])
    old["spec"]["suspend"] = True
    new = deepcopy(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gpu"}
    check = BY_KIND["Job"].check
    assert check is not None
    assert list(check(new, old)) == []
    old["status"]["startTime"] = "2026-01-01T00:00:00Z"
    assert [one.path for one in check(new, old)] == ["spec.template"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in STORED}))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_json_breaks_defaults_checks_or_tables(kind: str, data: st.DataObject) -> None:
    """Any part of a good object is replaced by any JSON; functions may refuse, not raise."""
    resource = BY_KIND[kind]
    good = data.draw(st.sampled_from([one for (name, _), one in STORED.items() if name == kind]))
    obj = deepcopy(good)
    part: Any = obj
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(st.sampled_from(keys))
        inner = part[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            part[key] = data.draw(JSON_VALUES)
            break
        part = inner
    for old in (None, good):
        tried = deepcopy(obj)
        if resource.prepare is not None:
            resource.prepare(tried, old)
        if resource.check is not None:
            list(resource.check(tried, old))
        assert resource.cells is not None
        resource.cells(tried, 0.0)
