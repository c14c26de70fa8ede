"""Nulls in answers cost no references, whatever the runtime does with them."""

from __future__ import annotations

import sys

import pytest

from fairway.schema.cel.environment import compile

ANSWERS = {
    "null itself": "null",
    "a null that was bound": "given.a",
    "nulls in a list": "[null, dyn(1), null]",
    "nulls in a map": "{'a': null, 'b': {'c': null}}",
    "all that was bound": "given",
}
TIMES = 5000


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is never freed from 3.12 on")
@pytest.mark.parametrize("expression", ANSWERS.values(), ids=ANSWERS)
def test_answers_with_nulls_take_no_reference(expression: str) -> None:
    program = compile(expression, {"given": "dyn"})
    bindings = {"given": {"a": None, "b": [None]}}
    before = sys.getrefcount(None)
    for _ in range(TIMES):
        program.evaluate(bindings)
    assert abs(sys.getrefcount(None) - before) < TIMES // 10
