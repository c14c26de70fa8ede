"""Checks values against the rules of their schema, as kube-apiserver 1.36 does.

A transition rule, one that uses `oldSelf`, runs only where the old value can be correlated: through
properties and maps by key, through lists of type map by their keys, never through other lists. On
an update, a rule on an unchanged value is not enforced, so a write is not refused for a part that
it did not touch (Kubernetes calls it ratcheting).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.api.equality import same
from fairway.api.errors import FieldError, duplicate, forbidden, invalid, required_field
from fairway.schema.cel.environment import (
    Budget,
    CostExceeded,
    EvaluationError,
    Program,
    Scope,
)
from fairway.schema.cel.faults import compile_faults
from fairway.schema.cel.plan import VARIABLES, Plan, ReadyRule, plan_of
from fairway.schema.node import Node

__all__ = ["check_rules", "compile_faults"]

_MESSAGE_LENGTH_MOST = 5 * 1024
_WRITE_UNITS = 4_000_000  # of all rules of one write
_VISIBLE_METADATA = ("name", "generateName")


@dataclass(frozen=True, slots=True)
class _Kinship:
    """The old value of the current value, and of the nearest part above that has one."""

    current: tuple[Any, Any] | None = None
    above: tuple[Any, Any] | None = None

    def is_unchanged(self) -> bool:
        pair = self.current or self.above
        return pair is not None and same(pair[0], pair[1])

    def of_key(self, key: str) -> _Kinship:
        if self.current is None:
            return self
        new, old = self.current
        known = isinstance(old, dict) and key in old
        return _Kinship((new[key], old[key]) if known else None, self.current)

    def of_item(self, new: Any, old: Any) -> _Kinship:
        if self.current is None:
            return self
        return _Kinship((new, old) if old is not None else None, self.current)


_STRANGER = _Kinship()
_encode = msgspec.json.Encoder().encode
_GOOD_MAX = 2048
_GOOD_BYTES_MAX = 2048


class _Stop(Exception):
    """No further rule may run."""


def check_rules(
    value: Any, old: Any, node: Node, path: str = "", *, is_update: bool
) -> list[FieldError]:
    """All rules that a value violates. The empty path means a whole object."""
    plan = node.rule_plan
    if plan is None:
        plan = plan_of(node)
    if plan is False:
        return []
    faults: list[FieldError] = []
    if not is_update:
        old = None
    kinship = _Kinship((value, old)) if old is not None else _STRANGER
    with suppress(_Stop):
        _Walk(faults).visit(plan, value, old, path, kinship)
    return faults


class _Walk:
    """One walk over a value and its plan; all its evaluations share a budget."""

    def __init__(self, faults: list[FieldError]) -> None:
        self._faults = faults
        self._budget = Budget(_WRITE_UNITS)

    def visit(self, plan: Plan, value: Any, old: Any, path: str, kinship: _Kinship) -> None:
        if value is None:
            return
        if old is not None and not plan.looks_back_below and kinship.is_unchanged():
            return  # unchanged, so no rule is enforced on it
        if plan.rules:
            self._check(plan, value, old, path, kinship)
        for part in plan.all_of:
            self.visit(part, value, old, path, _Kinship(None, kinship.above))
        if isinstance(value, dict):
            self._visit_map(plan, value, old if isinstance(old, dict) else {}, path, kinship)
        elif isinstance(value, list) and plan.items is not None:
            self._visit_list(plan, value, old, path, kinship)

    def _visit_map(
        self, plan: Plan, value: dict[str, Any], old: dict[str, Any], path: str, kinship: _Kinship
    ) -> None:
        if plan.additional is not None:
            for key, other in value.items():
                if key not in plan.node.properties:
                    part = kinship.of_key(key)
                    self.visit(plan.additional, other, old.get(key), f"{path}[{key}]", part)
        for key, below in plan.properties.items():
            if key in value:
                place = f"{path}.{key}" if path else key
                self.visit(below, value[key], old.get(key), place, kinship.of_key(key))

    def _visit_list(
        self, plan: Plan, value: list[Any], old: Any, path: str, kinship: _Kinship
    ) -> None:
        assert plan.items is not None
        keys = plan.node.list_map_keys if plan.node.list_type == "map" else ()
        old_by_key = _by_key(old, keys) if keys and isinstance(old, list) else {}
        for place, other in enumerate(value):
            result = old_by_key.get(_identity(other, keys)) if old_by_key else None
            part = kinship.of_item(other, result)
            self.visit(plan.items, other, result, f"{path}[{place}]", part)

    def _check(self, plan: Plan, value: Any, old: Any, path: str, kinship: _Kinship) -> None:
        text = b"" if plan.looks_back or not path else _text(value, plan.looked_at)
        if text and text in plan.good:
            return
        scope = _scope(plan, value, old, is_object=plan.is_resource and not path)
        holds_alone = plan.together is not None and self._holds(plan.together, scope)
        if holds_alone and text and len(text) <= _GOOD_BYTES_MAX:
            _remember(plan, text)
        for rule in plan.rules:
            if holds_alone and not rule.uses_old and rule.program is not None:
                continue
            if rule.uses_old and old is None and not rule.rule.optional_old_self:
                continue
            if rule.program is None:
                if rule.fault:
                    detail = f"rule compile error: compilation failed: {rule.fault}"
                    self._faults.append(invalid(path, plan.node.type, detail))
                continue
            try:
                holds = rule.program.evaluate(scope, self._budget) is True
            except EvaluationError as problem:
                self._report(rule, plan, path, problem)
                continue
            if not holds and (rule.uses_old or not kinship.is_unchanged()):
                detail = _message(rule, scope, self._budget)
                self._faults.append(_fault(rule, plan, value, path, detail))

    def _holds(self, program: Program, scope: Scope) -> bool:
        """Whether it is true; otherwise rules are evaluated one by one to report their faults."""
        try:
            return program.evaluate(scope, self._budget) is True
        except EvaluationError:
            return False

    def _report(self, rule: ReadyRule, plan: Plan, path: str, fault: EvaluationError) -> None:
        """Reports a rule that could not be evaluated; if its cost is the reason, the walk ends."""
        name = rule.rule.message.strip() or rule.rule.rule.strip()
        problem = str(fault)
        if problem.startswith("no such overload"):
            detail = (
                f"'{problem}': call arguments did not match a supported operator, function "
                f"or macro signature for rule: {name}"
            )
        elif isinstance(fault, CostExceeded):
            detail = (
                f"'{problem}': no further validation rules will be run due to call cost "
                f"exceeds limit for rule: {name}"
            )
        else:
            detail = f"{problem} evaluating rule: {name}"
        self._faults.append(invalid(path, plan.node.type, detail))
        if isinstance(fault, CostExceeded):
            raise _Stop


def _text(value: Any, fields: tuple[str, ...] | None) -> bytes:
    """The fields of a value that rules read, as text."""
    if fields is None or not isinstance(value, dict):
        return _encode(value)
    return _encode({name: value[name] for name in fields if name in value})


def _remember(plan: Plan, text: bytes) -> None:
    if len(plan.good) >= _GOOD_MAX:
        plan.good.clear()
    plan.good[text] = None


def _scope(plan: Plan, value: Any, old: Any, *, is_object: bool) -> Scope:
    """The variables of a node's rules, bound once for all of them."""
    if is_object:
        value, old = _visible(value), _visible(old)
    if plan.convert is not None:
        value = plan.convert(value)
        old = plan.convert(old) if old is not None else None
    return Scope(VARIABLES, {"self": value, "oldSelf": old})


def _visible(value: Any) -> Any:
    """A whole object as rules see it: of the metadata only the names."""
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return value
    metadata = value["metadata"]
    names = {name: metadata[name] for name in _VISIBLE_METADATA if name in metadata}
    return {**value, "metadata": names}


def _fault(rule: ReadyRule, plan: Plan, value: Any, path: str, detail: str) -> FieldError:
    if rule.field_path:
        path = f"{path}.{rule.field_path}" if path else rule.field_path
    has_value = plan.node.type not in ("object", "array")
    match rule.rule.reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required_field(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value) if has_value else FieldError(path, rule.rule.reason, "")
        case _ if has_value:
            return invalid(path, value, detail)
        case _:
            # Kubernetes never shows whole objects and lists in faults.
            return FieldError(path, "FieldValueInvalid", detail)


def _message(rule: ReadyRule, scope: Scope, budget: Budget) -> str:
    if rule.message is not None:
        try:
            text = rule.message.evaluate(scope, budget)
        except EvaluationError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _MESSAGE_LENGTH_MOST:
            return text
    return rule.rule.message.strip() or f"failed rule: {rule.rule.rule.strip()}"


def _identity(item: Any, keys: tuple[str, ...]) -> bytes | None:
    """The identity of an item of a list of type map; None if it lacks a key."""
    if not isinstance(item, dict) or not all(key in item for key in keys):
        return None
    result = [item[key] for key in keys]
    return None if any(isinstance(entry, (dict, list)) for entry in result) else _encode(result)


def _by_key(items: list[Any], keys: tuple[str, ...]) -> dict[bytes | None, Any]:
    result: dict[bytes | None, Any] = {}
    for item in items:
        identity = _identity(item, keys)
        if identity is not None:
            result.setdefault(identity, item)
    return result
