"""Quantities in the text in which Kubernetes keeps them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.resources.builtin.quantities import billionths, canonical, parse


@pytest.mark.parametrize(
    ("given_as", "kept_as"),
    [
        ("1", "1"),
        ("0", "0"),
        ("0Gi", "0"),
        ("1000", "1k"),
        (1000, "1k"),
        (0.5, "500m"),
        (2, "2"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1.5e3", "1500"),
        ("1E", "1E"),
        ("12E2", "1200"),
        ("1000M", "1G"),
        ("-2", "-2"),
        ("+2", "2"),
        (".5", "500m"),
        ("5.", "5"),
        ("0.1n", "1n"),
        ("100u", "100u"),
    ],
)
def test_a_quantity_is_kept_with_the_largest_suffix(given_as: object, kept_as: str) -> None:
    assert canonical(given_as) == kept_as


@pytest.mark.parametrize("text", ["", "x", "1x", "1 Gi", "1.2.3", "Gi", "1ki", "1e", "--1", "1Kii"])
def test_what_is_no_quantity_stays_as_it_is(text: str) -> None:
    assert parse(text) is None
    assert canonical(text) == text


@pytest.mark.parametrize("value", [None, True, [], {}])
def test_other_values_stay_as_they_are(value: object) -> None:
    assert canonical(value) is value


@given(
    st.decimals(min_value=0, max_value=10**9, places=6),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "e-2"]),
)
def test_the_canonical_form_has_the_same_value_and_is_its_own_form(
    number: Decimal, suffix: str
) -> None:
    text = f"{number:f}{suffix}"
    kept = canonical(text)
    assert billionths(kept) == billionths(text)
    assert canonical(kept) == kept


def test_enormous_exponents_are_capped_and_cost_nothing() -> None:
    assert billionths("1e9999") == (2**63 - 1) * 10**9
    assert billionths("1e-9999") == 1
    assert parse("1" * 100) is None
