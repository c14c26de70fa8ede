"""How usage fades: memory with a half-life, in whole numbers.

After t seconds a share a = 0.5 ** (t / half-life) is left of what was remembered, and the rest is
replaced by what is in use now (Kueue's alpha is 1 - a). Floats differ between machines in their
last place, and a plan must not: powers of one half are made of whole numbers here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Final

_BITS: Final = 64
_FRACTION_BITS: Final = 48


def _roots_of_half() -> tuple[int, ...]:
    """2**-(1/2), 2**-(1/4), ... in units of 2**-64, rounded down: each the root of the last."""
    found = [1 << (_BITS - 1)]
    for _ in range(_FRACTION_BITS):
        found.append(isqrt(found[-1] << _BITS))
    return tuple(found[1:])


_ROOTS: Final = _roots_of_half()


def half_to_the(seconds: float, half_life: float) -> int:
    """0.5 ** (seconds / half_life) in units of 2**-64, in whole numbers: the same on any machine.

    Times count to the microsecond. The exponent has 48 bits behind the point and each factor is
    rounded down, so the result is off by less than 2**-47 of itself plus 2**-58.
    """
    whole, rest = divmod(max(0, round(seconds * 1e6)), round(half_life * 1e6))
    factor = 1 << _BITS
    places = (rest << _FRACTION_BITS) // round(half_life * 1e6)
    for position, root in enumerate(_ROOTS):
        if places >> (_FRACTION_BITS - 1 - position) & 1:
            factor = factor * root >> _BITS
    return factor >> min(whole, _BITS + 1)


def decayed(
    remembered: Mapping[str, int], current: Mapping[str, int], seconds: float, half_life: float
) -> dict[str, int]:
    """Faded usage after `current` was in use for some seconds: a * remembered + (1 - a) * current.

    Here a = 0.5 ** (seconds / half_life); half-life 0 forgets at once. It is rounded towards
    `current`, so that small amounts fade away too, and steady usage is reached exactly. No zeros.
    """
    keeps = half_to_the(seconds, half_life) if half_life >= 1e-6 else 0
    found: dict[str, int] = {}
    for resource in sorted(set(remembered) | set(current)):
        now = current.get(resource, 0)
        beyond = remembered.get(resource, 0) - now
        fades = abs(beyond) * keeps >> _BITS
        amount = now + (fades if beyond > 0 else -fades)
        if amount:
            found[resource] = amount
    return found
