"""Bodies in protobuf become the JSON objects that Go writes for the same values.

The recorded bodies were written by kubectl and by Kubernetes' own serializer, from objects of ours;
the JSON beside each is that of the same programs.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.errors import BadRequest, UnsupportedMediaType
from fairway.resources.builtin.definitions import definitions
from fairway.resources.builtin.kinds import builtin_resources
from fairway.server.wire import options, protobuf
from fairway.server.wire.exchange import Request

JsonObject = dict[str, Any]
RECORDED = json.loads((Path(__file__).parent / "data/protobuf_bodies.json").read_text())
BODIES = [base64.b64decode(item["body"]) for item in RECORDED]


def varint(number: int) -> bytes:
    head = b""
    while number > 0x7F:
        head += bytes([number & 0x7F | 0x80])
        number >>= 7
    return head + bytes([number])


def chunk(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def body(api_version: str, kind: str, message: bytes) -> bytes:
    names = chunk(1, api_version.encode()) + chunk(2, kind.encode())
    return b"k8s\x00" + chunk(1, names) + chunk(2, message) + chunk(3, b"") + chunk(4, b"")


def decoded(api_version: str, kind: str, message: bytes) -> JsonObject:
    result = protobuf.decode(body(api_version, kind, message))
    assert (result.pop("apiVersion"), result.pop("kind")) == (api_version, kind)
    return result


@pytest.mark.parametrize("recorded", RECORDED, ids=[item["name"] for item in RECORDED])
def test_a_recorded_body_is_the_object_that_was_sent(recorded: JsonObject) -> None:
    assert protobuf.decode(base64.b64decode(recorded["body"])) == recorded["object"]


POD = ("v1", "Pod")
LEASE = ("coordination.k8s.io/v1", "Lease")
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def in_spec(*path: int, content: bytes) -> bytes:
    for field in reversed((2, *path)):
        content = chunk(field, content)
    return content


def schema_of(field: bytes) -> bytes:
    """A definition with one version, whose schema has one field."""
    return in_spec(7, 4, 1, content=field)


def wrapped_schema(value: JsonObject) -> JsonObject:
    return {"spec": {"versions": [{"schema": {"openAPIV3Schema": value}}]}}


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        pytest.param(POD, b"", {}, id="an empty message is an object without fields"),
        pytest.param(
            POD, chunk(1, chunk(1, b"")), {"metadata": {}}, id="an empty name is left out"
        ),
        pytest.param(
            POD,
            chunk(1, chunk(1, b"a") + chunk(1, b"")),
            {"metadata": {}},
            id="of two names the last one counts, though empty",
        ),
        pytest.param(
            POD,
            chunk(1, chunk(1, b"a")) + chunk(1, chunk(3, b"b")),
            {"metadata": {"name": "a", "namespace": "b"}},
            id="a message given twice is merged",
        ),
        pytest.param(
            POD,
            chunk(1, chunk(8, b"") + chunk(9, b"")),
            {"metadata": {}},
            id="a time that is not set is left out",
        ),
        pytest.param(
            POD,
            chunk(1, chunk(8, number(1, -62135596800))),
            {"metadata": {}},
            id="the first second of year one is Go's time that is not set",
        ),
        pytest.param(
            POD,
            chunk(1, chunk(8, number(1, 0) + number(2, 5))),
            {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}},
            id="a time has no fraction",
        ),
        pytest.param(
            LEASE,
            in_spec(4, content=number(1, -1) + number(2, 1_500)),
            {"spec": {"renewTime": "1969-12-31T23:59:59.000001Z"}},
            id="a micro time has six digits",
        ),
        pytest.param(
            POD,
            in_spec(content=number(4, 0) + number(11, 0)),
            {"spec": {"terminationGracePeriodSeconds": 0}},
            id="zero stays where Go has a pointer and vanishes where it has none",
        ),
        pytest.param(
            POD,
            in_spec(14, content=chunk(4, b"\x01\x96\x01") + number(4, 2)),
            {"spec": {"securityContext": {"supplementalGroups": [1, 150, 2]}}},
            id="numbers of a list may be packed or not",
        ),
        pytest.param(
            POD,
            in_spec(content=number(25, -1)),
            {"spec": {"priority": -1}},
            id="a negative number is ten bytes long",
        ),
        pytest.param(
            POD,
            chunk(1, chunk(11, chunk(1, b"k")) + chunk(11, b"")),
            {"metadata": {"labels": {"k": "", "": ""}}},
            id="a map's entry may lack its key and its value",
        ),
        pytest.param(
            POD,
            number(99, 7) + chunk(98, b"x") + varint(97 << 3 | 1) + b"12345678" + b"\x85\x06abcd",
            {},
            id="fields of newer clients are passed over, whatever their wire type",
        ),
        pytest.param(
            DEFINITION,
            schema_of(varint(9 << 3 | 1) + struct.pack("<d", 3.0)),
            wrapped_schema({"maximum": 3}),
            id="a whole double is written as an integer",
        ),
        pytest.param(
            DEFINITION,
            schema_of(chunk(24, chunk(2, chunk(5, b"object")) + chunk(2, b""))),
            wrapped_schema({"items": [{"type": "object"}, {}]}),
            id="items may be many schemas",
        ),
        pytest.param(
            DEFINITION,
            schema_of(chunk(32, chunk(1, b"a") + chunk(2, chunk(2, b"b")))),
            wrapped_schema({"dependencies": {"a": ["b"]}}),
            id="a dependency may be names",
        ),
        pytest.param(
            DEFINITION,
            schema_of(chunk(20, chunk(1, b"null")) + chunk(8, b"")),
            wrapped_schema({"enum": [None], "default": None}),
            id="null is a value in JSON",
        ),
    ],
)
def test_a_message_reads_as_go_writes_it(
    kind: tuple[str, str], message: bytes, expected: JsonObject
) -> None:
    assert decoded(*kind, message) == expected


def nested_schema(levels: int) -> bytes:
    message = b""
    for _ in range(levels):
        message = chunk(28, message)
    return body(*DEFINITION, schema_of(message))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "does not begin as one", id="nothing"),
        pytest.param(b"{}", "does not begin as one", id="JSON"),
        pytest.param(b"k8s\x00", "names no API version or no kind", id="only the magic"),
        pytest.param(body("v1", "", b""), "no kind", id="no kind"),
        pytest.param(body("", "Pod", b""), "no API version", id="no API version"),
        pytest.param(BODIES[0][:-10], "cut short", id="a body that lost its end"),
        pytest.param(body(*POD, b"\x0a"), "cut short", id="a field without its length"),
        pytest.param(body(*POD, b"\x0a\x03ab"), "cut short", id="a length past the end"),
        pytest.param(body(*POD, b"\xff"), "cut short", id="a number that never ends"),
        pytest.param(body(*POD, b"\xff" * 11), "64 bits", id="a number too long"),
        pytest.param(body(*POD, b"\xff" * 9 + b"\x02"), "64 bits", id="a number too large"),
        pytest.param(body(*POD, b"\x02\x00"), "number 0", id="field number zero"),
        pytest.param(body(*POD, b"\x0b\x0c"), "wire type 3", id="a group"),
        pytest.param(body(*POD, number(1, 1)), "wire type 0", id="a number for a message"),
        pytest.param(
            body(*POD, in_spec(4, content=b"x" * 3)), "wire type 2", id="text for a number"
        ),
        pytest.param(body(*POD, chunk(1, chunk(1, b"\xff"))), "UTF-8", id="text in no encoding"),
        pytest.param(
            body(*POD, chunk(1, chunk(8, number(1, 1 << 40)))), "years", id="a time too far"
        ),
        pytest.param(
            body(*DEFINITION, schema_of(chunk(8, chunk(1, b"{")))), "JSON", id="broken JSON"
        ),
        pytest.param(
            body(*DEFINITION, schema_of(varint(9 << 3 | 1) + struct.pack("<d", float("nan")))),
            "not finite",
            id="not a number",
        ),
        pytest.param(nested_schema(5_000), "messages deep", id="nesting without end"),
        pytest.param(
            body(*POD, b"").replace(chunk(3, b""), chunk(3, b"gzip")), "encoded", id="an encoding"
        ),
    ],
)
def test_a_malformed_body_is_refused_with_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        protobuf.decode(content)
    assert refusal.value.message.startswith(
        "the body of the request is not a Kubernetes protobuf message: "
    )
    assert why in refusal.value.message


def test_schemas_as_deep_as_people_write_them_are_read() -> None:
    protobuf.decode(nested_schema(80))


def test_a_kind_without_a_message_is_refused_as_a_media_type() -> None:
    with pytest.raises(UnsupportedMediaType, match="Boat of example"):
        protobuf.decode(body("example.com/v1", "Boat", b""))


async def test_deletion_reads_its_options_from_protobuf_in_any_group() -> None:
    message = number(1, 7) + chunk(4, b"Orphan") + chunk(2, chunk(1, b"u1"))
    request = Request(
        method="DELETE",
        path="/apis/batch/v1/namespaces/a/jobs/b",
        headers=[("Content-Type", "application/vnd.kubernetes.protobuf")],
        body=body("batch/v1", "DeleteOptions", message),
    )
    how, is_trial = await options.deletion(request)
    assert (how.grace_seconds, how.propagation, how.uid) == (7, "Orphan", "u1")
    assert not is_trial


def test_every_built_in_kind_has_a_message() -> None:
    for resource in builtin_resources():
        decoded(resource.api_version, resource.kind, b"")


def test_the_table_names_the_fields_of_the_published_schemas() -> None:
    content = files("fairway.resources.builtin").joinpath("messages.json").read_bytes()
    table = json.loads(content)
    table.pop("kinds")
    beside = {"apiVersion", "kind"}  # in the envelope, where a message is an object of its own
    compared = 0
    for name, fields in table.items():
        schema = definitions().get("io.k8s." + name.replace("_", "-"), {})
        if "properties" not in schema:
            continue
        shown = {entry[0] for entry in fields.values() if entry[2] != "inline"}
        for _, part, how in fields.values():
            shown |= {entry[0] for entry in table[part].values()} if how == "inline" else set()
        assert shown - beside == set(schema["properties"]) - beside, name
        compared += 1
    assert compared > 200


@given(st.binary())
def test_random_bytes_are_refused_or_read(tail: bytes) -> None:
    with contextlib.suppress(BadRequest, UnsupportedMediaType):
        protobuf.decode(b"k8s\x00" + tail)


@given(st.sampled_from([POD, DEFINITION, LEASE, ("v1", "Event")]), st.binary())
def test_random_messages_of_known_kinds_are_refused_or_read(
    kind: tuple[str, str], message: bytes
) -> None:
    with contextlib.suppress(BadRequest):
        json.dumps(protobuf.decode(body(*kind, message)), allow_nan=False)


@given(
    st.sampled_from(BODIES),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3)), min_size=1, max_size=5),
)
def test_damaged_bodies_are_refused_or_read(
    content: bytes, damages: list[tuple[int, bytes]]
) -> None:
    for position, patch in damages:
        start = position % len(content)
        content = content[:start] + patch + content[start + 1 :]
    with contextlib.suppress(BadRequest, UnsupportedMediaType):
        json.dumps(protobuf.decode(content), allow_nan=False)
