"""Every reason is emitted by some code, and a test sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fairway.api.reasons import Code

ROOT = Path(__file__).parents[2]
# These list all codes, whether or not any is emitted.
LISTS = ("tests/goldens", "tests/api", "tests/upgrade", "fairway/api")
# What only compares a code with another does not emit it.
COMPARED = re.compile(
    r"(==|!=|\bis|\bin|\bcase)\s*\(?\s*Code\.\w+|Code\.\w+(\.value)?\s*(==|!=|\bin\b|\bnot\b)"
)
DOCUMENTATION = re.compile(r'"""(?s:.*?)"""')
TEXT = re.compile(r'"([^"\n]*)"')


def texts(folder: str) -> Iterator[str]:
    for path in (ROOT / folder).rglob("*.py"):
        if not any(path.is_relative_to(ROOT / part) for part in LISTS):
            yield path.read_text()


@cache
def emitted() -> frozenset[str]:
    return frozenset(
        name
        for text in texts("fairway")
        for name in re.findall(r"\bCode\.(\w+)", COMPARED.sub("", text))
    )


@cache
def seen() -> frozenset[str]:
    """Codes in what tests expect: by name, or as words of texts that are no documentation."""
    result = set[str]()
    for text in texts("tests"):
        code = DOCUMENTATION.sub("", text)
        result.update(re.findall(r"\bCode\.\w+", code))
        for constant in TEXT.findall(code):
            result.update(re.findall(r"\b[A-Z]\w+\b", constant))
    return frozenset(result)


@pytest.mark.parametrize("code", Code, ids=lambda code: code.value)
def test_a_reason_is_emitted_and_a_test_sees_it(code: Code) -> None:
    assert code.name in emitted(), "nothing emits it"
    assert seen().intersection((f"Code.{code.name}", code.value)), "no test sees it"
