"""Rules from files and from objects of the hub, checked before use.

A rule is checked twice: by the schema of KindRule, as at admission, and by compiling every path and
expression. All faults are reported together, each with the path of its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from fairway.api.codec import decode
from fairway.api.documents import read_documents
from fairway.api.errors import FieldError, Invalid
from fairway.api.kindrule import KINDS_GROUP, KindRule
from fairway.api.meta import JsonObject
from fairway.api.schemas import schema_of
from fairway.kinds.plain import copy_of, name_of
from fairway.kinds.rules.expressions import Compiler
from fairway.kinds.rules.kind import RuleKind
from fairway.schema.cel.rules import check_rules
from fairway.schema.node import Node, parse
from fairway.schema.validation import Findings, conform

RULES_MAX = 256


def kind_of(rule: KindRule | Mapping[str, Any]) -> RuleKind:
    """The Kind that a rule describes; Invalid with all faults of the rule.

    A rule given as plain JSON is checked by the schema too, and unknown fields are refused.
    """
    if not isinstance(rule, KindRule):
        plain = copy_of(dict(rule))
        faults = _schema_faults(plain)
        if faults:
            raise Invalid.of("KindRule", KINDS_GROUP, name_of(plain), faults)
        rule = decode(plain, KindRule)
    compiler = Compiler()
    kind = RuleKind(rule, compiler)
    if compiler.faults:
        raise Invalid.of("KindRule", KINDS_GROUP, rule.metadata.name, compiler.faults)
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The result of loading a hub's rules."""

    kinds: tuple[RuleKind, ...] = ()
    faults: Mapping[str, Invalid] = field(default_factory=dict)  # by rule name


def kinds_of(rules: Iterable[KindRule]) -> Loaded:
    """The kinds of a hub's rules, by name; an invalid rule does not stop the others.

    At most `RULES_MAX` rules are accepted; those past it, by name, are refused.
    """
    kinds: list[RuleKind] = []
    faults: dict[str, Invalid] = {}
    for rule in sorted(rules, key=lambda rule: rule.metadata.name):
        name = rule.metadata.name
        try:
            if len(kinds) >= RULES_MAX:
                why = FieldError("spec", "FieldValueForbidden", f"there are {RULES_MAX} rules")
                raise Invalid.of("KindRule", KINDS_GROUP, name, [why])
            kinds.append(kind_of(rule))
        except Invalid as fault:
            faults[name] = fault
    return Loaded(kinds=tuple(kinds), faults=faults)


@cache
def built_in_rules() -> tuple[JsonObject, ...]:
    """The built-in rules, as written, by name."""
    folder = resources.files("fairway.kinds.rules") / "data"
    files = sorted((path for path in folder.iterdir()), key=lambda path: path.name)
    return tuple(
        document.value
        for file in files
        if file.name.endswith(".yaml")
        for document in read_documents(file.read_text())
    )


@cache
def built_in_kinds() -> tuple[RuleKind, ...]:
    """The kinds of the built-in rules."""
    return tuple(kind_of(rule) for rule in built_in_rules())


def _schema_faults(plain: JsonObject) -> list[FieldError]:
    findings = Findings()
    conform(plain, _node(), findings)
    unknown = [
        FieldError(field.path, "FieldValueInvalid", str(field)) for field in findings.unknown
    ]
    schema_faults = [*findings.faults, *unknown]
    return schema_faults or check_rules(plain, None, _node(), is_update=False)


@cache
def _node() -> Node:
    schema = schema_of(KindRule)
    schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = True
    return parse(schema)
