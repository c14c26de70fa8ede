"""Expressions: results, errors and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.schema.cel.declared import Kind
from fairway.schema.cel.environment import (
    EXPRESSION_LENGTH_MOST,
    CompileError,
    EvaluationError,
    Scope,
    compile,
)

CLUSTER = {"labels": {"zone": "a"}, "nodes": 3}


def test_an_expression_selects_by_label() -> None:
    variables: dict[str, Kind] = {"cluster": "dyn", "wanted": "string"}
    program = compile("cluster.labels['zone'] == wanted && cluster.nodes >= 3", variables)
    assert program.result == "BOOL"
    assert program.evaluate({"cluster": CLUSTER, "wanted": "a"}) is True
    assert program.evaluate({"cluster": CLUSTER, "wanted": "b"}) is False


def test_a_scope_is_bound_once_for_several_programs() -> None:
    variables: dict[str, Kind] = {"cluster": "dyn"}
    scope = Scope(variables, {"cluster": CLUSTER})
    assert compile("cluster.nodes + 1", variables).evaluate(scope) == 4
    assert compile("cluster.labels", variables).evaluate(scope) == {"zone": "a"}


def test_the_same_expression_is_compiled_once() -> None:
    first = compile("x > 1", {"x": "int", "y": "dyn"})
    assert compile("x > 1", {"y": "dyn", "x": "int"}) is first
    assert compile("x > 1", {"x": "dyn"}) is not first


NOT_COMPILING: dict[str, tuple[str, str]] = {
    "bad syntax": ("x.(", "1:3: Syntax error: no viable alternative at input '.('"),
    "an unknown name": ("y", "1:1: undeclared reference to 'y' (in container '')"),
    "two faults on one line of text": (
        "y\n|| z",
        (
            "1:1: undeclared reference to 'y' (in container ''); "
            "2:4: undeclared reference to 'z' (in container '')"
        ),
    ),
    "operands that do not fit": (
        "'a' + 1",
        "1:5: found no matching overload for '_+_' applied to '(string, int)'",
    ),
    "too long": (
        "'" + "a" * EXPRESSION_LENGTH_MOST + "'",
        f"the expression has more than {EXPRESSION_LENGTH_MOST} characters",
    ),
}


@pytest.mark.parametrize(("expression", "message"), NOT_COMPILING.values(), ids=NOT_COMPILING)
def test_not_compiling(expression: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile(expression, {"x": "dyn"})
    assert str(caught.value) == message


def test_nesting_is_bounded() -> None:
    with pytest.raises(CompileError, match="recursion"):
        compile("(" * 200 + "true" + ")" * 200, {})


NOT_EVALUATING: dict[str, tuple[str, Any, str]] = {
    "a missing key": ("x.a", {}, "no such key: a"),
    "a missing index": ("x[3]", [1], "index out of bounds: 3"),
    "a wrong operand": ("x + 1", "a", "no such overload"),
    "a selection from a scalar": ("x.a", "a", "no such overload"),
    "a division by zero": ("1 / x", 0, "division by zero"),
    "an overflow": ("x + 9223372036854775807", 1, "integer overflow"),
    "a bad number": ("int(x)", "a", "type conversion error from 'string' to 'int'"),
    "a result without a plain value": (
        "optional.of(x)",
        1,
        "the result cannot be shown as a plain value",
    ),
    "too many iterations": (
        "x.all(a, x.all(b, a + b >= 0))",
        list(range(101)),
        "operation cancelled: actual cost limit exceeded",
    ),
}


@pytest.mark.parametrize(
    ("expression", "x", "message"), NOT_EVALUATING.values(), ids=NOT_EVALUATING
)
def test_not_evaluating(expression: str, x: Any, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compile(expression, {"x": "dyn"}).evaluate({"x": x})
    assert str(caught.value) == message


def test_an_unbound_variable_is_an_error_of_evaluation() -> None:
    with pytest.raises(EvaluationError):
        compile("x > 1", {"x": "int"}).evaluate({})
