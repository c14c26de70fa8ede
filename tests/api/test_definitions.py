"""Schemas and custom resource definitions follow from the types, and are committed as they are."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.api.crds import as_yaml, definitions, file_name, for_kubernetes
from fairway.api.documents import read_documents
from fairway.api.kinds import BY_NAME, KINDS, Kind
from fairway.api.schemas import schema_of

ROOT = Path(__file__).parent.parent.parent
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)

Schema = dict[str, Any]


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """All values that a schema describes, with their paths."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from parts(schema["additionalProperties"], f"{path}{{}}")


def each_part(kind: Kind) -> Iterator[tuple[str, Schema]]:
    """All values of all versions of a kind."""
    for struct in (kind.struct, *(item.struct for item in kind.further)):
        yield from parts(schema_of(struct))


@EACH_KIND
def test_committed_definitions_equal_the_types(kind: Kind) -> None:
    committed = (ROOT / "deploy" / "crds" / file_name(kind)).read_text()
    (definition,) = for_kubernetes([kind])
    assert committed == as_yaml(definition), "run: python -m fairway.api.crds deploy/crds"
    assert read_documents(committed)[0].value == definition


def test_nothing_but_our_kinds_is_committed() -> None:
    files = {path.name for path in (ROOT / "deploy" / "crds").iterdir()}
    assert files == {file_name(kind) for kind in KINDS}


@EACH_KIND
def test_every_schema_is_structural(kind: Kind) -> None:
    for path, part in each_part(kind):
        is_free = part.get("x-kubernetes-int-or-string")
        assert is_free or part.get("type") in (
            "object", "array", "string", "integer", "boolean"), path  # fmt: skip
        assert "$ref" not in part, path
        assert not ("properties" in part and "additionalProperties" in part), path
        assert part.get("type") != "array" or "items" in part, path
        assert set(part.get("required", ())) <= set(part.get("properties", ())), path


@EACH_KIND
def test_every_field_says_what_it_is_in_a_sentence(kind: Kind) -> None:
    for path, part in each_part(kind):
        if path in ("", ".metadata") or path.endswith(("[]", "{}")):
            continue
        assert part.get("description", "").endswith("."), path
        assert part["description"][0].isupper(), path


@EACH_KIND
def test_every_list_says_how_it_merges_and_every_list_and_map_is_bounded(kind: Kind) -> None:
    for path, part in parts(schema_of(kind.struct)):
        if part.get("type") == "array":
            assert "maxItems" in part, path
            assert part.get("x-kubernetes-list-type") in ("map", "set", "atomic"), path
            if part["x-kubernetes-list-type"] == "map":
                keys = part["x-kubernetes-list-map-keys"]
                assert set(keys) <= set(part["items"]["required"]), path
        if "additionalProperties" in part:
            assert "maxProperties" in part, path


@EACH_KIND
def test_defaults_are_stored_outside_lists_and_status_only(kind: Kind) -> None:
    for path, part in parts(schema_of(kind.struct)):
        if "default" in part:
            assert path.startswith(".spec"), path
            assert "[]" not in path, path
            assert part["default"], path


def test_defaults_come_from_the_structs() -> None:
    spec = schema_of(BY_NAME["Queue"].struct)["properties"]["spec"]["properties"]
    assert {name: part["default"] for name, part in spec.items() if "default" in part} == {
        "weight": 1,
        "strategy": "BestEffort",
        "hold": "None",
    }


def test_required_fields_are_those_without_a_default() -> None:
    schema = schema_of(BY_NAME["Work"].struct)
    assert schema["required"] == ["spec"]
    assert schema["properties"]["spec"]["required"] == ["cluster", "workload", "attempt", "term"]


def test_manifests_of_other_kinds_are_kept_whole() -> None:
    spec = schema_of(BY_NAME["Workload"].struct)["properties"]["spec"]["properties"]
    assert spec["template"]["properties"]["manifests"]["items"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-embedded-resource": True,
    }


@EACH_KIND
def test_every_column_shows_a_field_that_exists(kind: Kind) -> None:
    schema = schema_of(kind.struct)
    paths = [column.path for column in kind.columns] + list(kind.selectable_fields)
    if kind.scale:
        paths += [kind.scale.replicas, kind.scale.status_replicas, kind.scale.selector]
    for path in paths:
        part: Schema | None = schema
        for step in path.replace(r"\.", "\0").strip(".").split("."):
            assert part is not None
            if step == "metadata":
                part = None
                break
            name = step.replace("\0", ".")
            part = part.get("properties", {}).get(name) or part.get("additionalProperties")
            assert part is not None, path


def test_names_are_unique_and_in_our_category() -> None:
    names = [name for kind in KINDS for name in (kind.plural, kind.singular, *kind.short_names)]
    assert len(names) == len(set(names))
    for kind in KINDS:
        assert definitions([kind])[0]["spec"]["names"]["categories"] == ["fairway"]


def test_the_api_reference_equals_the_types() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "api_reference.py"))
    committed = (ROOT / "docs" / "reference" / "api.md").read_text()
    assert committed == tool["render"](), "run: python tools/api_reference.py"
