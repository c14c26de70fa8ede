"""Values for the fuzzing: anything JSON can say, and objects that are nearly right.

A nearly right object follows its kind's schema, then one or two places in it are spoiled. Objects
that are all wrong are refused at the first look; these go deep.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject, Node

NAMES = st.sampled_from(["a", "b", "c-1"])
NAMESPACE = "default"

# Text that breaks what was written with only letters in mind.
ODD_TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "line\nline",
    "\u2028",
    "\x85",
    "\ud7ff\ue000",
    "é",
    "e\u0301",
    "🐟" * 3,
    "\u202egnp",
    "'",
    '"',
    "\\",
    "%00",
    "%s%n{0}{x}",
    "{{",
    "a" * 64,
    "a" * 254,
    "x" * 5000,
    ".",
    "..",
    "/",
    "../..",
    "-",
    "A",
    "null",
    "true",
    "NaN",
    "1e999999",
    "9" * 40,
    "-1",
    "0x10",
    "1Gi",
    "500m",
    "1.5",
    "٣",
    "2020-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "0000-00-00T00:00:00Z",
    "$(touch)",
    "kubernetes.io/x",
    "a/b/c",
    "a=b,c!=d",
    "[[:alpha:]",
    "(",
]
ODD_NUMBERS = [
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64 - 1,
    2**64,
    10**30,
    -(10**30),
    0.5,
    -0.0,
    1e308,
    5e-324,
    3.0,
    1e19,
]
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=12))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(ODD_NUMBERS),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


def nested(depth: int, *, with_lists: bool = False) -> Any:
    """A value nested so deep."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if with_lists else {"a": value}
    return value


deep_values = st.builds(nested, st.sampled_from([50, 150, 400]), with_lists=st.booleans())
spoilers = st.one_of(
    values, deep_values, st.builds(lambda n: {f"k{i}": "v" for i in range(n)}, st.just(300))
)


@st.composite
def fitting(draw: st.DrawFn, node: Node, depth: int = 0) -> Any:
    """A value that a schema admits, or nearly so."""
    if node.enum:
        return draw(st.sampled_from(node.enum))
    if node.int_or_string:
        return draw(st.one_of(st.integers(0, 9), st.sampled_from(["1", "50%", "http", "1Gi"])))
    match node.type:
        case "object":
            return draw(_fitting_object(node, depth))
        case "array":
            least = max(node.min_items, 0) if isinstance(node.min_items, int) else 0
            size = draw(st.integers(min(least, 3), max(min(least, 3), 2)))
            if node.items is None or depth > 7:
                return []
            return [draw(fitting(node.items, depth + 1)) for _ in range(size)]
        case "integer":
            low = int(node.minimum) if isinstance(node.minimum, int | float) else 0
            return draw(st.integers(low, low + 5))
        case "number":
            return draw(st.sampled_from([0.5, 1.0, 2]))
        case "boolean":
            return draw(st.booleans())
        case "string":
            return draw(_fitting_text(node))
        case _:
            return draw(values)


def _fitting_text(node: Node) -> st.SearchStrategy[str]:
    if node.format == "date-time":
        return st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000001Z"])
    if node.format == "byte":
        return st.sampled_from(["", "aGVsbG8=", "!!"])
    return st.sampled_from(
        ["a", "b", "web", "1", "500m", "80Gi", "nginx:1", "Always", "TCP", "10s", "/x", "a.b/c"]
    )


@st.composite
def _fitting_object(draw: st.DrawFn, node: Node, depth: int) -> JsonObject:
    names = [name for name in node.required if name in node.properties]
    others = [name for name in node.properties if name not in node.required]
    if others and depth < 6:
        count = draw(st.integers(0, 4 if depth < 2 else 2))
        names += draw(st.lists(st.sampled_from(others), max_size=count, unique=True))
    made = {
        name: draw(fitting(node.properties[name], depth + 1))
        for name in names
        if depth < 9 or node.properties[name].type not in ("object", "array")
    }
    if node.additional is not None and depth < 8:
        for key in draw(
            st.lists(st.sampled_from(["a", "cpu", "nvidia.com/gpu", "x-y"]), max_size=2)
        ):
            made[key] = draw(fitting(node.additional, depth + 1))
    return made


@st.composite
def objects_of(draw: st.DrawFn, resource: Resource, *, spoiled: int = 2) -> JsonObject:
    """An object of a kind, with up to so many places spoiled."""
    body: JsonObject = {"apiVersion": resource.api_version, "kind": resource.kind}
    for name, part in resource.schema.properties.items():
        if name in ("apiVersion", "kind", "metadata"):
            continue
        wanted = name in resource.schema.required or name == "spec"
        if wanted or draw(st.booleans()):
            body[name] = draw(fitting(part))
    body["metadata"] = draw(_metadata())
    for _ in range(draw(st.integers(0, spoiled))):
        body = draw(spoil(body))
    return body


@st.composite
def _metadata(draw: st.DrawFn) -> JsonObject:
    metadata: JsonObject = {"name": draw(NAMES)}
    more: dict[str, st.SearchStrategy[Any]] = {
        "labels": st.dictionaries(st.sampled_from(["app", "a.b/c"]), st.just("x"), max_size=2),
        "annotations": st.dictionaries(st.sampled_from(["note", "a.b/c"]), texts, max_size=2),
        "finalizers": st.lists(
            st.sampled_from(["a.b/c", "orphan", "foregroundDeletion"]), max_size=1
        ),
        "ownerReferences": st.lists(_owners, max_size=2),
        "generateName": st.just("g-"),
    }
    for key in draw(st.lists(st.sampled_from(sorted(more)), max_size=2, unique=True)):
        metadata[key] = draw(more[key])
    return metadata


_owners = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "apps/v1"]),
        "kind": st.sampled_from(["ConfigMap", "Deployment", "Nothing"]),
        "name": NAMES,
        "uid": st.sampled_from(["u", "v"]),
    },
    optional={"controller": st.booleans(), "blockOwnerDeletion": st.booleans()},
)


@st.composite
def spoil(draw: st.DrawFn, body: Any) -> Any:
    """A copy of a value with one place in it replaced, removed, doubled or added."""
    path: list[Any] = []
    here = body
    while isinstance(here, dict | list) and here and (not path or draw(st.integers(0, 3))):
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        path.append(draw(st.sampled_from(keys)))
        here = here[path[-1]]
    if not path:
        return draw(spoilers)
    return _with(body, path, draw(st.sampled_from(["replace", "remove", "add", "null"])), draw)


def _with(value: Any, path: list[Any], how: str, draw: st.DrawFn) -> Any:
    copied = dict(value) if isinstance(value, dict) else list(value)
    key, *rest = path
    if rest:
        copied[key] = _with(copied[key], rest, how, draw)
    elif how == "remove":
        del copied[key]
    elif how == "add" and isinstance(copied, dict):
        copied[draw(texts)] = draw(spoilers)
    elif how == "add":
        copied.append(draw(st.sampled_from(copied)))
    else:
        copied[key] = None if how == "null" else draw(spoilers)
    return copied
