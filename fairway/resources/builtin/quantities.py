"""Resource quantities in their canonical text, as Kubernetes stores them.

`1.5Gi` is kept as `1536Mi`, `0.5` as `500m`, `1024Mi` as `1Gi`: the largest suffix that leaves a
whole number. Values are integers in billionths; finer fractions are rounded away from zero. Text
that is not a quantity stays as it is, for validation to refuse.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from fairway.resources.builtin.parts import read
from fairway.schema.node import JsonObject

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,4}))")
_NANO = 10**9
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_LARGEST = (2**63 - 1) * _NANO
_LONGEST = 64


@lru_cache(maxsize=4096)
def parse(value: str) -> tuple[int, str] | None:
    """The value in billionths and the style of its suffix; None if it is not a quantity."""
    match = _FORM.fullmatch(value) if len(value) <= _LONGEST else None
    if match is None:
        return None
    sign, digits, binary, decimal, exponent = match.groups()
    whole, _, fraction = digits.partition(".")
    mantissa = int((whole + fraction) or "0")
    scale = -len(fraction)
    if binary:
        mantissa *= 1024 ** (_BINARY.index(binary) + 1)
    else:
        scale += int(exponent) if exponent else _DECIMAL[decimal or ""]
    scale += 9
    if scale > 40 and mantissa:
        nanos = _LARGEST
    elif scale >= 0:
        nanos = min(mantissa * 10**scale, _LARGEST)
    else:
        nanos = min(-(-mantissa // 10**-scale), _LARGEST)
    style = "binary" if binary else "exponent" if exponent else "decimal"
    return (-nanos if sign == "-" else nanos), style


@lru_cache(maxsize=4096)
def canonical_text(value: str) -> str:
    """The canonical form of a quantity; any other text unchanged."""
    parsed = parse(value)
    if parsed is None:
        return value
    nanos, style = parsed
    if style == "binary" and abs(nanos) >= 1024 * _NANO and nanos % _NANO == 0:
        amount, steps = nanos // _NANO, 0
        while amount % 1024 == 0 and steps < len(_BINARY):
            amount, steps = amount // 1024, steps + 1
        return f"{amount}{_BINARY[steps - 1] if steps else ''}"
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos, exponent = nanos // 1000, exponent + 3
    if style == "exponent":
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"


def canonical(value: Any) -> Any:
    """The canonical form of a quantity given as text or number; anything else unchanged."""
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return canonical_text(repr(value))
    return value


def normalise(parent: Any, *names: str) -> None:
    """Makes every amount of a resource list canonical, in place."""
    amounts: JsonObject = read(parent, *names)
    for name, value in amounts.items():
        amounts[name] = canonical(value)


def billionths(value: Any) -> int:
    """A quantity's exact value; zero if it is not a quantity."""
    parsed = parse(value) if isinstance(value, str) else None
    return parsed[0] if parsed else 0
