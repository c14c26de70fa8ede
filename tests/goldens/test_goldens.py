"""What is said to the outside is what was kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.goldens import interfaces
from tests.goldens.record import GOLDENS, HERE, QUESTIONS


@pytest.mark.parametrize(("name", "text"), GOLDENS.items(), ids=GOLDENS)
def test_what_is_said_is_what_was_kept(name: str, text: Callable[[], str]) -> None:
    assert text().splitlines() == (HERE / name).read_text().splitlines()


async def test_answers_to_questions_are_what_was_kept() -> None:
    assert (await interfaces.questions()).splitlines() == QUESTIONS.read_text().splitlines()
