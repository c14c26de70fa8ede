"""Manifest text becomes JSON values as kubectl would read it, with the line of every fault."""

from __future__ import annotations

import contextlib
import json
import string
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.codec import to_yaml
from fairway.api.documents import ManifestError, read_documents

HEAD = "apiVersion: v1\nkind: ConfigMap\n"

SCALARS = {
    "yes is true": ("yes", True),
    "On is true": ("On", True),
    "y is true": ("y", True),
    "off is false": ("off", False),
    "tilde is null": ("~", None),
    "nothing is null": ("", None),
    "a quoted yes is text": ("'yes'", "yes"),
    "a date is text": ("2026-11-15", "2026-11-15"),
    "a time is text": ("2026-11-15T08:30:00Z", "2026-11-15T08:30:00Z"),
    "a sexagesimal is text": ("1:30", "1:30"),
    "a leading zero is octal": ("010", 8),
    "a leading zero before nine is not octal": ("09", 9.0),
    "hexadecimal": ("0x1F", 31),
    "binary": ("0b101", 5),
    "underscores in numbers": ("1_000", 1000),
    "an underscore in text": ("a_b", "a_b"),
    "an exponent is a number": ("1e3", 1000.0),
    "a quantity is text": ("500m", "500m"),
    "a version is text": ("1.2.3", "1.2.3"),
    "a number with an explicit tag for text": ("!!str 12", "12"),
    "an equals sign is text": ("=", "="),
    "a large integer is exact": ("18446744073709551615", 2**64 - 1),
    "a block keeps its lines": ("|\n  one\n  two\n", "one\ntwo\n"),
}


@pytest.mark.parametrize(("text", "value"), SCALARS.values(), ids=SCALARS)
def test_plain_scalars(text: str, value: Any) -> None:
    (document,) = read_documents(f"{HEAD}x: {text}\n")
    found = document.value["x"]
    assert (found, type(found)) == (value, type(value))


def test_documents_and_lists_come_one_by_one_with_their_lines() -> None:
    text = f"""# a comment
---
{HEAD}metadata: {{name: a}}
---
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: b}}}}
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}
"""
    found = read_documents(text, "some.yaml")
    assert [item.value["metadata"]["name"] for item in found] == ["a", "b", "c"]
    assert [item.place for item in found] == ["some.yaml:3", "some.yaml:8", "some.yaml:8"]


def test_json_is_read_with_tabs_and_one_after_the_other() -> None:
    text = '{\n\t"apiVersion": "v1", "kind": "A"}\n{"apiVersion": "v1", "kind": "B"}'
    found = read_documents(text.encode())
    assert [(item.value["kind"], item.line) for item in found] == [("A", 1), ("B", 3)]


def test_yaml_in_braces_is_not_json_and_still_read() -> None:
    assert read_documents("{apiVersion: v1, kind: A}")[0].value == {"apiVersion": "v1", "kind": "A"}


def test_anchors_and_merge_keys() -> None:
    text = f"{HEAD}base: &b {{x: 1, y: 2}}\nuse: {{<<: *b, y: 3}}\nagain: *b\n"
    value = read_documents(text)[0].value
    assert (value["use"], value["again"]) == ({"x": 1, "y": 3}, {"x": 1, "y": 2})
    assert value["again"] is not value["base"]


WRONG = {
    "a duplicate key": (f"{HEAD}x: 1\nx: 2\n", "f:4: key 'x' is there twice"),
    "a duplicate key in JSON": (
        '{"apiVersion": "v1", "kind": "A", "kind": "B"}', "f:1: key 'kind' is there twice"),
    "no kind": ("apiVersion: v1\n", "f:1: the object has no kind"),
    "no object": ("- 1\n", "f:1: an object is expected"),
    "a broken document": (f"{HEAD}x: [1, 2\n", "f:4: did not find expected"),
    "a tab as indentation": (f"{HEAD}x:\n\ty: 1\n", "f:4: "),
    "a tag of another language": (f"{HEAD}x: !!python/object:os.system a\n", "f:3: tag "),
    "infinity": (f"{HEAD}x: .inf\n", "f:3: .inf is not a JSON number"),
    "NaN in JSON": ('{"apiVersion": "v1", "kind": "A", "x": NaN}', "f:1: NaN is not a JSON number"),
    "a key that is a list": (f"{HEAD}? [a]\n: 1\n", "f:3: a key must be text"),
    "an alias without an anchor": (f"{HEAD}x: *nothing\n", "f:3: "),
    "an alias of itself": (f"{HEAD}x: &x [*x]\n", "f:3: alias *x has no anchor before it"),
    "nesting without end": (f"{HEAD}x: {'[' * 300}{']' * 300}\n", "nested deeper"),
    "bytes that are not UTF-8": (b"a: 1\nb: \xff\n", "f:2: the text is not UTF-8"),
    "a control character": (f"{HEAD}x: \x01\n", "f:"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_wrong_text_is_refused_with_its_line(text: str | bytes, said: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read_documents(text, "f")
    assert said in refused.value.message
    assert refused.value.code == 400


def test_aliases_that_grow_without_end_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ManifestError, match="aliases grow beyond"):
        read_documents(HEAD + "\n".join(lines))


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.printable + "éß中", max_size=12)
    | st.sampled_from(["yes", "y", "1e3", "0o7", "1_0", "", "~", "null", "2026-01-01", "=", "<<"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(string.printable, max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_JSON)
def test_what_is_written_as_yaml_reads_back_the_same(value: Any) -> None:
    text = to_yaml({"apiVersion": "v1", "kind": "A", "x": value})
    assert read_documents(text)[0].value["x"] == value
    assert yaml.safe_load(text)["x"] == value


@given(_JSON)
def test_json_text_reads_back_the_same(value: Any) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "A", "x": value}, indent=2)
    assert read_documents(text)[0].value["x"] == value


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused_and_nothing_else(text: str | bytes) -> None:
    with contextlib.suppress(ManifestError):
        assert isinstance(read_documents(text), list)
