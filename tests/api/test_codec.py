"""Typed objects: lenient to read, exact to write, and faults with the path of the field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairway.api.amounts import Quantity
from fairway.api.cluster import Cluster
from fairway.api.codec import decode, encode, to_plain
from fairway.api.documents import Document, read_documents
from fairway.api.errors import BadRequest, Invalid
from fairway.api.fleet import Fleet
from fairway.api.kinds import BY_NAME, KINDS
from fairway.api.meta import JsonObject, Object, ObjectMeta
from fairway.api.queue import Queue, QueueSpec
from fairway.api.workload import Workload

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "fleet"


def examples() -> list[Document]:
    """All objects of the examples."""
    return [
        document
        for path in sorted(EXAMPLES.glob("*.yaml"))
        for document in read_documents(path.read_bytes(), path.name)
    ]


def test_there_is_an_example_of_every_kind() -> None:
    assert {example.value["kind"] for example in examples()} == {kind.name for kind in KINDS}


@pytest.mark.parametrize(
    "example",
    examples(),
    ids=lambda other: f"{other.value['kind']} {other.value['metadata']['name']}",
)
def test_every_example_survives_the_way_through_its_type(example: Document) -> None:
    kind = BY_NAME[example.value["kind"]].struct
    read = decode(example.value, kind)
    written = to_plain(read)
    assert decode(encode(read), kind) == read
    assert decode(written, kind) == read
    _assert_nothing_lost(example.value, written, "")


def _assert_nothing_lost(given: object, written: object, path: str) -> None:
    """Everything given is written, but for what equals a default."""
    if isinstance(given, dict):
        assert isinstance(written, dict), path
        for key, value in given.items():
            if key in written:
                _assert_nothing_lost(value, written[key], f"{path}.{key}")
            else:
                assert value in DEFAULTS, f"{path}.{key} is lost"
    elif isinstance(given, list):
        assert isinstance(written, list), path
        for position, pair in enumerate(zip(given, written, strict=True)):
            _assert_nothing_lost(*pair, f"{path}[{position}]")
    elif given != written:
        assert Quantity.of(given) == Quantity.of(written), path  # type: ignore[arg-type]


# What the examples state although it is the default.
DEFAULTS = (
    "Wait",
    "Gang",
    1,
    "",
    60,
    900,
    "Aggregated",
    "Indexed",
    "Hub",
    "Average",
    "FailureRate",
)


def test_defaults_are_in_the_structs_and_left_out_on_the_wire() -> None:
    queue = Queue(metadata=ObjectMeta(name="a"), spec=QueueSpec(parent="b"))
    assert encode(queue) == (
        b'{"kind":"Queue","apiVersion":"fairway.dev/v1alpha1","metadata":{"name":"a"},'
        b'"spec":{"parent":"b"}}'
    )
    assert (queue.kind, queue.spec.weight, queue.spec.strategy) == (
        "Queue", Quantity.of(1), "BestEffort")  # fmt: skip


def test_unknown_fields_of_a_newer_writer_are_ignored() -> None:
    read = decode(b'{"kind":"Fleet","spec":{"later":{"a":1},"paused":true},"more":2}', Fleet)
    assert read.spec.paused


def test_limits_are_not_checked_when_read() -> None:
    read = decode({"spec": {"simulated": {"startSeconds": -5}}}, Cluster)
    assert read.spec.simulated is not None
    assert read.spec.simulated.start_seconds == -5


def test_objects_are_immutable() -> None:
    queue = Queue()
    with pytest.raises(AttributeError):
        queue.metadata = ObjectMeta()  # type: ignore[misc]


WRONG: dict[str, tuple[type[Object], JsonObject, str, str]] = {
    "a word for a number": (
        Queue, {"spec": {"priority": "high"}}, "spec.priority", "Expected int, got str"),
    "a quantity that is none, in a list": (
        Queue,
        {"spec": {"resourceGroups": [{"resources": ["cpu"], "flavors": [
            {"name": "a", "quotas": [{"resource": "cpu", "nominal": "many"}]}]}]}},
        "spec.resourceGroups[0].flavors[0].quotas[0].nominal", "'many' is not a quantity"),
    "a quantity that is none, in a map": (
        Workload,
        {"spec": {"podSets": [{"name": "a", "requests": {"cpu": "1", "memory": "80GB"}}]}},
        "spec.podSets[0].requests[memory]", "'80GB' is not a quantity"),
    "a word outside a closed set": (
        Queue, {"spec": {"strategy": "Fair"}}, "spec.strategy", "Invalid enum value 'Fair'"),
    "a required field that is missing": (
        Workload,
        {"spec": {"podSets": [{"count": 1}]}},
        "spec.podSets[0]", "Object missing required field name"),
    "another kind": (Queue, {"kind": "Fleet"}, "kind", "Invalid value 'Fleet'"),
    "another version": (
        Queue,
        {"apiVersion": "fairway.dev/v2"},
        "apiVersion", 'expected fairway.dev/v1alpha1, got "fairway.dev/v2"'),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "path", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_refused_with_its_path(
    kind: type[Object], value: JsonObject, path: str, said: str
) -> None:
    whole = {"metadata": {"name": "x"}, **value}
    for form in (whole, msgspec.json.encode(whole)):
        with pytest.raises(Invalid) as refused:
            decode(form, kind)
        message = refused.value.message
        assert message.startswith(f'{kind.__name__}.fairway.dev "x" is invalid: {path}: Invalid')
        assert said in message
        assert [cause["field"] for cause in refused.value.details["causes"]] == [path]


def test_text_that_is_not_json_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        decode(b"{", Queue)
