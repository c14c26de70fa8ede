"""Every reason is emitted by some code, and a test sees it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from fairway.api.reasons import Code

ROOT = Path(__file__).parents[2]
# These list all codes, whether or not any is emitted.
LISTS = ("tests/goldens", "tests/api", "tests/upgrade", "fairway/api")


@cache
def words(folder: str) -> frozenset[str]:
    """Words in the code of a folder: codes by value, or as `Code.NAME`."""
    found = set[str]()
    for path in (ROOT / folder).rglob("*.py"):
        if not any(path.is_relative_to(ROOT / part) for part in LISTS):
            found.update(re.findall(r"Code\.\w+|\b[A-Z]\w+\b", path.read_text()))
    return frozenset(found)


@pytest.mark.parametrize("code", Code, ids=lambda code: code.value)
def test_a_reason_is_emitted_and_a_test_sees_it(code: Code) -> None:
    assert f"Code.{code.name}" in words("fairway"), "nothing emits it"
    assert words("tests").intersection((f"Code.{code.name}", code.value)), "no test sees it"
