"""What every store promises of JSON values: true is not 1, and 1.0 is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairway.api.errors import BadRequest, Invalid
from fairway.store.interface import Patch, Store
from tests.contracts.conftest import ALICE, DEPLOYMENTS, WIDGETS, widget

FREE = {"one": 1, "no": False, "list": [1, 0], "deep": {"zero": 0}}
TYPES = ("merge", "json", "apply")


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


async def change(store: Store, kind_of_patch: str, name: str, value: Any) -> dict:
    """Sets one field of `free` by a patch of this type."""
    body: Any = {"spec": {"free": {name: value}}}
    if kind_of_patch == "json":
        body = [{"op": "replace", "path": f"/spec/free/{name}", "value": value}]
    elif kind_of_patch == "apply":
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}} | body
    patch = Patch(type=kind_of_patch, body=body, force=kind_of_patch == "apply")
    stored, _ = await store.patch(WIDGETS, "a", patch, namespace="default", write=ALICE)
    return stored.object()


@pytest.mark.parametrize("kind_of_patch", TYPES)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("one", True, id="1 becomes true"),
        pytest.param("no", 0, id="false becomes 0"),
        pytest.param("list", [True, 0], id="1 in a list becomes true"),
        pytest.param("list", [1, False], id="0 in a list becomes false"),
        pytest.param("deep", {"zero": False}, id="0 below becomes false"),
    ],
)
async def test_a_number_and_a_boolean_are_a_change(
    store: Store, kind_of_patch: str, name: str, value: Any
) -> None:
    await store.create(WIDGETS, widget("a", free=FREE), namespace="default", write=ALICE)
    after = await change(store, kind_of_patch, name, value)
    assert text(after["spec"]["free"]) == text({**FREE, name: value})
    assert after["metadata"]["generation"] == 2
    assert (await store.get(WIDGETS, "a", "default")).object() == after


@pytest.mark.parametrize("kind_of_patch", TYPES)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("one", 1.0, id="a whole number"),
        pytest.param("list", [1.0, 0.0], id="whole numbers in a list"),
    ],
)
async def test_a_whole_number_is_written_as_one(
    store: Store, kind_of_patch: str, name: str, value: Any
) -> None:
    await store.create(WIDGETS, widget("a", free=FREE), namespace="default", write=ALICE)
    after = await change(store, kind_of_patch, name, value)
    assert text(after["spec"]["free"]) == text(FREE)


async def test_an_update_from_a_number_to_a_boolean_is_written(store: Store) -> None:
    made = await store.create(WIDGETS, widget("a", free=FREE), namespace="default", write=ALICE)
    body = made.object()
    body["spec"]["free"]["one"] = True
    after = (await store.update(WIDGETS, body, namespace="default", write=ALICE)).object()
    assert text(after["spec"]["free"]) == text({**FREE, "one": True})
    assert after["metadata"]["generation"] == 2


async def test_a_patch_that_says_what_is_there_changes_nothing(store: Store) -> None:
    made = await store.create(WIDGETS, widget("a", free=FREE), namespace="default", write=ALICE)
    after = await change(store, "merge", "deep", {"zero": 0})
    assert after == made.object()


@pytest.mark.parametrize("value", [True, [1, False], {"zero": False}])
async def test_a_json_patch_tells_a_boolean_from_a_number(store: Store, value: Any) -> None:
    await store.create(WIDGETS, widget("a", free=FREE), namespace="default", write=ALICE)
    name = {bool: "one", list: "list", dict: "deep"}[type(value)]
    body = [
        {"op": "test", "path": f"/spec/free/{name}", "value": value},
        {"op": "remove", "path": f"/spec/free/{name}"},
    ]
    with pytest.raises(Invalid, match="rejected our request"):
        await store.patch(
            WIDGETS, "a", Patch(type="json", body=body), namespace="default", write=ALICE
        )


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"size": True}, "spec.size", id="as an integer"),
        pytest.param({"level": True}, "spec.level", id="as a number"),
        pytest.param({"parts": [{"name": "p", "count": True}]}, "spec.parts[0].count", id="below"),
    ],
)
async def test_true_does_not_pass_for_1(store: Store, spec: dict, field: str) -> None:
    """Nor where 1 stood before, which may stay as it is."""
    before = widget("a", size=1, level=1, parts=[{"name": "p", "count": 1}])
    await store.create(WIDGETS, before, namespace="default", write=ALICE)
    patch = Patch(type="merge", body={"spec": spec})
    with pytest.raises(Invalid) as caught:
        await store.patch(WIDGETS, "a", patch, namespace="default", write=ALICE)
    assert {cause["field"] for cause in caught.value.details["causes"]} == {field}


async def test_a_choice_of_numbers_takes_them_however_they_are_written(store: Store) -> None:
    made = await store.create(WIDGETS, widget("a", level=2.0), namespace="default", write=ALICE)
    assert text(made.object()["spec"]["level"]) == "2"


@pytest.mark.parametrize("wrong", [{"replicas": True}, {"paused": 1}])
async def test_a_strategic_patch_tells_a_boolean_from_a_number(store: Store, wrong: dict) -> None:
    pods = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pods}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    await store.create(DEPLOYMENTS, body, namespace="default", write=ALICE)
    patch = Patch(type="strategic", body={"spec": wrong})
    with pytest.raises((BadRequest, Invalid)):
        await store.patch(DEPLOYMENTS, "a", patch, namespace="default", write=ALICE)
    after = (await store.get(DEPLOYMENTS, "a", "default")).object()
    assert text(after["spec"]["replicas"]) == "1"
    assert after["metadata"]["generation"] == 1
