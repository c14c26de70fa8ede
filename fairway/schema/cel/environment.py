"""CEL expressions: compiled once, evaluated often.

    program = compile("cluster.labels['zone'] == zone", {"cluster": "dyn", "zone": "string"})
    program.evaluate({"cluster": {...}, "zone": "a"})

The language is that of Kubernetes 1.36: CEL with optionals, strings, sets, lists, bindings and
two-variable macros from the runtime, and Kubernetes' own libraries from the `library_` modules.

Cost is bounded: an expression has at most 32 KiB and nests at most 32 deep, and the runtime stops
an evaluation after 10,000 macro iterations, all loops together. The last two limits are fixed in
the runtime. Time and memory are bounded before the runtime starts (`cost`): an evaluation that may
cost more than its budget is not begun. (Kubernetes counts what is spent instead, so a rule with
nested loops over hundreds of items can pass there and be stopped here.)
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from cel_expr_python import cel

from fairway.schema.cel import (
    library_formats,
    library_lists,
    library_network,
    library_times,
    library_versions,
)
from fairway.schema.cel.cost import EVALUATION_UNITS, cost_of
from fairway.schema.cel.declared import TYPES, Kind, extension
from fairway.schema.cel.sizes import Sample, Scale, Whole
from fairway.schema.cel.syntax import Syntax, read_syntax

EXPRESSION_LENGTH_MOST = 32 * 1024
_COMPILED_BYTES_MAX = 256 * 1024
_SHORT = 1024  # characters; of longer expressions fewer are cached
_LENGTH_LEAST = 256
_LENGTH_UNKNOWN = 1 << 40
_EVALUATIONS_MANY = 20  # of a budget; a smaller part of it may be a rough estimate
_encode = msgspec.json.Encoder().encode

_RUNTIME_EXTENSIONS = (
    "optional", "strings", "math", "bindings", "sets", "lists", "two-var-comprehensions",
)  # fmt: skip
_count = ctypes.pythonapi.Py_IncRef
_count.argtypes, _count.restype = [ctypes.py_object], None
_STATUS = re.compile(r" \[[A-Z_]+\]$")
_POSITION = re.compile(r"^ERROR: <input>:(\d+:\d+: .*)$", re.MULTILINE)
# A string literal, a call that returns an optional, or a parenthesis.
_TOKEN = re.compile(
    r"""(?P<string>[rR]?(?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"))"""
    r"""|(?P<comment>//[^\n]*)|(?P<call>\.validate\(|\bformat\.named\()|(?P<open>\()|(?P<close>\))"""
)
COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"
# Error wordings of the runtime, and those of Kubernetes.
_ERRORS = (
    (re.compile(r'Key not found in map : "?(.*?)"?$', re.DOTALL), r"no such key: \1"),
    (re.compile(r"No matching overloads found.*", re.DOTALL), "no such overload"),
    (re.compile(r"Applying SELECT to non-message type"), "no such overload"),
    (
        re.compile(r"^cannot convert (string|double|int|uint) to (\w+)$"),
        r"type conversion error from '\1' to '\2'",
    ),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"Index out of bounds.*"), "index out of bounds"),
    (re.compile(r"Iteration budget exceeded"), COST_EXCEEDED),
)


class CompileError(ValueError):
    """An expression that is not valid CEL. `detail` has several lines and points at the place."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class EvaluationError(ValueError):
    """An expression could not be evaluated with these bindings."""


class CostExceeded(EvaluationError):
    """An evaluation would cost more than it may; it was not begun, or it was stopped."""

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


@dataclass(slots=True)
class Budget:
    """What several evaluations may cost together, in units of `cost`."""

    units: float
    spent: float = 0.0


class Scope:
    """Values bound once for all programs over the same variables."""

    __slots__ = ("activation", "bindings", "length")

    def __init__(self, variables: Mapping[str, Kind], bindings: Mapping[str, Any]) -> None:
        self.activation = _environment(_key(variables)).Activation(bindings)
        self.bindings = bindings
        self.length = _length(bindings)


class Program:
    """A compiled expression; `result` is its checked type, `DYN` if unknown."""

    __slots__ = ("_bounds", "_environment", "_expression", "_names", "result", "source", "syntax")

    def __init__(
        self, source: str, names: tuple[str, ...], environment: Any, expression: Any
    ) -> None:
        self.source = source
        self.syntax = _read(expression)
        self._names = names
        self.result: str = expression.return_type().name()
        least = dict.fromkeys(names, Whole(1, number=1))
        if cost_of(self.syntax.expression, least, Scale(), EVALUATION_UNITS) > EVALUATION_UNITS:
            message = "the expression costs too much with any values"
            raise CompileError(message, message)
        self._environment = environment
        self._expression = expression
        self._bounds: dict[int, float] = {}  # of the cost, by the length of the bindings

    def evaluate(self, bindings: Mapping[str, Any] | Scope, budget: Budget | None = None) -> Any:
        """The value of the expression, as plain Python; CostExceeded if it may cost too much."""
        length = bindings.length if isinstance(bindings, Scope) else _length(bindings)
        values = bindings.bindings if isinstance(bindings, Scope) else bindings
        self._spend(values, length, budget)
        try:
            if isinstance(bindings, Scope):
                answer = self._expression.eval(bindings.activation)
            else:
                answer = self._expression.eval(self._environment.Activation(bindings))
            plain = answer.plain_value()
        except RuntimeError as problem:
            raise _error(str(problem)) from None
        except TypeError:
            raise EvaluationError("the result cannot be shown as a plain value") from None
        if plain is True or plain is False:
            return plain
        if answer.type() == cel.Type.ERROR:
            raise _error(str(plain))
        _keep_nulls(plain)
        return plain

    def cost(self, bindings: Mapping[str, Any], limit: float) -> float:
        """The most that an evaluation costs with these values; past the limit, more than that."""
        scale = Scale()
        inputs = {name: Sample((value,), scale) for name, value in bindings.items()}
        return cost_of(self.syntax.expression, inputs, scale, limit)

    def _bound(self, length: int) -> float:
        """The most that an evaluation costs with values of this length as JSON."""
        length = max(_LENGTH_LEAST, 1 << (length - 1).bit_length())
        known = self._bounds.get(length)
        if known is None:
            inputs = dict.fromkeys(self._names, Whole(length))
            known = cost_of(self.syntax.expression, inputs, Scale(), EVALUATION_UNITS)
            self._bounds[length] = known
        return known

    def _spend(self, bindings: Mapping[str, Any], length: int, budget: Budget | None) -> None:
        """Takes the cost of an evaluation from the budget.

        A bound by the length alone is known at once, but large if there are loops. If it is more
        than a small part of the budget, the values themselves are measured.
        """
        limit = float(EVALUATION_UNITS)
        enough = limit
        if budget is not None:
            limit = min(limit, budget.units - budget.spent)
            enough = min(limit, budget.units / _EVALUATIONS_MANY)
        units = self._bound(length)
        if units > enough:
            units = self.cost(bindings, limit)
        if units > limit:
            raise CostExceeded
        if budget is not None:
            budget.spent += units


def _keep_nulls(value: Any) -> None:
    """Restores the reference to None that the runtime loses for each null in a result.

    It returns None without counting the reference, so enough nulls would crash the process. This
    matters up to Python 3.11; from 3.12 on None is immortal, and this changes nothing.
    """
    if value is None:
        _count(None)
    elif isinstance(value, dict):
        for item in value.values():
            _keep_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _keep_nulls(item)


def compile(expression: str, variables: Mapping[str, Kind]) -> Program:
    """Compiles an expression over variables of these kinds; CompileError if it is invalid."""
    cached = _short_program if len(expression) <= _SHORT else _long_program
    return cached(expression, _key(variables))


def _length(bindings: Mapping[str, Any]) -> int:
    """At least the weight of all values, and at least the length of each text."""
    try:
        return len(_encode(bindings))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _LENGTH_UNKNOWN


def _key(variables: Mapping[str, Kind]) -> tuple[tuple[str, Kind], ...]:
    return tuple(sorted(variables.items()))


def _program(expression: str, variables: tuple[tuple[str, Kind], ...]) -> Program:
    if len(expression) > EXPRESSION_LENGTH_MOST:
        message = f"the expression has more than {EXPRESSION_LENGTH_MOST} characters"
        raise CompileError(message, message)
    environment = _environment(variables)
    try:
        compiled = environment.compile(_with_optional_answers(expression))
    except RuntimeError as problem:
        detail = _STATUS.sub("", str(problem)).partition(": ")[2]
        places = _POSITION.findall(detail)
        raise CompileError("; ".join(places) or " ".join(detail.split()), detail) from None
    return Program(expression, tuple(name for name, _ in variables), environment, compiled)


def _read(compiled: Any) -> Syntax:
    serialized = bytes(compiled.serialize())
    if len(serialized) > _COMPILED_BYTES_MAX:
        message = "the expression has too many parts"
        raise CompileError(message, message)
    return read_syntax(serialized)


_short_program = lru_cache(maxsize=4096)(_program)
_long_program = lru_cache(maxsize=128)(_program)


@lru_cache(maxsize=64)
def _environment(variables: tuple[tuple[str, Kind], ...]) -> Any:
    lines = "".join(f"  - name: {name}\n" for name in _RUNTIME_EXTENSIONS)
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(f"name: fairway\nextensions:\n{lines}"),
        variables={name: TYPES[kind] for name, kind in variables},
        extensions=[_kubernetes_libraries()],
    )


@lru_cache(maxsize=1)
def _kubernetes_libraries() -> Any:
    return extension(
        "kubernetes",
        (
            *library_lists.FUNCTIONS,
            *library_versions.FUNCTIONS,
            *library_network.FUNCTIONS,
            *library_formats.FUNCTIONS,
            *library_times.FUNCTIONS,
        ),
    )


def _with_optional_answers(expression: str) -> str:
    """The expression with `[?'…']` after each call that returns an optional."""
    answers = library_formats.OPTIONAL_ANSWERS
    if not any(call in expression for call in answers):
        return expression
    pieces: list[str] = []
    entries: list[str] = []
    end = 0
    for match in _TOKEN.finditer(expression):
        pieces.append(expression[end : match.end()])
        end = match.end()
        if match["call"] or match["open"]:
            entries.append(answers.get(match["call"] or "", ""))
        elif match["close"] and entries:
            entry = entries.pop()
            pieces.append(f"[?'{entry}']" if entry else "")
    return "".join(pieces) + expression[end:]


def _error(message: str) -> EvaluationError:
    worded = _word(message)
    return CostExceeded() if worded == COST_EXCEEDED else EvaluationError(worded)


def _word(message: str) -> str:
    """An error of the runtime in Kubernetes' wording."""
    message = _STATUS.sub("", message)
    code, colon, rest = message.partition(": ")
    if colon and code.replace("_", "").isupper():
        message = rest
    for pattern, replacement in _ERRORS:
        if pattern.search(message):
            return pattern.sub(replacement, message, count=1)
    return message
