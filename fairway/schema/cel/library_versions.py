"""Quantities and semantic versions: what `isLessThan` and similar methods compare.

Both Kubernetes libraries use the same method names, and the runtime selects overloads by plain
types only, so one implementation serves both and checks the type of its argument.
"""

from __future__ import annotations

import re
from typing import Any

from fairway.api.amounts import NANO, Quantity, QuantityError
from fairway.schema.cel.declared import Declared, Opaque, function, method, open_value

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
    r"(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_TEXT_LENGTH_MOST = 256


def _quantity_of(nanos: int) -> Opaque:
    return {"quantity": str(nanos)}


def _nanos(value: Opaque) -> int:
    return int(open_value(value, "quantity"))


def quantity_value(text: str) -> Opaque:
    """A quantity, as expressions see it."""
    return _quantity_of(Quantity.of(text).nanos)


def _is_quantity(text: str) -> bool:
    try:
        Quantity.of(text)
    except QuantityError:
        return False
    return True


def _is_integer(value: Opaque) -> bool:
    whole, rest = divmod(_nanos(value), NANO)
    return not rest and -(2**63) <= whole < 2**63


def _as_integer(value: Opaque) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // NANO


def _as_float(value: Opaque) -> float:
    nanos = _nanos(value)
    try:
        return nanos / NANO
    except OverflowError:
        return float("inf") if nanos > 0 else float("-inf")


def _operand(value: Any) -> int:
    if isinstance(value, dict):
        return _nanos(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * NANO
    raise ValueError("no such overload")


def version_value(text: str, normalize: bool = False) -> Opaque:
    """A semantic version, as expressions see it."""
    wanted = _normalize(text) if normalize else text
    if len(wanted) > _TEXT_LENGTH_MOST or not _SEMVER.fullmatch(wanted):
        raise ValueError(f"{text[:40]!r} is not a semantic version such as 1.2.3")
    # Build metadata affects neither precedence nor equality.
    return {"semver": wanted.partition("+")[0]}


def _normalize(text: str) -> str:
    numbers, mark, rest = text.removeprefix("v"), "", ""
    match = re.search(r"[-+]", numbers)
    if match:
        mark, rest = match.group(), numbers[match.end() :]
        numbers = numbers[: match.start()]
    parts = [part.lstrip("0") or "0" if part else "" for part in numbers.split(".")]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + mark + rest


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        version_value(text, normalize)
    except ValueError:
        return False
    return True


def _numbers(value: Opaque) -> list[int]:
    core = str(open_value(value, "semver")).partition("-")[0]
    return [int(part) for part in core.split(".")]


def _precedence(text: str) -> tuple[Any, ...]:
    """A sort key for versions, as semver.org defines it."""
    core, dash, before = text.partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    if not dash:
        return (*numbers, 1)
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in before.split(".")
    )
    return (*numbers, 0, parts)


def _compare(left: Opaque, right: Opaque) -> int:
    if "semver" in left:
        first: Any = _precedence(open_value(left, "semver"))
        second: Any = _precedence(open_value(right, "semver"))
    else:
        first, second = _nanos(left), _nanos(right)
    return int(first > second) - int(first < second)


FUNCTIONS: tuple[Declared, ...] = (
    function("quantity", ("string",), "map", quantity_value),
    function("isQuantity", ("string",), "bool", _is_quantity),
    method("isInteger", ("map",), "bool", _is_integer),
    method("asInteger", ("map",), "int", _as_integer),
    method("asApproximateFloat", ("map",), "double", _as_float),
    method("sign", ("map",), "int", lambda item: (_nanos(item) > 0) - (_nanos(item) < 0)),
    method("add", ("map", "dyn"), "map", lambda a, b: _quantity_of(_nanos(a) + _operand(b))),
    method("sub", ("map", "dyn"), "map", lambda a, b: _quantity_of(_nanos(a) - _operand(b))),
    function("semver", ("string",), "map", version_value),
    function("semver", ("string", "bool"), "map", version_value),
    function("isSemver", ("string",), "bool", _is_semver),
    function("isSemver", ("string", "bool"), "bool", _is_semver),
    method("major", ("map",), "int", lambda item: _numbers(item)[0]),
    method("minor", ("map",), "int", lambda item: _numbers(item)[1]),
    method("patch", ("map",), "int", lambda item: _numbers(item)[2]),
    method("isLessThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) < 0),
    method("isGreaterThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) > 0),
    method("compareTo", ("map", "map"), "int", _compare),
)
