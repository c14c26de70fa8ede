"""One walk that makes a value conform to its schema, or reports why it does not.

`conform` prunes unknown fields, fills in defaults, drops meaningless nulls, and checks types and
limits, in place and in one pass; faults are worded as by a kube-apiserver. Rules over several
fields (CEL) run after it, in `schema.cel`.

The walk runs on every write, so each Node has a `Shape`, derived once: its checks as a list of
functions, and its defaults ready to copy. Parts that already conform (`acceptance`) are not walked
at all.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairway.api.equality import same
from fairway.api.errors import FieldError, duplicate, readable, required_field, wrong_type
from fairway.schema.acceptance import accepts_of
from fairway.schema.limits import limits_of
from fairway.schema.node import JsonObject, Node

Check = Callable[[Any, str, list[FieldError]], None]

_encode = msgspec.json.Encoder(order="deterministic").encode
FINDINGS_MAX = 100

# Fields of every object, whatever its schema says.
OBJECT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that is not in the schema."""

    path: str
    suggestion: str = ""

    def __str__(self) -> str:
        hint = f', did you mean "{self.suggestion}"?' if self.suggestion else ""
        return f'unknown field "{readable(self.path)}"{hint}'


@dataclass(slots=True)
class Findings:
    """The result of a walk: faults, and the unknown fields that it pruned.

    Built-in kinds check their own lists for duplicates, in their own words.
    """

    checks_duplicates: bool = True
    faults: list[FieldError] = field(default_factory=list)
    unknown: list[UnknownField] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether there are enough faults: more help no one, and a bad body must not cost much."""
        return len(self.faults) >= FINDINGS_MAX or len(self.unknown) >= FINDINGS_MAX


_NOTHING: JsonObject = {}


class Shape:
    """What the walk needs from a Node, derived once."""

    __slots__ = ("checks", "defaults", "is_any", "limited", "node", "scalar", "types")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.types = _PYTHON_TYPES.get(node.type, ())
        if node.int_or_string:
            self.types = (int, str)
        self.checks: tuple[Check, ...] = limits_of(node)
        self.defaults = tuple(
            (name, child.default, isinstance(child.default, dict | list))
            for name, child in node.properties.items()
            if child.has_default
        )
        # A scalar is checked by its parent: one type comparison, and its limits if it has any.
        self.scalar: type | None = None
        self.limited: type | None = None
        if len(self.types) == 1 and self.types[0] in (str, int, bool):
            if self.checks:
                self.limited = self.types[0]
            else:
                self.scalar = self.types[0]
        self.is_any = (
            not node.type
            and not node.properties
            and node.additional is None
            and node.items is None
            and not node.int_or_string
            and not self.checks
        )


def shape_of(node: Node) -> Shape:
    shape: Shape | None = node.shape
    if shape is None:
        shape = node.shape = Shape(node)
    return shape


def conform(
    value: JsonObject,
    node: Node,
    findings: Findings,
    *,
    path: str = "",
    known: JsonObject | None = None,
) -> None:
    """Makes an object conform in place; faults and pruned fields go to `findings`.

    Parts that equal those in `known`, an object that already conforms, are taken from there and
    not walked again, so a small change of a large object is cheap.
    """
    _walk_object(value, shape_of(node), path, findings, is_root=True, known=known)


def _walk(value: Any, shape: Shape, path: str, findings: Findings, known: Any = None) -> None:
    node = shape.node
    if shape.types:
        kind = type(value)
        if kind not in shape.types and not _is_whole_float(value, node):
            findings.faults.append(wrong_type(path, value, _wanted(node)))
            return
    if isinstance(value, dict):
        _walk_object(value, shape, path, findings, is_root=node.embedded_resource, known=known)
        return
    if isinstance(value, list):
        _walk_list(value, shape, path, findings, known)
    for check in shape.checks:
        check(value, path, findings.faults)


def _walk_object(
    value: JsonObject,
    shape: Shape,
    path: str,
    findings: Findings,
    *,
    is_root: bool,
    known: Any = None,
) -> None:
    node = shape.node
    if not shape.is_any:
        known = known if isinstance(known, dict) else _NOTHING
        _walk_members(value, node, path, findings, is_root=is_root, known=known)
    prefix = path + "." if path else ""
    for name, default, is_container in shape.defaults:
        if name not in value:
            value[name] = deepcopy(default) if is_container else default
            if is_container:
                _walk(value[name], shape_of(node.properties[name]), prefix + name, findings)
    for name in node.required:
        if name not in value:
            findings.faults.append(required_field(prefix + name))
    if node.embedded_resource:
        for name in ("apiVersion", "kind"):
            if not value.get(name) and name not in node.required:
                findings.faults.append(required_field(prefix + name, "must not be empty"))
    for check in shape.checks:
        check(value, path, findings.faults)


def _walk_members(
    value: JsonObject,
    node: Node,
    path: str,
    findings: Findings,
    *,
    is_root: bool,
    known: JsonObject,
) -> None:
    prefix = path + "." if path else ""
    properties = node.properties
    dropped: list[str] = []
    for name, part in value.items():
        child = properties.get(name)
        if child is None:
            child = _further(name, node, findings, prefix, dropped, is_root=is_root)
            if child is None:
                continue
        shape: Shape = child.shape or shape_of(child)
        kind = type(part)
        if kind is shape.scalar or shape.is_any:
            continue
        if kind is shape.limited:
            inner = prefix + name
            for check in shape.checks:
                check(part, inner, findings.faults)
        elif findings.faults and findings.is_full:
            break
        elif part is not None:
            # Metadata is changed later, and must not be shared.
            before = None if is_root and name == "metadata" else known.get(name)
            if before is not None and same(before, part):
                value[name] = before
            else:
                _walk_part(part, shape, prefix + name, findings, before)
        elif not child.nullable:
            # A null that the schema does not allow means "not set".
            dropped.append(name)
    for name in dropped:
        del value[name]


def _walk_part(part: Any, shape: Shape, path: str, findings: Findings, before: Any) -> None:
    """Walks changed parts; a new part is walked only if it does not already conform."""
    if before is not None or not accepts_of(shape.node)(part):
        _walk(part, shape, path, findings, before)


def _further(
    name: str,
    node: Node,
    findings: Findings,
    prefix: str,
    dropped: list[str],
    *,
    is_root: bool,
) -> Node | None:
    """The schema of a key that is not a named property; None if there is nothing to walk."""
    if node.additional is not None:
        return node.additional
    if node.preserve_unknown or (is_root and name in OBJECT_FIELDS):
        return None
    dropped.append(name)
    known = [*node.properties, *(OBJECT_FIELDS if is_root else ())]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    findings.unknown.append(UnknownField(prefix + name, close[0] if close else ""))
    return None


def _walk_list(
    value: list[Any], shape: Shape, path: str, findings: Findings, known: Any = None
) -> None:
    node = shape.node
    if node.items is None:
        return
    item_shape = shape_of(node.items)
    if item_shape.is_any:
        return
    accepts = accepts_of(node.items)
    before: list[Any] = known if isinstance(known, list) else []
    for index, item in enumerate(value):
        # Lists usually grow at the end, or change in one place.
        if index < len(before) and same(before[index], item):
            continue
        if accepts(item):
            continue
        if findings.faults and findings.is_full:
            return
        if item is None and node.items.nullable:
            continue
        _walk(item, item_shape, f"{path}[{index}]", findings)
    if node.list_type != "atomic" and findings.checks_duplicates:
        _check_unique(value, node, path, findings)


def _check_unique(value: list[Any], node: Node, path: str, findings: Findings) -> None:
    """Sets hold each value once; list-maps hold each key once and name every key."""
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        key: Any = item
        if node.list_type == "map":
            if not isinstance(item, dict):
                continue
            key = {name: item[name] for name in node.list_map_keys if name in item}
        text = _encode(key)
        if text in seen:
            findings.faults.append(duplicate(f"{path}[{index}]", key))
            if findings.is_full:
                return
        seen.add(text)


def _is_whole_float(value: Any, node: Node) -> bool:
    """JSON has only numbers: 3.0 is an integer too."""
    return node.type == "integer" and isinstance(value, float) and value.is_integer()


def _wanted(node: Node) -> str:
    return "integer,string" if node.int_or_string else node.type


def is_unchanged(fault: FieldError, new: JsonObject, old: JsonObject) -> bool:
    """Whether a fault concerns an unchanged value, which the object may keep."""
    if fault.type == "FieldValueRequired":
        path, _, _ = fault.path.rpartition(".")
    else:
        path = fault.path
    missing = object()
    present = _at(new, path, missing)
    return present is not missing and same(present, _at(old, path, missing))


def _at(value: Any, path: str, missing: Any) -> Any:
    for part in path.replace("[", ".[").split("."):
        if part.startswith("["):
            index = part[1:-1]
            if not (isinstance(value, list) and index.isdigit() and int(index) < len(value)):
                return missing
            value = value[int(index)]
        elif part:
            if not (isinstance(value, dict) and part in value):
                return missing
            value = value[part]
    return value
