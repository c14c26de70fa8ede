"""CEL in rules, compiled when a rule is loaded: single expressions, and JSON with CEL leaves.

All compile errors are collected, each with the path of its field, so that one check of a rule
reports everything that is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairway.api.errors import FieldError
from fairway.api.meta import JsonObject
from fairway.kinds.rules.places import Path, compile_path
from fairway.schema.cel.declared import Kind
from fairway.schema.cel.environment import (
    CompileError,
    EvaluationError,
    Program,
    Scope,
    compile,
)

Bindings = Mapping[str, Any] | Scope
Template = Callable[[Bindings], Any]

# Variables that each sort of expression can use.
ROLE: Mapping[str, Kind] = {
    "object": "dyn",
    "spec": "dyn",
    "metadata": "dyn",
    "name": "string",
    "namespaceName": "string",
    "role": "dyn",
    "key": "string",
}
COUNTED: Mapping[str, Kind] = {**ROLE, "count": "int"}
POD: Mapping[str, Kind] = {
    **ROLE,
    "podSet": "string",
    "index": "int",
    "count": "int",
    "counts": "dyn",
    "total": "int",
    "rank": "int",
    "podNames": "dyn",
    "podName": "string",
}
POD_NAME: Mapping[str, Kind] = {**ROLE, "podSet": "string", "index": "int"}
STATUS: Mapping[str, Kind] = {
    "object": "dyn",
    "spec": "dyn",
    "metadata": "dyn",
    "status": "dyn",
    "conditions": "dyn",
    "holding": "dyn",
    "counts": "dyn",
    "total": "int",
    "replicas": "int",
}
TALLIES: Mapping[str, Kind] = {
    "object": "dyn",
    "spec": "dyn",
    "metadata": "dyn",
    "name": "string",
    "pods": "dyn",
    "podPhases": "dyn",
    "tally": "dyn",
    "tallies": "dyn",
    "roles": "dyn",
    "counts": "dyn",
    "total": "int",
    "replicas": "int",
}
PLAY: Mapping[str, Kind] = {
    **TALLIES,
    "outcome": "string",
    "startedAt": "dyn",
    "finishedAt": "dyn",
    "now": "string",
    "reason": "string",
    "message": "string",
}

_LEAF = "="
_WHEN = "?"
_DEPTH_MAX = 16


class RuleFault(ValueError):
    """An expression of a rule could not be evaluated for a manifest."""


class Compiler:
    """Compiles the parts of one rule, and collects their faults."""

    def __init__(self) -> None:
        self.faults: list[FieldError] = []

    def path(self, text: str, where: str, *, single: bool = False) -> Path:
        try:
            path = compile_path(text)
        except ValueError as fault:
            self._fault(where, str(fault))
            return compile_path("")
        if single and not path.is_single:
            self._fault(where, f"the path {text!r} must lead to one place")
        return path

    def expression(self, text: str, where: str, variables: Mapping[str, Kind]) -> Expression | None:
        """The compiled expression; None for an empty text."""
        if not text:
            return None
        try:
            return Expression(compile(text, variables), where)
        except CompileError as fault:
            self._fault(where, str(fault))
            return None

    def template(
        self, value: Any, where: str, variables: Mapping[str, Kind], *, depth: int = 0
    ) -> Template:
        """JSON in which strings that start with `=` are expressions.

        A map with the key `?` is left out unless the expression there is true.
        """
        if depth > _DEPTH_MAX:
            self._fault(where, f"nests more than {_DEPTH_MAX} deep")
            return lambda _: None
        if isinstance(value, str) and value.startswith(_LEAF):
            leaf = self.expression(value.removeprefix(_LEAF), where, variables)
            return leaf.value if leaf else lambda _: None
        if isinstance(value, dict) and _WHEN in value:
            rest = {key: other for key, other in value.items() if key != _WHEN}
            kept = self.template(rest, where, variables, depth=depth)
            when = self.expression(str(value[_WHEN]), f"{where}.{_WHEN}", variables)
            return lambda bindings: kept(bindings) if when and when.value(bindings) else None
        if isinstance(value, dict):
            parts = {
                key: self.template(other, f"{where}.{key}", variables, depth=depth + 1)
                for key, other in value.items()
            }
            return lambda bindings: _without_nulls_of_map(
                {key: part(bindings) for key, part in parts.items()}
            )
        if isinstance(value, list):
            items = [
                self.template(other, f"{where}[{index}]", variables, depth=depth + 1)
                for index, other in enumerate(value)
            ]
            return lambda bindings: _without_nulls_of_list([item(bindings) for item in items])
        return lambda _: value

    def _fault(self, where: str, message: str) -> None:
        self.faults.append(FieldError(where, "FieldValueInvalid", message))


class Expression:
    """A compiled expression, and the path of its field."""

    __slots__ = ("_program", "where")

    def __init__(self, program: Program, where: str) -> None:
        self._program = program
        self.where = where

    def value(self, bindings: Bindings) -> Any:
        """Its value; RuleFault if it can't be evaluated."""
        try:
            return self._program.evaluate(bindings)
        except EvaluationError as fault:
            raise RuleFault(f"{self.where}: {fault}") from fault

    def holds(self, bindings: Bindings) -> bool:
        """Whether it is true; false if it can't be evaluated."""
        return self.found(bindings) is True

    def found(self, bindings: Bindings) -> Any:
        """Its value, or None."""
        try:
            return self._program.evaluate(bindings)
        except EvaluationError:
            return None


def text_of(expression: Expression | None, bindings: Bindings) -> str:
    """The string value of an expression; empty if it has none."""
    result = expression.found(bindings) if expression else None
    return result if isinstance(result, str) else ""


def number_of(expression: Expression | None, bindings: Bindings) -> int:
    result = expression.found(bindings) if expression else None
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _without_nulls_of_map(value: JsonObject) -> JsonObject:
    return {key: other for key, other in value.items() if other is not None}


def _without_nulls_of_list(value: list[Any]) -> list[Any]:
    return [item for item in value if item is not None]
