"""Label and field selectors: the text of `-l` and `--field-selector`, and the structured form.

A selector is parsed once (and remembered) into a tuple of requirements; all must hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairway.api.errors import BadRequest

if TYPE_CHECKING:
    from fairway.api.meta import LabelSelector

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one key."""

    key: str
    operator: str  # in, notin, exists, absent, gt, lt
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case "gt" | "lt":
                return self._compares(value)
            case _:
                return False  # an unknown operator selects nothing

    def _compares(self, value: str | None) -> bool:
        (bound,) = self.values
        try:
            number = int(value or "")
        except ValueError:
            return False
        return number > int(bound) if self.operator == "gt" else number < int(bound)


Requirements = tuple[Requirement, ...]


def matches(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    return all(requirement.holds(labels) for requirement in requirements)


@lru_cache(maxsize=4096)
def is_label_key(text: str) -> bool:
    """Whether a text may be the key of a label: an optional DNS prefix, and a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > 253 or not _PREFIX.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(name))


@lru_cache(maxsize=4096)
def is_label_value(text: str) -> bool:
    return not text or bool(_NAME.fullmatch(text))


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> Requirements:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k,n>3` as requirements."""
    return tuple(_label_requirement(part) for part in _split(text))


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside parentheses."""
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    if depth:
        raise BadRequest(f"unable to parse requirement: unbalanced parentheses in {text!r}")
    parts.append(text[start:])
    return [part.strip() for part in parts] if text.strip() else []


_SETS = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARES = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>\S*)")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}


def _label_requirement(part: str) -> Requirement:
    if match := _SETS.fullmatch(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _check(Requirement(match["key"], match["operator"], values))
    if match := _COMPARES.fullmatch(part):
        operator = _OPERATORS[match["operator"]]
        return _check(Requirement(match["key"], operator, frozenset({match["value"]})))
    if part.startswith("!"):
        return _check(Requirement(part[1:].strip(), "absent"))
    return _check(Requirement(part, "exists"))


def _check(requirement: Requirement) -> Requirement:
    if not is_label_key(requirement.key):
        raise BadRequest(f"unable to parse requirement: invalid label key {requirement.key!r}")
    if requirement.operator in ("gt", "lt"):
        (bound,) = requirement.values
        if not re.fullmatch(r"-?\d+", bound):
            raise BadRequest(f"unable to parse requirement: {bound!r} is not an integer")
    elif not all(map(is_label_value, requirement.values)):
        values = ", ".join(sorted(requirement.values))
        raise BadRequest(f"unable to parse requirement: invalid label value {values!r}")
    return requirement


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> Requirements:
    """`metadata.name=x,status.phase!=Running` as requirements."""
    requirements: list[Requirement] = []
    for part in _split_fields(text):
        pair = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if pair is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
        key, operator, value = pair.groups()
        value = value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\")
        requirements.append(Requirement(key.strip(), _OPERATORS[operator], frozenset({value})))
    return tuple(requirements)


def _split_fields(text: str) -> list[str]:
    return [part for part in re.split(r"(?<!\\),", text) if part.strip()]


_SELECTOR_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "absent",
}


def requirements(selector: LabelSelector | None) -> Requirements:
    """A typed LabelSelector as requirements; none selects everything."""
    if selector is None:
        return ()
    result = [
        Requirement(key, "in", frozenset({value})) for key, value in selector.match_labels.items()
    ]
    result.extend(
        Requirement(
            expression.key,
            _SELECTOR_OPERATORS.get(expression.operator, ""),
            frozenset(expression.values),
        )
        for expression in selector.match_expressions
    )
    return tuple(result)


def read_label_selector(selector: Mapping[str, Any]) -> Requirements:
    """A LabelSelector object (`matchLabels`, `matchExpressions`) as requirements."""
    requirements = [
        Requirement(key, "in", frozenset({value}))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        values: Iterable[str] = expression.get("values") or ()
        operator = _SELECTOR_OPERATORS.get(expression.get("operator"), "")
        requirements.append(Requirement(expression.get("key", ""), operator, frozenset(values)))
    return tuple(requirements)
