"""Names that several parts must agree on."""

from __future__ import annotations

import re

import pytest

from fairway.api.names import report_name, work_name, work_namespace

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (work_name("vision", "resnet"), "vision.resnet"),
        (work_namespace("east"), "fairway-cluster-east"),
        (report_name("east", 2), "east-2"),
        (report_name("east", 2, is_difference=True), "east-2-difference"),
    ],
)
def test_names_are_plain_where_they_can_be(found: str, expected: str) -> None:
    assert found == expected


@pytest.mark.parametrize("end", ["a", "b"])
def test_what_is_too_long_is_shortened_to_a_valid_name_that_stays_its_own(end: str) -> None:
    long = "n" * 240 + end
    other = "n" * 240 + "c"
    for make, most in (
        (lambda item: work_name("a" * 60, item), 253),
        (work_namespace, 63),
        (lambda item: report_name(item * 2, 0, is_difference=True), 253),
    ):
        assert len(make(long)) <= most
        assert NAME.fullmatch(make(long))
        assert make(long) != make(other)
        assert make(long) == make(long)


def test_a_dot_in_the_name_of_a_cluster_makes_another_namespace_than_a_dash() -> None:
    assert "." not in work_namespace("east.one")
    assert work_namespace("east.one") != work_namespace("east-one")
