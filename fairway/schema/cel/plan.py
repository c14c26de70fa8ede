"""The rules of a schema, compiled and arranged for walking a value.

A `Plan` mirrors a Node but keeps only the parts with rules, so a walk skips all others. It is made
at first use and kept in the Node's `rule_plan`: `False` means that there are no rules anywhere
below, so a schema without rules costs nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from fairway.schema.cel import conversion, environment, field_path
from fairway.schema.cel.declared import Kind
from fairway.schema.cel.environment import CompileError, Program
from fairway.schema.node import Node, Rule

VARIABLES: dict[str, Kind] = {"self": "dyn", "oldSelf": "dyn"}
_SELF_ONLY: dict[str, Kind] = {"self": "dyn"}
_SELF = re.compile(r"\bself\b")
# A comment may be between the name of a function and its arguments.
_FIELD = re.compile(r"\bself\.([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*(?:\(|//))")
_CONVERSION_LEVELS = (16, 6, 5, 4, 3, 2, 1)
_OPTIONAL_OLD = "oldSelf == null ? optional.none() : optional.of(oldSelf)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRule:
    """A rule with its programs; `fault` says why it has none."""

    rule: Rule
    program: Program | None
    fault: str
    message: Program | None
    uses_old: bool
    field_path: str


@dataclass(slots=True, kw_only=True)
class Plan:
    """The rules on one value, and the plans of its parts."""

    node: Node
    is_resource: bool
    rules: tuple[ReadyRule, ...] = ()
    together: Program | None = None  # all rules without oldSelf, in one evaluation
    # Values for which those rules hold, as JSON text of the fields that they read; the same values
    # repeat often.
    good: dict[bytes, None] = field(default_factory=dict)
    looked_at: tuple[str, ...] | None = None  # None: all of it
    looks_back: bool = False  # a rule on the value itself uses its old value
    looks_back_below: bool = True  # a rule on the value or on a part of it does
    convert: conversion.Convert | None = None
    all_of: tuple[Plan, ...] = ()
    properties: dict[str, Plan] = field(default_factory=dict)
    additional: Plan | None = None
    items: Plan | None = None


def plan_of(node: Node) -> Plan | Literal[False]:
    """The plan of a whole object's schema; made once."""
    kept: Plan | Literal[False] | None = node.rule_plan
    if kept is None:
        holders = _holders(node)
        kept = _Builder(holders).build(node, node, is_resource=True) if holders else False
        node.rule_plan = kept
    return kept


def uses_old_self(expression: str) -> bool:
    """Whether a valid expression refers to oldSelf, that is, does not compile without it."""
    if "oldSelf" not in expression:
        return False
    try:
        environment.compile(expression, _SELF_ONLY)
    except CompileError:
        return True
    return False


def parts(node: Node) -> Iterator[tuple[str, Node]]:
    """The schemas of a schema's parts, each with its path step."""
    for name, part in node.properties.items():
        yield f".properties[{name}]", part
    if node.additional is not None:
        yield ".additionalProperties", node.additional
    if node.items is not None:
        yield ".items", node.items
    for place, part in enumerate(node.all_of):
        yield f".allOf[{place}]", part


def _holders(root: Node) -> set[int]:
    """The ids of all schemas with rules, in themselves or below; handles cycles."""
    reached: dict[int, Node] = {}
    waiting = [root]
    parents: dict[int, list[Node]] = {}
    while waiting:
        node = waiting.pop()
        if id(node) in reached:
            continue
        reached[id(node)] = node
        for _, part in parts(node):
            parents.setdefault(id(part), []).append(node)
            waiting.append(part)
    holders: set[int] = set()
    waiting = [node for node in reached.values() if node.rules]
    while waiting:
        node = waiting.pop()
        if id(node) not in holders:
            holders.add(id(node))
            waiting.extend(parents.get(id(node), ()))
    return holders


class _Builder:
    """Builds the plans of one graph of schemas, each once."""

    def __init__(self, holders: set[int]) -> None:
        self._holders = holders
        self._built: dict[tuple[int, int], Plan] = {}

    def build(self, source: Node, shape: Node, *, is_resource: bool) -> Plan:
        """The plan of the rules in `source` on values of `shape`; these differ under `allOf`."""
        key = (id(source), id(shape))
        plan = self._built.get(key)
        if plan is not None:
            return plan
        plan = self._built[key] = Plan(node=shape, is_resource=is_resource)
        if source.rules:
            plan.rules = tuple(ready(rule, shape, is_resource=is_resource) for rule in source.rules)
            plan.together = _join(plan.rules, shape, is_resource=is_resource)
            plan.looked_at = _looked_at(source.rules, shape)
            plan.looks_back = any(
                rule.uses_old or rule.rule.optional_old_self or rule.program is None
                for rule in plan.rules
            )
            plan.convert = conversion.converter(shape)
        for name, part in source.properties.items():
            if name in shape.properties:
                built = self._part(part, shape.properties[name])
                if built is not None:
                    plan.properties[name] = built
        plan.additional = self._part(source.additional, shape.additional)
        plan.items = self._part(source.items, shape.items)
        plan.all_of = tuple(
            self.build(part, shape, is_resource=is_resource)
            for part in source.all_of
            if id(part) in self._holders
        )
        plan.looks_back_below = plan.looks_back or any(
            other.looks_back_below for other in _below(plan)
        )
        return plan

    def _part(self, source: Node | None, shape: Node | None) -> Plan | None:
        if source is None or shape is None or id(source) not in self._holders:
            return None
        return self.build(source, shape, is_resource=shape.embedded_resource)


def _below(plan: Plan) -> Iterator[Plan]:
    """The plans of parts; a recursive one is not finished yet, and is assumed to use old values."""
    yield from plan.properties.values()
    yield from plan.all_of
    yield from (other for other in (plan.additional, plan.items) if other is not None)


def _looked_at(rules: tuple[Rule, ...], shape: Node) -> tuple[str, ...] | None:
    """The fields of a value, by their real names, that decide whether its rules hold.

    None if the text does not show it. Rules spell some names differently (`escape`), and an
    invalid time fails all rules on the value, whatever they read.
    """
    text = "\n".join(rule.rule for rule in rules)
    named = _FIELD.findall(text)
    if len(named) != len(_SELF.findall(text)):
        return None
    real_names = {conversion.escape(name): name for name in shape.properties}
    times = (name for name, part in shape.properties.items() if _holds_times(part))
    return tuple(sorted({*(real_names.get(name, name) for name in named), *times}))


def _holds_times(node: Node) -> bool:
    return conversion.expression(node, "value", levels=_CONVERSION_LEVELS[0]) is not None


def _join(rules: tuple[ReadyRule, ...], node: Node, *, is_resource: bool) -> Program | None:
    """One program that holds if all rules without oldSelf hold; None if there are none."""
    alone = [rule for rule in rules if rule.program is not None and not rule.uses_old]
    if len(alone) < 2:
        return alone[0].program if alone else None
    text = " && ".join(f"({rule.rule.rule}\n)" for rule in alone)
    try:
        return _compile(text, Rule(rule=text), node, is_resource=is_resource)
    except CompileError:
        return None  # too deep or too long for one expression


def ready(rule: Rule, node: Node, *, is_resource: bool = False) -> ReadyRule:
    """A rule compiled for values of this schema."""
    program, message, fault, uses_old = None, None, "", False
    if rule.rule.strip():
        try:
            program = _compile(rule.rule, rule, node, is_resource=is_resource)
            uses_old = uses_old_self(rule.rule)
        except CompileError as problem:
            fault = problem.detail
    if rule.message_expression.strip():
        try:
            message = _compile(rule.message_expression, rule, node, is_resource=is_resource)
        except CompileError:
            message = None  # the plain message is used
    return ReadyRule(
        rule=rule,
        program=program,
        fault=fault,
        message=message,
        uses_old=uses_old,
        field_path=field_path.normalize(rule.field_path, node) or "",
    )


def _compile(source: str, rule: Rule, node: Node, *, is_resource: bool) -> Program:
    # The text as written compiles first, so that faults point into the author's text.
    program = environment.compile(source, VARIABLES)
    names = ("self", "oldSelf") if uses_old_self(source) else ("self",)
    optional = rule.optional_old_self and "oldSelf" in names
    inner = f"cel.bind(oldSelf, {_OPTIONAL_OLD}, {source}\n)" if optional else source
    for levels in _CONVERSION_LEVELS:
        text = inner
        for name in names:
            converted = conversion.expression(node, name, levels=levels, is_resource=is_resource)
            if converted is not None:
                guarded = conversion.unless_null(name, converted) if optional else converted
                text = f"cel.bind({name}, {guarded}, {text}\n)"
        if text is inner:
            break
        # The runtime refuses deep nesting; converting fewer levels nests less.
        with suppress(CompileError):
            return environment.compile(text, VARIABLES)
    return environment.compile(inner, VARIABLES) if optional else program
