"""Dotted paths and JSONPath."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.schema.paths import compile_jsonpath, dotted_get, jsonpath

OBJECT = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web", "plain": "p"}},
    "spec": {
        "replicas": 3,
        "paused": False,
        "containers": [
            {"name": "a", "image": "x", "ports": [{"port": 80}, {"port": 81}]},
            {"name": "b", "image": "y"},
            {"name": "c", "ports": []},
        ],
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "weight": 2},
            {"type": "Done", "status": "False", "weight": 1.5, "final": True},
        ]
    },
}
CONTAINERS: Any = OBJECT["spec"]["containers"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("{ .spec.replicas }", [3]),
        ("spec.replicas", [3]),
        ("$.spec.replicas", [3]),
        ("{@.spec.paused}", [False]),
        (".", [OBJECT]),
        (".spec.missing.further", []),
        (".spec['replicas']", [3]),
        ('.spec["replicas"]', [3]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (".metadata.labels['app.kubernetes.io/name']", ["web"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["web"]),
        (".metadata.labels['plain','missing','plain']", ["p", "p"]),
        (".spec.containers[0].name", ["a"]),
        (".spec.containers[-1].name", ["c"]),
        (".spec.containers[7].name", []),
        (".spec.containers[*].name", ["a", "b", "c"]),
        (".spec.containers.*.name", ["a", "b", "c"]),
        (".spec.containers[0:2].name", ["a", "b"]),
        (".spec.containers[1:].name", ["b", "c"]),
        (".spec.containers[:-1].name", ["a", "b"]),
        (".spec.containers[-2:].name", ["b", "c"]),
        (".spec.containers[::2].name", ["a", "c"]),
        (".spec.containers[0,2].name", ["a", "c"]),
        (".metadata.labels.*", ["web", "p"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        ("{.status.conditions[?(@.type == 'Ready')].status}", ["True"]),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
        (".status.conditions[?(@.weight>1.5)].type", ["Ready"]),
        (".status.conditions[?(@.weight>=1.5)].type", ["Ready", "Done"]),
        (".status.conditions[?(@.weight<2)].type", ["Done"]),
        (".status.conditions[?(@.weight<=2)].type", ["Ready", "Done"]),
        (".status.conditions[?(@.final==true)].type", ["Done"]),
        (".status.conditions[?(@.final==1)].type", []),
        (".status.conditions[?(@.weight=='2')].type", []),
        (".status.conditions[?(@.final)].type", ["Done"]),
        (".spec.containers[?(@.ports[0].port==80)].name", ["a"]),
        (".spec.containers[?(@.missing=='x')]", []),
        ("..port", [80, 81]),
        (".spec..port", [80, 81]),
        (".spec.containers..name", ["a", "b", "c"]),
        ("..[1].port", [81]),
    ],
)
def test_a_path_finds_its_values(path: str, expected: Any) -> None:
    assert jsonpath(OBJECT, path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "{.spec",
        ".spec[",
        ".spec[]",
        ".spec[x]",
        ".spec[-]",
        ".spec[0",
        ".spec['a]",
        ".spec.",
        ".spec.[",
        ".spec.=",
        ".a[?(@.b==)]",
        ".a[?(@.b=='x']",
        ".a[?(b=='x')]",
        ".a[0:2:0]",
        ".a[" + "9" * 5000 + "]",
        ".a b",
        "{.a}{.b}",
        "a}",
    ],
)
def test_bad_syntax_is_told_in_a_sentence(path: str) -> None:
    with pytest.raises(ValueError, match=r"^the path .* (cannot be read at|opens a brace)"):
        compile_jsonpath(path)


@settings(deadline=None)
@given(st.text(".[]?(@='a0:*-)\\ ", max_size=12))
def test_any_text_is_a_path_or_a_value_error(text: str) -> None:
    try:
        find = compile_jsonpath(text)
    except ValueError:
        return
    assert isinstance(find(OBJECT), list)


def test_a_path_is_compiled_once() -> None:
    assert compile_jsonpath(".spec.replicas") is compile_jsonpath(".spec.replicas")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.replicas", 3),
        (".spec.replicas", 3),
        ("spec.missing", None),
        ("spec.replicas.further", None),
        ("spec.containers", CONTAINERS),
    ],
)
def test_a_dotted_path_gets_one_value(path: str, expected: Any) -> None:
    assert dotted_get(OBJECT, path) == expected
