"""The output: a person's terminal, or a program's pipe.

On a terminal, text is laid out for its width and coloured by rich; in a pipe it is plain text,
whole and unstyled. NO_COLOR and TERM=dumb are respected.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

# Style and symbol of a state word, so that colour is never the only sign.
_TONES: tuple[tuple[str, str, str], ...] = (
    ("green", "●", "Running Active Manage Bound Connected"),
    ("bright_green", "✓", "Succeeded Complete Completed Ready Available Finished True"),
    ("yellow", "○", "Pending Waiting Queued Suspended Held Paused Observe Shadow"),
    ("cyan", "◐", "Claimed Admitted Starting Terminating Preempting Provisioning Reserved Moving"),
    ("cyan", "◐", "ContainerCreating Stopping Placed Dispatched"),
    ("bold red", "✗", "Failed Error Lost Rejected Evicted NotReady Unreachable"),
    ("bold red", "✗", "CrashLoopBackOff OOMKilled ImagePullBackOff ErrImagePull"),
    ("magenta", "?", "Unknown"),
    ("dim", "⊘", "Cancelled"),
    ("yellow", "✗", "False"),
    ("yellow", "▲", "Warning"),
    ("dim", "·", "Normal"),
)
_BY_WORD = {word: (style, sign) for style, sign, words in _TONES for word in words.split()}


@functools.cache
def console() -> Console:
    """The standard output as rich sees it."""
    return Console(highlight=False, emoji=False, markup=False)


def is_rich() -> bool:
    """Whether a person reads the output: standard output is a capable terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_symbols() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def width() -> int:
    return console().width


def state(word: str) -> Text:
    """A state word, coloured and with its symbol; other words unchanged."""
    style, sign = _BY_WORD.get(word, ("", ""))
    if not style:
        return Text(word)
    return Text(f"{sign} {word}" if has_symbols() else word, style=style)


def write(lines: Sequence[Text | str]) -> None:
    """Writes lines to standard output: styled for a person, plain for a program."""
    if not is_rich():
        for line in lines:
            print(line.plain if isinstance(line, Text) else line)  # noqa: T201 - the output itself
    else:
        for line in lines:
            console().print(line, soft_wrap=True)
    sys.stdout.flush()
