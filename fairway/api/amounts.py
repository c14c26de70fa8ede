"""Exact amounts of resources.

A `Quantity` is read from every form that Kubernetes accepts (`500m`, `80Gi`, `1e3`, `1.5`) and kept
as a whole number of nano-units, so no arithmetic ever rounds. It remembers the family of its suffix
and prints as Kubernetes prints it: no fraction, and the largest suffix that keeps the value exact.
Anything finer than a nano-unit is rounded away from zero, so a request is never rounded to nothing.

`Amounts` maps resource names to such numbers; a missing name means zero, here and nowhere else.

Two deliberate differences from Kubernetes: text without a digit (`Ki`, `.`) is refused rather than
read as zero, and exponents beyond 64 are refused rather than turned into giant numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal, Self

Family = Literal["decimal", "binary", "exponent"]

NANO = 1_000_000_000
MILLI = NANO // 1000  # nanos in a thousandth
# The text of a quantity that is not negative, for schemas.
PATTERN = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"

_FORM = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?[0-9]+))",
    re.ASCII,
)
_DECIMAL_EXPONENTS = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT_MOST = 64
_TEXT_LENGTH_MOST = 128
# Kubernetes caps amounts with a binary suffix, and only those.
_BINARY_MOST = (2**63 - 1) * NANO


class QuantityError(ValueError):
    """Text that is not a quantity."""


class Quantity:
    """An exact amount. Equality, order and hash go by value; the suffix family is for printing."""

    # Not a dataclass: msgspec would then expect a JSON object on the wire.
    __slots__ = ("family", "nanos")

    def __init__(self, nanos: int, family: Family = "decimal") -> None:
        self.nanos: Final = nanos
        self.family: Final[Family] = family

    @classmethod
    def of(cls, value: str | int | float | Quantity) -> Quantity:
        """A quantity from its text, or from a JSON number."""
        match value:
            case Quantity():
                return value
            case str():
                return _parse(value)
            case bool():
                raise QuantityError("a quantity is a number or a text such as 500m or 80Gi")
            case int():
                return cls(value * NANO)
            case float():
                # The shortest decimal text of a float is the text in the JSON.
                return _parse(repr(value))
            case _:
                raise QuantityError("a quantity is a number or a text such as 500m or 80Gi")

    def __str__(self) -> str:
        return _canonical(self.nanos, self.family)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def plus(self, other: Quantity) -> Quantity:
        """The sum; it prints in this quantity's family."""
        return Quantity(self.nanos + other.nanos, self.family)

    def minus(self, other: Quantity) -> Quantity:
        """The difference; it prints in this quantity's family."""
        return Quantity(self.nanos - other.nanos, self.family)

    def times(self, count: int) -> Quantity:
        """This amount, count times."""
        return Quantity(self.nanos * count, self.family)

    def units(self) -> int:
        """Whole units, rounded away from zero."""
        return _divide_away(self.nanos, NANO)

    def millis(self) -> int:
        """Thousandths, rounded away from zero; the customary unit of cpu."""
        return _divide_away(self.nanos, MILLI)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _FORM.fullmatch(text) if len(text) <= _TEXT_LENGTH_MOST else None
    if match is None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise QuantityError(f"{shown!r} is not a quantity such as 500m, 80Gi, 1e3 or 1.5")
    sign, whole, fraction, bare_fraction, suffix, exponent_text = match.groups()
    decimals = fraction or bare_fraction or ""
    mantissa = int((whole or "") + decimals)
    scale, family, multiplier = _interpret(text, suffix, exponent_text)
    # The value is mantissa * multiplier * 10**power nano-units.
    power = scale - len(decimals) + 9
    if power >= 0:
        nanos = mantissa * multiplier * 10**power
    else:
        nanos = _divide_away(mantissa * multiplier, 10**-power)
    if family == "binary":
        nanos = min(nanos, _BINARY_MOST)
    return Quantity(-nanos if sign == "-" else nanos, family)


def _interpret(text: str, suffix: str | None, exponent_text: str | None) -> tuple[int, Family, int]:
    """The decimal exponent, the family and the binary multiplier of a suffix."""
    if exponent_text is not None:
        exponent = int(exponent_text)
        if abs(exponent) > _EXPONENT_MOST:
            raise QuantityError(f"the exponent of {text!r} is beyond {_EXPONENT_MOST}")
        return exponent, "exponent", 1
    if suffix and suffix.endswith("i"):
        return 0, "binary", 1024 ** _BINARY_SUFFIXES.index(suffix)
    return _DECIMAL_EXPONENTS[suffix or ""], "decimal", 1


@lru_cache(maxsize=4096)
def _canonical(nanos: int, family: Family) -> str:
    if nanos == 0:
        return "0"
    if family == "binary" and nanos % NANO == 0 and abs(nanos) >= 1024 * NANO:
        number, step = nanos // NANO, 0
        while number % 1024 == 0 and step < len(_BINARY_SUFFIXES) - 1:
            number, step = number // 1024, step + 1
        return f"{number}{_BINARY_SUFFIXES[step]}"
    exponent = -9
    # Decimal suffixes end at exa; exponents do not.
    while nanos % 1000 == 0 and (family == "exponent" or exponent < 18):
        nanos, exponent = nanos // 1000, exponent + 3
    if family == "exponent":
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"


def _divide_away(number: int, divisor: int) -> int:
    """Division rounded away from zero."""
    return -(-number // divisor) if number >= 0 else number // divisor


_BINARY_RESOURCES = ("memory", "ephemeral-storage", "storage")


def family_of(resource: str) -> Family:
    """The suffix family in which amounts of a resource are usually printed."""
    is_binary = resource in _BINARY_RESOURCES or resource.startswith("hugepages-")
    return "binary" if is_binary else "decimal"


# Names that vendors give their devices, or parts of one; the page has the same list.
# Kubernetes' name for devices of a class, as a resource. They are what a node must have; what they
# count as is another resource.
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
_DEVICE = re.compile(
    r"/(gpu|vgpu|tpu|npu|ppu|dcu|mlu|xpu|accelerator|neuroncore|gaudi|i915|xe"
    r"|Ascend[0-9]+[A-Z]?|mig-[0-9]+g\.[0-9]+gb(\.[a-z]+)*)$"
)


@lru_cache(maxsize=1024)
def is_accelerator(resource: str) -> bool:
    """Whether a resource counts as a GPU wherever GPUs are counted, compared or shown.

    A name with a slash is not enough: networks, device memory and licences have one too.
    """
    return _DEVICE.search(resource) is not None and not resource.startswith(DEVICE_CLASS_PREFIX)


class Amounts(Mapping[str, int]):
    """Amount of each resource, in nano-units; immutable, and missing means zero.

    As a mapping it has only the names whose amount is not zero, in alphabetical order, so that
    equal amounts compare, hash and print alike.
    """

    __slots__ = ("_hash", "_nanos")

    def __init__(self, nanos: Mapping[str, int] | None = None) -> None:
        given = nanos or {}
        self._nanos = {name: given[name] for name in sorted(given) if given[name]}
        self._hash: int | None = None

    @classmethod
    def of(cls, quantities: Mapping[str, Quantity | str | int | float]) -> Self:
        """Amounts from quantities by resource name, as in requests and quotas."""
        return cls({name: Quantity.of(value).nanos for name, value in quantities.items()})

    def __getitem__(self, resource: str) -> int:
        return self._nanos.get(resource, 0)

    def __contains__(self, resource: object) -> bool:
        return resource in self._nanos

    def __iter__(self) -> Iterator[str]:
        return iter(self._nanos)

    def __len__(self) -> int:
        return len(self._nanos)

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Amounts) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._nanos.items()))
        return self._hash

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={self.quantity(name)}" for name in self)
        return f"Amounts({listed})"

    def plus(self, other: Amounts) -> Amounts:
        """The sum, resource by resource."""
        names = self._nanos.keys() | other._nanos.keys()
        return Amounts({name: self[name] + other[name] for name in names})

    def minus(self, other: Amounts) -> Amounts:
        """The difference, resource by resource; it may be negative."""
        names = self._nanos.keys() | other._nanos.keys()
        return Amounts({name: self[name] - other[name] for name in names})

    def times(self, count: int) -> Amounts:
        """These amounts, count times."""
        return Amounts({name: nanos * count for name, nanos in self._nanos.items()})

    def fits_in(self, room: Amounts) -> bool:
        """Whether no resource here exceeds its amount in `room`."""
        return all(nanos <= room[name] for name, nanos in self._nanos.items() if nanos > 0)

    def beyond(self, room: Amounts) -> Amounts:
        """The part of each resource that does not fit in `room`."""
        return Amounts({name: max(0, nanos - room[name]) for name, nanos in self._nanos.items()})

    def quantity(self, resource: str) -> Quantity:
        """The amount of one resource, in its usual suffix family."""
        return Quantity(self[resource], family_of(resource))

    def quantities(self) -> dict[str, Quantity]:
        """All amounts in their wire form."""
        return {name: self.quantity(name) for name in self}


NOTHING = Amounts()
