"""What conforms already is not walked again, and nothing slips in by being equal."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.schema.node import parse
from fairway.schema.validation import Findings, conform

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "count": {"type": "integer"},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "maxLength": 3},
                            "size": {"type": "integer", "default": 1},
                        },
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
KNOWN = {"spec": {"count": 1, "parts": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]}}


@pytest.mark.parametrize(
    ("value", "after", "faults"),
    [
        pytest.param(
            {"spec": {"count": True, "parts": KNOWN["spec"]["parts"]}},
            None,
            ["spec.count"],
            id="what is equal but of another type is checked",
        ),
        pytest.param(
            {"spec": {"count": 2, "parts": [{"name": "long", "size": 1}]}},
            None,
            ["spec.parts[0].name"],
            id="what changed is checked",
        ),
        pytest.param(
            {"spec": {"count": 1, "parts": [{"name": "c"}, {"name": "a", "size": 1}]}},
            {"spec": {"count": 1, "parts": [{"name": "c", "size": 1}, {"name": "a", "size": 1}]}},
            [],
            id="items that come get their defaults, wherever they stand",
        ),
        pytest.param(
            {"spec": {"count": 1, "parts": [{"name": "a", "size": True}]}},
            None,
            ["spec.parts[0].size"],
            id="an item that is equal but of another type is checked",
        ),
        pytest.param(
            {**KNOWN, "status": {"phase": 1}},
            None,
            ["status.phase"],
            id="what was not there before is checked",
        ),
    ],
)
def test_known_parts(value: Any, after: Any, faults: list[str]) -> None:
    findings = Findings()
    conform(value, parse(SCHEMA), findings, known=KNOWN)
    assert [fault.path for fault in findings.faults] == faults
    if after is not None:
        assert repr(value) == repr(after)
