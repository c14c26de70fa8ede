"""The process that works out what if: objects come in, plans go out."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import msgspec

from fairway.api.errors import ApiError
from fairway.core.cycle import plan
from fairway.core.shortfalls import with_shortfalls
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects

_NICENESS = 10  # decisions and the API go first


def main() -> None:
    with suppress(OSError):
        os.nice(_NICENESS)
    asked = msgspec.json.decode(sys.stdin.buffer.read())
    try:
        answer: dict[str, Any] = {
            name: planned(asked[name], asked["now"]) for name in ("before", "after")
        }
    except ApiError as refusal:
        answer = {"refused": refusal.message}
    sys.stdout.buffer.write(msgspec.json.encode(answer))


def planned(objects: list[dict[str, Any]], now: float) -> dict[str, Any]:
    """What `fairway plan` says of these objects."""
    facts = Objects.of(objects).facts(now)
    made, _ = plan(Snapshot(facts))
    return with_shortfalls(facts, made).render()


if __name__ == "__main__":
    main()
