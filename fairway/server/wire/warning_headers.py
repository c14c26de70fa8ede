"""Warnings as headers of a response, within limits: clients refuse headers that are too long.

The limits are those of a kube-apiserver: 4,096 characters in all; if there are more, a warning is
cut after 256.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairway.api.errors import readable

_CHARACTERS_MAX = 4_096
_CHARACTERS_CUT = 256


def warning_headers(warnings: Sequence[str]) -> Iterator[str]:
    """The values of the Warning headers, as many as there is room for."""
    is_long = sum(map(len, warnings)) > _CHARACTERS_MAX
    room = _CHARACTERS_MAX
    for warning in warnings:
        # A line break would end the header, and a client could inject headers of its own.
        text = readable(warning[:_CHARACTERS_CUT] if is_long else warning)
        room -= len(text)
        if room < 0:
            return
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        yield f'299 - "{quoted}"'
