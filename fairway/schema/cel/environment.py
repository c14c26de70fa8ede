"""CEL expressions: compiled once, evaluated often.

    program = compile("cluster.labels['zone'] == zone", {"cluster": "dyn", "zone": "string"})
    program.evaluate({"cluster": {...}, "zone": "a"})

The language is that of Kubernetes 1.36: CEL with optionals, strings, sets, lists, bindings and
two-variable macros from the runtime, and Kubernetes' own libraries from the `library_` modules.

Cost is bounded: an expression has at most 32 KiB and nests at most 32 deep, and the runtime stops
an evaluation after 10,000 macro iterations, all loops together. The last two limits are fixed in
the runtime. (Kubernetes counts cost units instead, so a rule with nested loops over hundreds of
items can pass there and be stopped here.)
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from fairway.schema.cel import (
    library_formats,
    library_lists,
    library_network,
    library_times,
    library_versions,
)
from fairway.schema.cel.declared import TYPES, Kind, extension

EXPRESSION_LENGTH_MOST = 32 * 1024

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
    (re.compile(r"Iteration budget exceeded"), "operation cancelled: actual cost limit exceeded"),
)


class CompileError(ValueError):
    """An expression that is not valid CEL. `detail` has several lines and points at the place."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


class EvaluationError(ValueError):
    """An expression could not be evaluated with these bindings."""


class Scope:
    """Values bound once for all programs over the same variables."""

    __slots__ = ("activation",)

    def __init__(self, variables: Mapping[str, Kind], bindings: Mapping[str, Any]) -> None:
        self.activation = _environment(_key(variables)).Activation(bindings)


class Program:
    """A compiled expression; `result` is its checked type, `DYN` if unknown."""

    __slots__ = ("_environment", "_expression", "result", "source")

    def __init__(self, source: str, environment: Any, expression: Any) -> None:
        self.source = source
        self.result: str = expression.return_type().name()
        self._environment = environment
        self._expression = expression

    def serialize(self) -> bytes:
        """The checked expression in its wire form, for analysis."""
        return bytes(self._expression.serialize())

    def evaluate(self, bindings: Mapping[str, Any] | Scope) -> Any:
        """The value of the expression, as plain Python."""
        try:
            if isinstance(bindings, Scope):
                answer = self._expression.eval(bindings.activation)
            else:
                answer = self._expression.eval(self._environment.Activation(bindings))
            plain = answer.plain_value()
        except RuntimeError as problem:
            raise EvaluationError(_word(str(problem))) from None
        except TypeError:
            raise EvaluationError("the result cannot be shown as a plain value") from None
        if plain is True or plain is False:
            return plain
        if answer.type() == cel.Type.ERROR:
            raise EvaluationError(_word(str(plain)))
        _keep_nulls(plain)
        return plain


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
    return _program(expression, _key(variables))


def _key(variables: Mapping[str, Kind]) -> tuple[tuple[str, Kind], ...]:
    return tuple(sorted(variables.items()))


@lru_cache(maxsize=4096)
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
    return Program(expression, environment, compiled)


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


@lru_cache(maxsize=1_024)
def fault_of(text: str, variables: tuple[str, ...]) -> str:
    """What is wrong with an expression, with its line and column; empty if nothing is."""
    try:
        compile(text, dict.fromkeys(variables, "dyn"))
    except CompileError as fault:
        return str(fault)
    return ""
