"""What every store promises of single objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairway.api.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    UnsupportedMediaType,
)
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Deletion, Patch, Selection, Store
from tests.contracts.conftest import (
    ALICE,
    BOB,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    WIDGETS,
    Settled,
    config_map,
    widget,
)


async def make(store: Store, body: dict, write=ALICE, kind=WIDGETS) -> dict:
    return (await store.create(kind, body, namespace="default", write=write)).object()


async def read(store: Store, name: str, kind=WIDGETS) -> dict:
    return (await store.get(kind, name, "default")).object()


async def merge(store: Store, name: str, change: dict, *, kind=WIDGETS, write=ALICE, **more):
    patch = Patch(type="merge", body=change)
    stored, _ = await store.patch(kind, name, patch, namespace="default", write=write, **more)
    return stored.object()


async def test_a_created_object_has_identity_version_generation_and_creator(store: Store) -> None:
    made = await make(store, widget("a", size=3))
    metadata = made["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"]
    assert metadata["generation"] == 1
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["annotations"]["fairway.dev/created-by"] == "alice"
    assert await read(store, "a") == made


async def test_what_the_store_alone_may_set_is_not_taken_from_the_writer(store: Store) -> None:
    body = widget("a")
    body["metadata"] |= {
        "uid": "mine",
        "generation": 7,
        "deletionTimestamp": "2020-01-01T00:00:00Z",
    }
    body["metadata"]["annotations"] = {"fairway.dev/created-by": "root"}
    body["status"] = {"ready": 5}
    made = await make(store, body)
    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["generation"] == 1
    assert "deletionTimestamp" not in made["metadata"]
    assert made["metadata"]["annotations"]["fairway.dev/created-by"] == "alice"
    assert "status" not in made


async def test_a_name_is_generated_where_only_its_beginning_is_given(store: Store) -> None:
    body = widget("")
    body["metadata"] = {"generateName": "run-"}
    name = (await make(store, body))["metadata"]["name"]
    assert name.startswith("run-")
    assert len(name) == len("run-") + 5


async def test_a_second_object_of_a_name_is_refused(store: Store) -> None:
    await make(store, widget("a"))
    with pytest.raises(AlreadyExists, match=r'widgets\.example\.com "a" already exists'):
        await make(store, widget("a"))


async def test_an_object_needs_its_namespace(store: Store) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await store.create(WIDGETS, widget("a"), namespace="nowhere", write=ALICE)


async def test_defaults_are_filled_in_and_unknown_fields_pruned(store: Store) -> None:
    write = replace(ALICE, field_validation="Warn", warnings=[])
    body = widget("a", wheels=4)
    made = await make(store, body, write)
    assert made["spec"] == {"size": 1}
    assert write.warnings == ['unknown field "spec.wheels"']


async def test_a_write_that_is_used_for_ever_keeps_the_first_warnings(store: Store) -> None:
    write = replace(ALICE, field_validation="Warn", warnings=["said before"] * 99)
    for name in ("one", "two", "three"):
        await make(store, widget(name, wheels=4), write)
    assert write.warnings[98:] == ["said before", 'unknown field "spec.wheels"']


async def test_unknown_fields_are_refused_when_asked_for(store: Store) -> None:
    with pytest.raises(BadRequest, match=r'unknown field "spec\.siez"') as caught:
        await make(store, widget("a", siez=4))
    if isinstance(store, EmbeddedStore):  # a courtesy of ours
        assert 'did you mean "size"' in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": -1}, "spec.size: Invalid value: -1: spec.size in body should be greater than"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type'),
        ({"colour": "green"}, 'spec.colour: Unsupported value: "green": supported values: "red"'),
        ({"parts": [{"count": 1}]}, "spec.parts[0].name: Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
    ],
)
async def test_a_fault_names_its_field(store: Store, spec: dict, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        await make(store, widget("a", **spec))
    assert message in caught.value.message


async def test_all_faults_are_told_at_once(store: Store) -> None:
    with pytest.raises(Invalid) as caught:
        await make(store, widget("a", size=-1, colour="green"))
    fields = [cause["field"] for cause in caught.value.details["causes"]]
    assert sorted(fields) == ["spec.colour", "spec.size"]


async def test_an_update_of_an_old_version_conflicts(store: Store) -> None:
    first = await make(store, widget("a", size=1))
    await merge(store, "a", {"spec": {"size": 2}})
    first["spec"]["size"] = 3
    with pytest.raises(Conflict, match="the object has been modified"):
        await store.update(WIDGETS, first, namespace="default", write=ALICE)


async def test_an_update_of_a_custom_object_must_say_its_version(store: Store) -> None:
    await make(store, widget("a"))
    with pytest.raises(Invalid, match=r"metadata.resourceVersion.*must be specified"):
        await store.update(WIDGETS, widget("a", size=2), namespace="default", write=ALICE)


async def test_an_update_of_another_identity_conflicts(store: Store) -> None:
    made = await make(store, widget("a"))
    made["metadata"]["uid"] = "another"
    with pytest.raises(Conflict, match="UID in precondition"):
        await store.update(WIDGETS, made, namespace="default", write=ALICE)


async def test_generation_rises_with_the_spec_only(store: Store) -> None:
    await make(store, widget("a", size=1))
    assert (await merge(store, "a", {"metadata": {"labels": {"x": "y"}}}))["metadata"][
        "generation"
    ] == 1
    changed = await merge(store, "a", {"status": {"ready": 1}}, subresource="status")
    assert changed["metadata"]["generation"] == 1
    assert (await merge(store, "a", {"spec": {"size": 2}}))["metadata"]["generation"] == 2


async def test_status_and_the_rest_are_written_apart(store: Store) -> None:
    made = await make(store, widget("a", size=1))
    made["status"] = {"ready": 4}
    made["spec"]["size"] = 9
    after = (
        await store.update(
            WIDGETS, dict(made), namespace="default", subresource="status", write=ALICE
        )
    ).object()
    assert after["status"] == {"ready": 4}
    assert after["spec"]["size"] == 1
    after["status"] = {"ready": 0}
    after["spec"]["size"] = 2
    last = (await store.update(WIDGETS, after, namespace="default", write=ALICE)).object()
    assert last["status"] == {"ready": 4}
    assert last["spec"]["size"] == 2


async def test_a_write_that_changes_nothing_writes_nothing(store: Store) -> None:
    made = await make(store, widget("a", size=1))
    same = await merge(store, "a", {"spec": {"size": 1}})
    assert same == made


async def test_a_dry_run_answers_and_keeps_nothing(store: Store) -> None:
    trial = replace(ALICE, dry_run=True)
    made = await make(store, widget("a"), trial)
    assert made["spec"] == {"size": 1}
    with pytest.raises(NotFound):
        await read(store, "a")
    kept = await make(store, widget("a", size=1))
    changed = await merge(store, "a", {"spec": {"size": 2}}, write=trial)
    assert changed["spec"]["size"] == 2
    assert await read(store, "a") == kept
    await store.delete(WIDGETS, "a", namespace="default", write=trial)
    assert await read(store, "a") == kept


async def test_a_json_patch_tests_before_it_changes(store: Store) -> None:
    await make(store, widget("a", size=1))
    operations = [
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "replace", "path": "/spec/size", "value": 3},
    ]
    with pytest.raises((Invalid, BadRequest)):
        await store.patch(
            WIDGETS, "a", Patch(type="json", body=operations), namespace="default", write=ALICE
        )
    assert (await read(store, "a"))["spec"]["size"] == 1


async def test_strategic_merge_is_for_built_in_kinds_only(store: Store) -> None:
    await make(store, widget("a"))
    patch = Patch(type="strategic", body={"spec": {"size": 2}})
    with pytest.raises(UnsupportedMediaType):
        await store.patch(WIDGETS, "a", patch, namespace="default", write=ALICE)


async def test_strategic_merge_joins_lists_by_their_keys(store: Store) -> None:
    body = {
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]
                },
            },
        },
    }
    await make(store, body, kind=DEPLOYMENTS)
    change = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}}}
    stored, _ = await store.patch(
        DEPLOYMENTS,
        "web",
        Patch(type="strategic", body=change),
        namespace="default",
        write=ALICE,
    )
    containers = stored.object()["spec"]["template"]["spec"]["containers"]
    assert {container["name"]: container["image"] for container in containers} == {
        "a": "a:1",
        "b": "b:2",
    }


async def test_apply_creates_merges_and_removes_by_omission(store: Store) -> None:
    async def apply(body: dict, write, *, force: bool = False) -> tuple[dict, bool]:
        patch = Patch(type="apply", body=body, force=force)
        stored, is_new = await store.patch(WIDGETS, "a", patch, namespace="default", write=write)
        return stored.object(), is_new

    made, is_new = await apply(widget("a", size=2, parts=[{"name": "x", "count": 1}]), ALICE)
    assert is_new
    _, is_new = await apply(widget("a", parts=[{"name": "y", "count": 2}]), BOB)
    assert not is_new
    both = await read(store, "a")
    assert [part["name"] for part in both["spec"]["parts"]] == ["x", "y"]
    with pytest.raises(Conflict, match=r'conflict with "alice".*: \.spec\.size'):
        await apply(widget("a", size=5, parts=[{"name": "y", "count": 2}]), BOB)
    taken, _ = await apply(widget("a", size=5, parts=[{"name": "y", "count": 2}]), BOB, force=True)
    assert taken["spec"]["size"] == 5
    left, _ = await apply(widget("a"), ALICE)
    assert left["spec"] == {"size": 5, "parts": [{"name": "y", "count": 2}]}
    assert made["metadata"]["uid"] == left["metadata"]["uid"]


async def test_a_deleted_object_is_gone(store: Store) -> None:
    await make(store, widget("a"))
    _, is_gone = await store.delete(WIDGETS, "a", namespace="default", write=ALICE)
    assert is_gone
    with pytest.raises(NotFound, match=r'widgets\.example\.com "a" not found'):
        await read(store, "a")


async def test_a_deletion_meant_for_another_is_refused(store: Store) -> None:
    made = await make(store, widget("a"))
    for how in (Deletion(uid="another"), Deletion(version="1")):
        with pytest.raises(Conflict, match="in the precondition"):
            await store.delete(WIDGETS, "a", namespace="default", how=how, write=ALICE)
    how = Deletion(uid=made["metadata"]["uid"], version=made["metadata"]["resourceVersion"])
    _, is_gone = await store.delete(WIDGETS, "a", namespace="default", how=how, write=ALICE)
    assert is_gone


async def test_finalizers_hold_a_deleted_object_until_they_are_removed(store: Store) -> None:
    body = widget("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await make(store, body)
    _, is_gone = await store.delete(WIDGETS, "a", namespace="default", write=ALICE)
    assert not is_gone
    held = await read(store, "a")
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["generation"] == 2
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        await merge(store, "a", {"metadata": {"finalizers": ["example.com/hold", "b.com/c"]}})
    await merge(store, "a", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        await read(store, "a")


async def test_built_in_objects_are_overwritten_without_a_version(store: Store) -> None:
    await make(store, config_map("a", x="1"), kind=CONFIG_MAPS)
    await store.update(CONFIG_MAPS, config_map("a", y="2"), namespace="default", write=BOB)
    assert (await read(store, "a", CONFIG_MAPS))["data"] == {"y": "2"}


async def test_nothing_is_created_in_a_namespace_that_is_going(
    store: Store, settled: Settled, space: str
) -> None:
    await store.create(NAMESPACES, {"metadata": {"name": space}}, write=ALICE)
    held = widget("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await store.create(WIDGETS, held, namespace=space, write=ALICE)
    _, is_gone = await store.delete(NAMESPACES, space, write=ALICE)
    assert not is_gone
    assert (await store.get(NAMESPACES, space)).object()["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await store.create(WIDGETS, widget("b"), namespace=space, write=ALICE)
    patch = Patch(type="merge", body={"metadata": {"finalizers": None}})
    await store.patch(WIDGETS, "a", patch, namespace=space, write=ALICE)

    async def is_there() -> bool:
        chosen = Selection(fields=f"metadata.name={space}")
        return bool((await store.list(NAMESPACES, chosen)).items)

    await settled(is_there, False)
