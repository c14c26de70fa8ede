"""The planner process: reads calls from its input, writes answers to its output."""

from __future__ import annotations

import gc
import os
import pickle
import struct
import sys
import traceback
from contextlib import suppress
from typing import Any, BinaryIO

from fairway.controllers.scheduling.planner_state import Planning

_LENGTH = struct.Struct("<I")
_NICENESS = 5  # the API goes first


def main() -> None:
    """Answers calls until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr  # only answers may be written to the pipe
    with suppress(OSError):
        os.nice(_NICENESS)
    gc.set_threshold(50_000, 20, 100)
    try:
        serve(sys.stdin.buffer, answers, Planning())
    except BrokenPipeError:
        os._exit(0)  # the hub was killed before it read the answer, which is still in the buffer


def serve(calls: BinaryIO, answers: BinaryIO, planning: Planning) -> None:
    """Answers calls until the hub is gone, which may be in the middle of a call."""
    while len(head := calls.read(_LENGTH.size)) == _LENGTH.size:
        size = _LENGTH.unpack(head)[0]
        if len(call := calls.read(size)) < size:
            return
        method, arguments = pickle.loads(call)  # noqa: S301 - ours
        body = pickle.dumps(_answer(planning, method, arguments), pickle.HIGHEST_PROTOCOL)
        answers.write(_LENGTH.pack(len(body)) + body)
        answers.flush()


def _answer(planning: Planning, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return False, getattr(planning, method)(*arguments)
    except Exception:  # the caller raises it with this text: not every exception can be pickled
        return True, traceback.format_exc()
