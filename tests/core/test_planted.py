"""The list of planted bugs is in order; `python -m tests.core.planted.run` plants them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairway.core
from tests.core.planted.patches import PATCHES, Patch

CORE = Path(fairway.core.__file__).parent


def test_there_are_at_least_twenty_planted_bugs() -> None:
    assert len({(patch.file, patch.old) for patch in PATCHES}) >= 20


@pytest.mark.parametrize("patch", PATCHES, ids=lambda other: other.sentence)
def test_a_planted_bug_can_be_planted(patch: Patch) -> None:
    text = (CORE / patch.file).read_text()
    assert text.count(patch.old) == 1
    compile(text.replace(patch.old, patch.new), patch.file, "exec")
