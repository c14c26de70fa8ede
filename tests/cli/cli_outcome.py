"""What a test gets from running a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did, as a shell sees it."""

    code: int
    out: str
    err: str


Fairway = Callable[..., Outcome]
