"""Quantities: every form that Kubernetes admits, exactly, and back as Kubernetes prints it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.amounts import NANO, NOTHING, Amounts, Quantity, QuantityError

FORMS = {
    "milli": ("500m", "1/2", "500m"),
    "binary": ("80Gi", 80 * 2**30, "80Gi"),
    "exponent": ("1e3", 1000, "1e3"),
    "exponent that is no multiple of three": ("1e4", 10_000, "10e3"),
    "capital exponent with a sign": ("1E-3", "1/1000", "1e-3"),
    "exa, not an exponent": ("1E", 10**18, "1E"),
    "fraction": ("1.5", "3/2", "1500m"),
    "fraction of a binary suffix": ("1.5Gi", 1536 * 2**20, "1536Mi"),
    "small binary amounts print as decimal": ("0.5Ki", 512, "512"),
    "binary amounts that are not whole print as decimal": (
        "1.0001Ki",
        "10241024/10000",
        "1024102400u",
    ),
    "no digit before the point": (".5", "1/2", "500m"),
    "no digit after the point": ("5.", 5, "5"),
    "point and suffix without a digit between": ("1.G", 10**9, "1G"),
    "negative": ("-1", -1, "-1"),
    "plus sign": ("+3k", 3000, "3k"),
    "leading zeros": ("007", 7, "7"),
    "nano": ("1n", "1/1000000000", "1n"),
    "micro": ("1500u", "3/2000", "1500u"),
    "zero with a suffix": ("0Gi", 0, "0"),
    "thousands gather": ("1000000", 10**6, "1M"),
    "thousands that do not gather": ("1500", 1500, "1500"),
    "milli that gather": ("3000m", 3, "3"),
    "below nano rounds up": ("0.1n", "1/1000000000", "1n"),
    "negative below nano rounds away from zero": ("-0.1n", "-1/1000000000", "-1n"),
    "tiny exponent rounds up": ("1e-30", "1/1000000000", "1e-9"),
    "largest binary is capped": ("8Ei", 2**63 - 1, "9223372036854775807"),
    "beyond exa keeps exa": ("5000E", 5 * 10**21, "5000E"),
    "tebi": ("1Ti", 2**40, "1Ti"),
    "a kibi of kibi is a mebi": ("1024Ki", 2**20, "1Mi"),
    "kilo": ("2k", 2000, "2k"),
    "peta": ("3P", 3 * 10**15, "3P"),
}


@pytest.mark.parametrize(("text", "value", "canonical"), FORMS.values(), ids=FORMS)
def test_text_is_read_exactly_and_printed_canonically(
    text: str, value: int | str, canonical: str
) -> None:
    quantity = Quantity.of(text)
    assert (Fraction(quantity.nanos, NANO), str(quantity)) == (Fraction(value), canonical)
    assert Quantity.of(str(quantity)) == quantity


@pytest.mark.parametrize(
    "text",
    ["", " ", "Ki", ".", "-", "1 Gi", "1ki", "1K", "0x10", "1e", "1e1.5", "1Gii", "1,5", "\u0661",
     "NaN", "1e65", "1e-99999999999", "9" * 200, "--1", "1mm"],
)  # fmt: skip
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.of(text)


@pytest.mark.parametrize(
    ("number", "text"), [(3, "3"), (1.5, "1500m"), (0, "0"), (0.1, "100m"), (1e21, "1e21")]
)
def test_json_numbers_are_quantities(number: float, text: str) -> None:
    assert str(Quantity.of(number)) == text


def test_a_boolean_is_no_quantity() -> None:
    with pytest.raises(QuantityError):
        Quantity.of(True)


def test_equality_order_and_hash_go_by_value() -> None:
    one, same, more = Quantity.of("1Ki"), Quantity.of("1024"), Quantity.of("1025")
    assert one == same
    assert hash(one) == hash(same)
    assert one < more
    assert more >= one
    assert one != 1024


_SUFFIXES = {"": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
             "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
             "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "e3": 1000,
             "e-2": Fraction(1, 100), "E+1": 10}  # fmt: skip


@given(
    whole=st.integers(0, 10**6),
    decimals=st.text("0123456789", max_size=6),
    suffix=st.sampled_from(sorted(_SUFFIXES)),
    sign=st.sampled_from(["", "-", "+"]),
)
def test_any_text_has_the_value_that_arithmetic_gives_it(
    whole: int, decimals: str, suffix: str, sign: str
) -> None:
    text = f"{sign}{whole}.{decimals}{suffix}"
    exact = Fraction(f"{sign}{whole}.{decimals or 0}") * Fraction(_SUFFIXES[suffix])
    scaled = exact * NANO
    rounded = -(-abs(scaled).numerator // abs(scaled).denominator) * (-1 if exact < 0 else 1)
    quantity = Quantity.of(text)
    assert quantity.nanos == rounded
    again = Quantity.of(str(quantity))
    assert (again, str(again)) == (quantity, str(quantity))


@given(nanos=st.integers(-(10**30), 10**30), family=st.sampled_from(["decimal", "exponent"]))
def test_canonical_text_has_no_fraction_and_loses_nothing(nanos: int, family: str) -> None:
    text = str(Quantity(nanos, family))  # type: ignore[arg-type]
    assert "." not in text
    assert Quantity.of(text).nanos == nanos


def test_amounts_add_subtract_and_multiply_resource_by_resource() -> None:
    one = Amounts.of({"cpu": "500m", "memory": "1Gi"})
    other = Amounts.of({"cpu": 1, "nvidia.com/gpu": 8})
    assert one.plus(other) == Amounts.of({"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 8})
    assert one.minus(one) == NOTHING
    assert one.times(3) == Amounts.of({"cpu": "1.5", "memory": "3Gi"})


def test_what_is_missing_means_zero() -> None:
    room = Amounts.of({"cpu": 4})
    assert Amounts.of({"cpu": 4, "nvidia.com/gpu": 0}).fits_in(room)
    assert not Amounts.of({"cpu": 4, "nvidia.com/gpu": 1}).fits_in(room)
    assert Amounts.of({"cpu": 6, "memory": 1}).beyond(room) == Amounts.of({"cpu": 2, "memory": 1})
    assert room["memory"] == 0


def test_amounts_print_in_the_family_customary_for_the_resource() -> None:
    amounts = Amounts.of({"memory": "1048576k", "cpu": "2000m"})
    assert {name: str(value) for name, value in amounts.quantities().items()} == {
        "cpu": "2",
        "memory": "1000Mi",
    }


def test_equal_amounts_hash_alike_whatever_their_order() -> None:
    one = Amounts.of({"a": 1, "b": 2, "c": 0})
    other = Amounts.of({"b": "2000m", "a": 1})
    assert (one, hash(one), list(one)) == (other, hash(other), list(other))


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
       st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)))  # fmt: skip
def test_one_fits_in_another_exactly_when_nothing_is_beyond_it(
    left: dict[str, int], right: dict[str, int]
) -> None:
    need, room = Amounts(left), Amounts(right)
    assert need.fits_in(room) == (need.beyond(room) == NOTHING)
    assert need.plus(room).minus(room) == need
