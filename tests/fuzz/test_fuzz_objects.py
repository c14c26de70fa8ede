"""Objects of every kind, nearly right, created and replaced and patched: each is kept whole or not
at all, and no answer is a 500."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api import crds
from fairway.resources.builtin import builtin_resources
from fairway.resources.custom import custom_resources
from fairway.resources.resource import Resource
from tests.fuzz import promises, shapes
from tests.fuzz.budget import budget
from tests.fuzz.driver import Driver

KINDS: dict[str, Resource] = {
    resource.qualified: resource
    for resource in [
        *builtin_resources(),
        *(other for definition in crds.definitions() for other in custom_resources(definition)),
    ]
    if resource.is_stored and "create" in resource.verbs
}
MODES = st.sampled_from(["Strict", "Warn", "Ignore"])
kinds = pytest.mark.parametrize("resource", KINDS.values(), ids=KINDS.keys())


def clear(driver: Driver, resource: Resource) -> None:
    """Leaves nothing behind that the next example could trip over."""
    for name in ("a", "b", "c-1"):
        path = promises.address(resource, shapes.NAMESPACE, name)
        if driver.send("GET", path).status == 200:
            unheld = {"metadata": {"finalizers": None}}
            driver.send("PATCH", path, unheld, kind="application/merge-patch+json")
            driver.send("DELETE", path)


@kinds
@budget(7)
@given(data=st.data())
def test_a_nearly_right_object_is_kept_whole_or_refused(
    driver: Driver, resource: Resource, data: st.DataObject
) -> None:
    body = data.draw(shapes.objects_of(resource))
    later = data.draw(st.lists(_replacements(resource, body), min_size=1, max_size=2))
    query = {"fieldValidation": data.draw(MODES)}
    home = promises.address(resource, shapes.NAMESPACE)
    try:
        created = driver.send("POST", home, body, query=query)
        if created.status == 201:
            promises.check_kind(driver, resource)
            kept = msgspec.json.decode(created.body)
            for subresource, after in later:
                _replace(driver, promises.address_of(resource, kept) + subresource, kept, after)
            promises.check_kind(driver, resource)
    finally:
        clear(driver, resource)


def _replacements(resource: Resource, body: Any) -> st.SearchStrategy[tuple[str, Any]]:
    subresources = [""] + (["/status"] if resource.has_status else [])
    subresources += ["/scale"] if resource.scale else []
    return st.tuples(
        st.sampled_from(subresources), st.one_of(shapes.spoil(body), shapes.objects_of(resource))
    )


def _replace(driver: Driver, path: str, kept: Any, after: Any) -> None:
    """Writes over an object with another, under its name."""
    after = copy.deepcopy(after)  # what was drawn must not change
    metadata = after.get("metadata") if isinstance(after, dict) else None
    if isinstance(metadata, dict):
        metadata["name"] = kept["metadata"]["name"]
        present = driver.send("GET", path)
        if present.status == 200:
            version = msgspec.json.decode(present.body)["metadata"]["resourceVersion"]
            metadata["resourceVersion"] = version
    driver.send("PUT", path, after)


PATCHES = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/json-patch+json": "json",
    "application/apply-patch+yaml": "apply",
}
POINTERS = st.one_of(
    st.sampled_from(
        [
            "",
            "/",
            "/metadata",
            "/metadata/labels/a~1b",
            "/spec",
            "/metadata/name",
            "/kind",
            "~",
            "x",
            "/metadata/finalizers/-",
            "/metadata/finalizers/0",
            "/metadata/ownerReferences/01",
            "/~2",
            "/metadata/uid",
            "/metadata/managedFields",
            "/metadata/managedFields/0/fieldsV1",
            "/status",
        ]
    ),
    shapes.texts,
)
operations = st.lists(
    st.one_of(
        shapes.values,
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "burn"])},
            optional={"path": POINTERS, "from": POINTERS, "value": shapes.spoilers},
        ),
    ),
    max_size=4,
)
directives = st.fixed_dictionaries(
    {},
    optional={
        "$patch": st.sampled_from(["delete", "replace", "merge", "burn", 1]),
        "$retainKeys": shapes.values,
        "$deleteFromPrimitiveList/finalizers": shapes.values,
        "$setElementOrder/finalizers": shapes.values,
        "$setElementOrder/ownerReferences": shapes.values,
        "finalizers": shapes.values,
        "ownerReferences": shapes.values,
        "labels": shapes.values,
    },
)
managed_fields = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "manager": shapes.texts,
            "operation": st.sampled_from(["Apply", "Update", "Burn"]),
            "apiVersion": shapes.texts,
            "time": shapes.texts,
            "fieldsType": st.sampled_from(["FieldsV1", "FieldsV2"]),
            "fieldsV1": st.one_of(
                shapes.values,
                st.dictionaries(
                    st.sampled_from(
                        ["f:metadata", "k:{", 'k:{"a":1}', "v:1", "v:", "i:0", "i:x", "."]
                    ),
                    st.dictionaries(st.sampled_from(["f:labels", ".", "f:", "q"]), shapes.values),
                    max_size=3,
                ),
            ),
            "subresource": shapes.texts,
        },
    ),
    max_size=3,
)


@st.composite
def patches(draw: st.DrawFn, resource: Resource, kind: str) -> Any:
    """A patch of some type: junk, or nearly right for the kind."""
    if kind == "json":
        return draw(st.one_of(operations, shapes.values))
    body = draw(shapes.objects_of(resource))
    extra = draw(st.sampled_from(["", "managed", "directives", "junk"]))
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if extra == "junk":
        return draw(shapes.values)
    if isinstance(metadata, dict):
        metadata["name"] = "a"
        if extra == "managed":
            metadata["managedFields"] = draw(managed_fields)
        elif extra == "directives":
            metadata.update(draw(directives))
    return body


@st.composite
def changes_of(draw: st.DrawFn, resource: Resource) -> tuple[str, dict[str, str], Any]:
    """The media type, the parameters and the body of a patch."""
    kind = draw(st.sampled_from(sorted(PATCHES)))
    query = {"fieldValidation": draw(MODES)}
    if PATCHES[kind] == "apply":
        query["force"] = draw(st.sampled_from(["true", "false"]))
        query["fieldManager"] = draw(st.sampled_from(["one", "two", "é 🐟", "\x00"]))
    return kind, query, draw(patches(resource, PATCHES[kind]))


@kinds
@budget(8)
@given(data=st.data())
def test_a_patch_of_any_type_leaves_a_right_object(
    driver: Driver, resource: Resource, data: st.DataObject
) -> None:
    path = promises.address(resource, shapes.NAMESPACE, "a")
    made = data.draw(shapes.objects_of(resource, spoiled=0))
    made["metadata"] = {"name": "a", "finalizers": ["a.b/c"], "labels": {"x": "y"}}
    changes = data.draw(st.lists(changes_of(resource), min_size=1, max_size=3))
    try:
        driver.send("POST", promises.address(resource, shapes.NAMESPACE), made)
        for kind, query, patch in changes:
            driver.send("PATCH", path, patch, query=query, kind=kind)
        promises.check_kind(driver, resource)
    finally:
        clear(driver, resource)
