"""Sets of field paths, in the wire form that `metadata.managedFields` carries (FieldsV1).

A set is a tree of path elements, and the tree *is* the wire form, so reading and writing one costs
nothing: `{"f:spec": {"f:ports": {".": {}, "k:{\\"port\\":80}": {}}}}`. An empty branch is a member;
a branch with `.` is a member that has members below; any other branch only leads to members.

Elements are `f:name` (a key of a map), `k:{...}` (an item of a list, by its key fields), `v:...`
(an item of a set, by its value) and `i:0` (an item by position). Two elements are equal when their
text is, so every element is kept in one canonical spelling: `parse` makes it so for foreign text.
Trees are shared between sets and never changed in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairway.api.errors import readable

Tree = dict[str, Any]

_ELEMENT_KINDS = "fkvi"
_MEMBER: Tree = {}
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class FieldSet:
    """A set of field paths."""

    tree: Tree = field(default_factory=dict)

    @classmethod
    def parse(cls, wire: Any) -> FieldSet:
        """The set that a FieldsV1 value describes; ValueError where it describes none."""
        return cls(parse(wire))

    @classmethod
    def of(cls, *paths: Sequence[str]) -> FieldSet:
        """A set of paths, each a sequence of elements such as `f:spec`."""
        tree: Tree = {}
        for path in paths:
            tree = union(tree, _single(path))
        return cls(tree)

    def render(self) -> Tree:
        """The set as FieldsV1."""
        return self.tree

    def union(self, other: FieldSet) -> FieldSet:
        return FieldSet(union(self.tree, other.tree))

    def difference(self, other: FieldSet) -> FieldSet:
        return FieldSet(difference(self.tree, other.tree))

    def intersection(self, other: FieldSet) -> FieldSet:
        return FieldSet(intersection(self.tree, other.tree))

    def has(self, path: Sequence[str]) -> bool:
        """Whether the path itself, and not only something below it, is in the set."""
        branch: Any = self.tree
        for element in path:
            branch = branch.get(element)
            if branch is None:
                return False
        return bool(path) and is_member(branch)

    def is_empty(self) -> bool:
        return not self.tree

    def leaves(self) -> FieldSet:
        """Only the members that have no members below."""
        return FieldSet(_leaves(self.tree))

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Every member, in the order in which conflicts are reported."""
        return _paths(self.tree, ())


def is_member(branch: Tree) -> bool:
    return not branch or "." in branch


def union(left: Tree, right: Tree) -> Tree:
    """The paths of either tree."""
    if not right or left is right:
        return left
    if not left:
        return right
    out = dict(left)
    for element, branch in right.items():
        mine = left.get(element)
        out[element] = branch if mine is None else _union_branch(mine, branch)
    return out


def _union_branch(left: Tree, right: Tree) -> Tree:
    if not left:
        return right if is_member(right) else {".": _MEMBER, **right}
    if not right:
        return left if is_member(left) else {".": _MEMBER, **left}
    return union(left, right)


def difference(left: Tree, right: Tree) -> Tree:
    """The paths of `left` that are not in `right`; paths below a removed path stay."""
    if not right or not left:
        return left
    out: Tree = {}
    for element, branch in left.items():
        theirs = right.get(element)
        if theirs is None:
            out[element] = branch
        elif not branch:
            # A member without parts, or the `.` mark: removed if it is a member of `right` too.
            if theirs and "." not in theirs:
                out[element] = branch
        else:
            kept = _difference_branch(branch, theirs)
            if kept is not None:
                out[element] = kept
    return out


def _difference_branch(left: Tree, right: Tree) -> Tree | None:
    """The remaining part of a branch that has parts."""
    if not right:
        return _below(left) or None
    out = difference(left, right)
    if len(out) == 1 and "." in out:
        return {}
    return out or None


def intersection(left: Tree, right: Tree) -> Tree:
    """The paths in both trees."""
    out: Tree = {}
    for element, branch in left.items():
        theirs = right.get(element)
        if theirs is None or element == ".":
            continue
        both = is_member(branch) and is_member(theirs)
        below = intersection(branch, theirs) if branch and theirs else {}
        if below:
            out[element] = {".": _MEMBER, **below} if both else below
        elif both:
            out[element] = {}
    return out


def _below(branch: Tree) -> Tree:
    if "." not in branch:
        return branch
    return {element: part for element, part in branch.items() if element != "."}


def _leaves(tree: Tree) -> Tree:
    return {
        element: _leaves(branch) if branch else {}
        for element, branch in tree.items()
        if element != "."
    }


def _single(path: Sequence[str]) -> Tree:
    tree: Tree = {}
    for element in reversed(path):
        tree = {element: tree}
    return tree


def _paths(tree: Tree, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    ordered = sorted((element for element in tree if element != "."), key=_order)
    for element in ordered:
        if is_member(tree[element]):
            yield (*prefix, element)
    for element in ordered:
        if tree[element]:
            yield from _paths(tree[element], (*prefix, element))


def _order(element: str) -> tuple[Any, ...]:
    kind, text = element[0], element[2:]
    rank = _ELEMENT_KINDS.index(kind)
    if kind == "f":
        return rank, text
    value = msgspec.json.decode(text)
    pairs = value.items() if kind == "k" else [("", value)]
    return rank, tuple((name, *_scalar_order(part)) for name, part in pairs)


def _scalar_order(value: Any) -> tuple[int, Any]:
    """Sort order: numbers, then strings, then booleans, then the rest."""
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case _:
            return 3, encode(value)


def encode(value: Any) -> str:
    """A value inside an element: compact JSON, sorted keys, whole numbers as integers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _encode(value).decode()


def parse(wire: Any) -> Tree:
    """A FieldsV1 value with its elements in canonical spelling."""
    if not isinstance(wire, dict):
        # Malformed input, like all other errors here.
        raise ValueError("fieldsV1 must be an object")  # noqa: TRY004 - not a programming error
    tree: Tree = {}
    for text, branch in wire.items():
        if text == ".":
            tree["."] = {}
            continue
        element = _parse_element(text)
        if element:
            below = parse(branch)
            tree[element] = _union_branch(tree[element], below) if element in tree else below
    # A branch that leads only to unknown kinds of elements is itself a member.
    return tree if len(tree) > 1 or "." not in tree else {}


def _parse_element(text: str) -> str:
    """The canonical spelling; empty for a kind of element that a later version may know."""
    if len(text) < 2 or text[1] != ":":
        raise ValueError(f"{text!r} is not an element of a field path")
    kind, rest = text[0], text[2:]
    if kind not in _ELEMENT_KINDS:
        return ""
    if kind == "f":
        return text
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError as error:
        raise ValueError(f"{text!r} is not an element of a field path: {error}") from None
    if kind == "k":
        if not isinstance(value, dict):
            raise ValueError(f"the key of {text!r} must be an object")
        return key_element(value)
    if kind == "i" and type(value) is not int:
        raise ValueError(f"the index of {text!r} must be a whole number")
    return f"{kind}:{encode(value)}"


def key_element(fields: dict[str, Any]) -> str:
    """The element of a list item, by its key fields."""
    for name, value in fields.items():
        if type(value) is float and value.is_integer():
            fields = {**fields, name: int(value)}
    return "k:" + _encode(fields).decode()


def show_path(path: Sequence[str]) -> str:
    """A path in readable form: `.spec.ports[port=80,protocol="TCP"].name`."""
    return readable("".join(map(_show_element, path)))


def _show_element(element: str) -> str:
    kind, text = element[0], element[2:]
    match kind:
        case "f":
            return f".{text}"
        case "k":
            pairs = msgspec.json.decode(text).items()
            return "[" + ",".join(f"{name}={encode(value)}" for name, value in pairs) + "]"
        case "v":
            return f"[={text}]"
        case _:
            return f"[{text}]"
