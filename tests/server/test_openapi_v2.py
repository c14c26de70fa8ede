"""The Swagger 2.0 document, as JSON and in the binary form of older clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fairway.resources.builtin import builtin_resources
from fairway.resources.resource import Resource
from fairway.schema.node import parse
from fairway.server.documents import openapi_v2
from fairway.server.documents.openapi_wire import varint

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["mode"],
            "properties": {
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True},
                "share": {"type": "number", "minimum": 0.5},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    },
}
CUSTOM = Resource(
    group="example.com",
    version="v1",
    plural="things",
    kind="Thing",
    schema=parse(SCHEMA),
    openapi=SCHEMA,
    is_custom=True,
)
ALL = [*builtin_resources(), CUSTOM]
DOCUMENT = openapi_v2.document(ALL)


class Message:
    """The fields of a protocol buffers message, read without knowing its type."""

    def __init__(self, data: bytes) -> None:
        self.fields: dict[int, list[Any]] = {}
        for number, value in self._read(data):
            self.fields.setdefault(number, []).append(value)

    def _read(self, data: bytes) -> Iterator[tuple[int, Any]]:
        at = 0
        while at < len(data):
            key, at = self._varint(data, at)
            number, kind = key >> 3, key & 7
            if kind == 0:
                value, at = self._varint(data, at)
                yield number, value
            elif kind == 1:
                yield number, data[at : at + 8]
                at += 8
            else:
                assert kind == 2
                size, at = self._varint(data, at)
                assert at + size <= len(data)
                yield number, data[at : at + size]
                at += size

    def _varint(self, data: bytes, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 0x80:
                return value, at

    def text(self, number: int) -> str:
        return self.fields.get(number, [b""])[0].decode()

    def one(self, number: int) -> Message:
        return Message(self.fields[number][0])

    def each(self, number: int) -> list[Message]:
        return [Message(data) for data in self.fields.get(number, [])]

    def named(self, number: int) -> dict[str, Message]:
        return {item.text(1): item.one(2) for item in self.each(number)}


# Numbers of the fields of gnostic's messages that are looked at here.
PATHS, DEFINITIONS, PATH = 8, 9, 2
PROPERTIES, EXTENSIONS, TYPE, ITEMS, REQUIRED = 25, 31, 22, 23, 19
YAML = 2


def schemas(document: Message) -> dict[str, Message]:
    return document.one(DEFINITIONS).named(1)


def extensions(message: Message, number: int = EXTENSIONS) -> dict[str, Any]:
    return {name: json.loads(any_.text(YAML)) for name, any_ in message.named(number).items()}


@pytest.fixture(scope="module")
def binary() -> Message:
    return Message(openapi_v2.protobuf(ALL))


def test_the_document_has_every_path_and_definition() -> None:
    assert DOCUMENT["swagger"] == "2.0"
    assert "/apis/example.com/v1/namespaces/{namespace}/things/{name}" in DOCUMENT["paths"]
    assert "io.k8s.api.core.v1.Pod" in DOCUMENT["definitions"]
    assert "com.example.v1.Thing" in DOCUMENT["definitions"]


def test_every_reference_leads_to_a_definition() -> None:
    text = json.dumps(DOCUMENT)
    assert "#/components/" not in text
    targets = {part.split('"', 1)[0] for part in text.split("#/definitions/")[1:]}
    assert targets <= DOCUMENT["definitions"].keys()


def test_what_swagger_cannot_say_is_widened() -> None:
    fields = DOCUMENT["definitions"]["com.example.v1.Thing"]["properties"]["spec"]["properties"]
    assert fields["port"] == {"x-kubernetes-int-or-string": True}
    assert fields["free"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert fields["maybe"] == {}
    assert fields["mode"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    text = json.dumps(DOCUMENT["definitions"])
    assert '"oneOf": [' not in text
    assert '"nullable": true' not in text


def test_the_binary_form_holds_the_same_names(binary: Message) -> None:
    assert binary.text(1) == "2.0"
    assert schemas(binary).keys() == DOCUMENT["definitions"].keys()
    assert binary.one(PATHS).named(PATH).keys() == DOCUMENT["paths"].keys()


def test_the_binary_form_tells_kinds_and_patch_strategies(binary: Message) -> None:
    pod = schemas(binary)["io.k8s.api.core.v1.Pod"]
    assert extensions(pod) == {
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}]
    }
    spec = schemas(binary)["io.k8s.api.core.v1.PodSpec"]
    containers = spec.one(PROPERTIES).named(1)["containers"]
    told = extensions(containers)
    assert told["x-kubernetes-patch-merge-key"] == "name"
    assert told["x-kubernetes-patch-strategy"] == "merge"
    assert containers.one(TYPE).text(1) == "array"
    item = containers.one(ITEMS).one(1)
    assert item.text(1) == "#/definitions/io.k8s.api.core.v1.Container"
    assert [data.decode() for data in spec.fields[REQUIRED]] == ["containers"]


def test_the_binary_form_keeps_limits_and_defaults(binary: Message) -> None:
    thing = schemas(binary)["com.example.v1.Thing"]
    fields = thing.one(PROPERTIES).named(1)["spec"].one(PROPERTIES).named(1)
    assert [json.loads(item.text(YAML)) for item in fields["mode"].each(20)] == ["a", "b"]
    assert json.loads(fields["mode"].one(5).text(YAML)) == "a"
    assert fields["share"].fields[9] == [b"\x00\x00\x00\x00\x00\x00\xe0?"]
    assert fields["labels"].one(21).one(1).one(TYPE).text(1) == "string"


def test_the_binary_form_tells_what_an_operation_takes(binary: Message) -> None:
    path = "/api/v1/namespaces/{namespace}/pods/{name}"
    item = binary.one(PATHS).named(PATH)[path]
    patch = item.one(8)
    assert extensions(patch, 13)["x-kubernetes-group-version-kind"]["kind"] == "Pod"
    query = [item.one(1).one(2).one(3).text(4) for item in patch.each(8)[:-1]]
    assert query == ["dryRun", "fieldManager", "fieldValidation", "force"]
    body = patch.each(8)[-1].one(1).one(1)
    assert body.text(3) == "body"
    assert [other.one(1).one(2).one(4).text(4) for other in item.each(9)[:2]] == [
        "name",
        "namespace",
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (-1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_integers_are_written_in_groups_of_seven_bits(value: int, written: bytes) -> None:
    assert varint(value) == written
