"""The parsed form of an OpenAPI v3 structural schema.

A `Node` describes one value: its type, its parts, its limits, and how it merges. Parsed once per
kind and shared. Recursive schemas (`$ref`) become cyclic graphs, so a walk over a Node must follow
a value beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One CEL rule of `x-kubernetes-validations`."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """What a value may be, and how two values merge."""

    type: str = ""  # object, array, string, integer, number, boolean; "" admits any
    format: str = ""
    description: str = ""
    nullable: bool = False
    int_or_string: bool = False
    preserve_unknown: bool = False
    embedded_resource: bool = False

    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | None = None  # schema of further keys
    additional_forbidden: bool = False  # additionalProperties: false
    items: Node | None = None
    required: tuple[str, ...] = ()

    has_default: bool = False
    default: Any = None

    enum: tuple[Any, ...] | None = None
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None

    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    none_of: Node | None = None  # the schema under `not`

    list_type: str = "atomic"  # atomic, set, map
    list_map_keys: tuple[str, ...] = ()
    map_type: str = "granular"  # granular, atomic
    patch_strategies: frozenset[str] = frozenset()  # merge, replace, retainKeys
    patch_merge_key: str = ""

    rules: tuple[Rule, ...] = ()

    # Derived data that other modules cache on this Node.
    shape: Any = field(default=None, repr=False)  # schema.validation
    accepts: Any = field(default=None, repr=False)  # schema.acceptance
    rule_plan: Any = field(default=None, repr=False)  # schema.cel

    def child(self, name: str) -> Node | None:
        """The schema of a key of this object; None if it is unknown."""
        node = self.properties.get(name)
        return node if node is not None else self.additional


# A value without a schema: kept as it is, merged by granular maps and atomic lists.
ANY = Node(preserve_unknown=True)

_COPIED: Mapping[str, str] = {
    "format": "format",
    "description": "description",
    "nullable": "nullable",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "uniqueItems": "unique_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
    "x-kubernetes-int-or-string": "int_or_string",
    "x-kubernetes-preserve-unknown-fields": "preserve_unknown",
    "x-kubernetes-embedded-resource": "embedded_resource",
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-merge-key": "patch_merge_key",
}


class Parser:
    """Turns OpenAPI documents into Nodes; each `$ref` is parsed once, cycles included."""

    def __init__(self, definitions: Mapping[str, JsonObject] | None = None) -> None:
        self._definitions = definitions or {}
        self._parsed: dict[str, Node] = {}

    def parse(self, schema: Mapping[str, Any]) -> Node:
        reference = _reference(schema)
        if reference:
            target = self.definition(reference)
            return _with_siblings(target, schema)
        node = Node()
        self._fill(node, schema)
        return node

    def definition(self, name: str) -> Node:
        """The Node of a definition."""
        node = self._parsed.get(name)
        if node is None:
            node = self._parsed[name] = Node()
            self._fill(node, self._definitions[name])
        return node

    def _fill(self, node: Node, schema: Mapping[str, Any]) -> None:
        node.type = schema.get("type", "")
        for key, attribute in _COPIED.items():
            if schema.get(key) is not None:
                setattr(node, attribute, schema[key])
        node.required = tuple(schema.get("required") or ())
        node.list_map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        node.enum = tuple(schema["enum"]) if schema.get("enum") is not None else None
        if "default" in schema:
            node.has_default, node.default = True, schema["default"]
        strategies = schema.get("x-kubernetes-patch-strategy", "")
        node.patch_strategies = frozenset(part for part in strategies.split(",") if part)
        node.properties = {
            name: self.parse(part) for name, part in (schema.get("properties") or {}).items()
        }
        self._fill_additional(node, schema.get("additionalProperties"))
        if isinstance(schema.get("items"), Mapping):
            node.items = self.parse(schema["items"])
        self._fill_logic(node, schema)
        node.rules = tuple(_rule(other) for other in schema.get("x-kubernetes-validations") or ())

    def _fill_additional(self, node: Node, additional: Any) -> None:
        if isinstance(additional, Mapping):
            node.additional = self.parse(additional)
        elif additional is True:
            node.additional = ANY
        elif additional is False:
            node.additional_forbidden = True

    def _fill_logic(self, node: Node, schema: Mapping[str, Any]) -> None:
        node.all_of = self._each(schema.get("allOf"))
        node.any_of = self._each(schema.get("anyOf"))
        node.one_of = self._each(schema.get("oneOf"))
        if isinstance(schema.get("not"), Mapping):
            node.none_of = self.parse(schema["not"])

    def _each(self, schemas: Sequence[Mapping[str, Any]] | None) -> tuple[Node, ...]:
        return tuple(self.parse(schema) for schema in schemas or ())


def parse(schema: Mapping[str, Any], definitions: Mapping[str, JsonObject] | None = None) -> Node:
    """Parses one schema, with the definitions that its `$ref`s name."""
    return Parser(definitions).parse(schema)


def _reference(schema: Mapping[str, Any]) -> str:
    """The definition a schema refers to; OpenAPI v3 wraps it in a single-entry `allOf`."""
    reference = schema.get("$ref")
    if reference is None and len(schema.get("allOf") or ()) == 1:
        reference = schema["allOf"][0].get("$ref")
    return str(reference).rsplit("/", 1)[-1] if reference else ""


def _with_siblings(target: Node, schema: Mapping[str, Any]) -> Node:
    """A referred Node with the siblings of the `$ref`: default, description, merge hints.

    A plain reference is the target itself, so cycles stay cycles; a copy is made only if a
    sibling changes it, which Kubernetes' documents never do on a recursive type.
    """
    siblings = {
        key: value
        for key, value in schema.items()
        if key in _COPIED or key in ("default", "x-kubernetes-patch-strategy")
    }
    if not siblings.keys() - {"description"}:
        return target
    kept = set(Node.__dataclass_fields__) - {"shape", "accepts", "rule_plan"}
    copy = Node(**{name: getattr(target, name) for name in kept})
    for key, value in siblings.items():
        if key == "default":
            copy.has_default, copy.default = True, value
        elif key == "x-kubernetes-patch-strategy":
            copy.patch_strategies = frozenset(value.split(","))
        else:
            setattr(copy, _COPIED[key], value)
    return copy


def _rule(entry: Mapping[str, Any]) -> Rule:
    return Rule(
        rule=entry["rule"],
        message=entry.get("message") or "",
        message_expression=entry.get("messageExpression") or "",
        reason=entry.get("reason") or "FieldValueInvalid",
        field_path=entry.get("fieldPath") or "",
        optional_old_self=bool(entry.get("optionalOldSelf")),
    )
