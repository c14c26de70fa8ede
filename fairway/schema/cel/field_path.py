"""The `fieldPath` of a rule: the part of the value where a fault is shown.

.spec.replicas      a property, or a key of a map
.labels['a.b']      the same, for names with dots
"""

from __future__ import annotations

import re

from fairway.schema.node import Node

_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def normalize(text: str, node: Node) -> str | None:
    """The path as shown in faults; None if the schema has no such part."""
    place, shown = 0, ""
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            return None
        place = match.end()
        plain, quoted = match.groups()
        name = plain if quoted is None else _ESCAPE.sub(_unescape, quoted)
        if name in node.properties:
            node = node.properties[name]
            shown += f".{name}" if shown else name
        elif not node.properties and node.additional is not None:
            node = node.additional
            shown += f"[{name}]"
        else:
            return None
    return shown or None


def _unescape(match: re.Match[str]) -> str:
    return _CONTROLS.get(match.group(1), match.group(1))
