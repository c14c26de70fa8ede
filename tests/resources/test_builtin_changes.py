"""What may and may not change in an existing object, and that no input breaks the functions."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.resources.builtin import builtin_resources

BY_KIND = {resource.kind: resource for resource in builtin_resources()}
STORED = {
    (item["kind"], item["metadata"]["name"]): item
    for item in map(
        json.loads,
        (Path(__file__).parent / "data" / "stored.jsonl").read_text().splitlines(),
    )
}

# What: kind, name, path to change, new value, start of the fault; an empty one is allowed.
CHANGES: dict[str, tuple[str, str, str, Any, str]] = {
    "a deployment keeps its selector": (
        "Deployment",
        "dep",
        "spec.selector.matchExpressions",
        [],
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
    found = [str(item) for item in resource.check(new, old)]
    assert [item[: len(fault)] for item in found] == ([fault] if fault else [])


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_is_marked_immutable_stays(kind: str) -> None:
    old = {"type": "Opaque", "immutable": True, "data": {"a": "eA=="}}
    resource = BY_KIND[kind]
    assert resource.check is not None
    for change in ({"data": {"a": "eQ=="}}, {"immutable": False}):
        found = resource.check({**old, **change}, old)
        assert [str(item) for item in found] == [
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
    assert [item.path for item in check(new, old)] == ["spec.template"]


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
    good = data.draw(
        st.sampled_from([value for (name, _), value in STORED.items() if name == kind])
    )
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
