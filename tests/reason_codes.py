"""Which reasons the tests of a run emit: those that our code gives, and those that a hub stores.

`pytest -p tests.reason_codes` with `FAIRWAY_REASONS=FILE` writes their codes, a line each. What a
test makes by itself, or only compares, does not count; nor does a code that a table only lists.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from fairway.api.meta import GROUP
from fairway.api.reasons import Code, Reason
from fairway.controllers.lifecycle.attempt_ends import End
from fairway.controllers.lifecycle.troubles import Trouble
from fairway.store.embedded.history import Change
from fairway.store.embedded.writes import Writer

_FILE = Path(os.environ["FAIRWAY_REASONS"]).absolute()  # tests may change the current folder
_STORED = re.compile(rb'"reason":\s*"(\w+)"')
_WORKLOADS = (GROUP, "workloads")
_emitted: set[str] = set()


def _watch_made(kind: type, field: str) -> None:
    """Sees each value of a kind that our own code makes."""
    make = kind.__init__  # type: ignore[misc] # it is called with a value of the kind

    def make_seen(value: object, **fields: Any) -> None:
        make(value, **fields)
        if sys._getframe(1).f_globals["__name__"].startswith("fairway."):
            _emitted.add(str(getattr(value, field)))

    kind.__init__ = make_seen  # type: ignore[misc] # to see what is made


def _watch_stored() -> None:
    """Sees each change of a workload that is stored."""
    stage = Writer.stage

    def stage_seen(writer: Writer, change: Change) -> Any:
        if change.kind == _WORKLOADS and change.previous is not None:
            _emitted.update(word.decode() for word in _STORED.findall(change.record.raw))
        return stage(writer, change)

    Writer.stage = stage_seen  # type: ignore[method-assign] # to see what is stored


_watch_made(Reason, "code")
_watch_made(End, "reason")
_watch_made(Trouble, "reason")
_watch_stored()


def pytest_sessionfinish() -> None:
    codes = sorted(_emitted.intersection(code.value for code in Code))
    _FILE.write_text("".join(f"{code}\n" for code in codes), encoding="utf-8")
