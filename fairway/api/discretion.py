"""Redaction of answers: a user sees names of workloads only in namespaces that the user may read.

A user who may not list the workloads of a namespace learns nothing about what runs there: no name,
no user, nor that the namespace exists. Amounts, times and counts of others stay in every answer,
since the fleet cannot be understood without them. A hidden workload appears as `ANOTHER`, the same
words for each.

Names are removed from the structure, and sentences are generated from it afterwards:

- `mention(key, may)` for one workload, `namespace/name`;
- `discreet_explanation(explanation, may)` for why a workload is pending, before it becomes English;
- `discreet(answer, may)` for any answer that is JSON already. It recognizes workloads by the name
  of their field (see `_KEYS`), and other owned things by their field `namespace`.

`may` says whether the caller may list the workloads of a namespace. The server makes one for each
call; a new question only has to pass its answer to `discreet`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

from fairway.api.explanations import Explanation
from fairway.api.names import namespace_and_name
from fairway.api.reasons import Code, Reason

ANOTHER = "a workload of another team"
ANOTHER_USER = "a user of another team"
MayLook = Callable[[str], bool]  # by namespace

# Reasons whose `other` is a workload; for the rest it is a flavor, a taint or a cluster.
_OF_WORKLOADS = frozenset(
    {
        Code.BEHIND_HEAD,
        Code.RESERVED,
        Code.PREEMPTED_WITHIN_QUEUE,
        Code.PREEMPTED_TO_RECLAIM,
        Code.PREEMPTED_FOR_FAIR_SHARE,
        Code.PREEMPTED_WHILE_BORROWING,
    }
)
# Fields of answers with one or several workloads, as `namespace/name`.
_KEYS = frozenset({"workload", "workloads", "heads", "for", "because", "waitsFor", "victims"})
# Fields of namespaced things that say what or whose they are.
_NAMES = frozenset({"name", "workload"})
_WHOSE = frozenset({"namespace", "user", "users", "team", "uid", "labels", "annotations"})
# Names in a sentence, with any suffix: `namespace/name`, `namespace/name-0/main`.
_PATHS = re.compile(r"(?<![\w.-])[\w.-]+(?:/[\w.:-]*\w)+")
_BORDER = re.compile(r"\b")


def within(namespace: str) -> MayLook:
    """Access to one namespace only."""
    return lambda other: other == namespace


def everywhere(namespace: str) -> bool:
    """Access to every namespace: nothing is hidden, and answers need not be searched."""
    return True


def mention(key: str, may: MayLook) -> str:
    """A workload by its name, if the caller may know it."""
    namespace, name = namespace_and_name(key)
    return ANOTHER if name and not may(namespace) else key


def discreet_explanation(explanation: Explanation, may: MayLook) -> Explanation:
    """An explanation without names that the caller may not know."""
    quota = explanation.quota
    return replace(
        explanation,
        because=_told_all(explanation.because, may),
        quota=_discreet_reason(quota, may) if quota is not None else None,
        reasons=tuple(_discreet_reason(reason, may) for reason in explanation.reasons),
    )


def discreet(answer: Any, may: MayLook) -> Any:
    """An answer without names that the caller may not know; the input is not changed.

    Sentences should be generated from the result. If a sentence is in the answer already, names of
    workloads that are also in its structure are removed from it.
    """
    if may is everywhere:
        return answer
    walk = _Walk(may)
    result = walk.value(answer)
    return _without(result, walk.hidden) if walk.hidden else result


def _told_all(keys: str, may: MayLook) -> str:
    """Several workloads in one text; all hidden ones are merged into one."""
    return ", ".join(dict.fromkeys(mention(part, may) for part in keys.split(", ")))


def _discreet_reason(reason: Reason, may: MayLook) -> Reason:
    if reason.code not in _OF_WORKLOADS:
        return reason
    return replace(reason, other=_told_all(reason.other, may))


class _Walk:
    """One walk through an answer, and the workloads that it hid."""

    def __init__(self, may: MayLook) -> None:
        self._may = may
        self.hidden: dict[str, None] = {}

    def value(self, value: Any) -> Any:
        match value:
            case dict():
                return self._object(value)
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value

    def _object(self, body: dict[str, Any]) -> dict[str, Any]:
        namespace = body.get("namespace")
        is_foreign = isinstance(namespace, str) and namespace != "" and not self._may(namespace)
        made: dict[str, Any] = {}
        for field, value in body.items():
            if is_foreign and field in _NAMES and isinstance(value, str):
                self.hidden[f"{namespace}/{value}"] = None
                made[field] = ANOTHER
            elif is_foreign and field in _WHOSE:
                continue
            elif field in _KEYS or (field == "other" and body.get("code") in _OF_WORKLOADS):
                made[field] = self._keys(value)
            else:
                made[field] = self.value(value)
        if made.get("workload") == ANOTHER and "reasons" in made:
            made["reasons"] = [_without_user(reason) for reason in made["reasons"]]
        return made

    def _keys(self, value: Any) -> Any:
        match value:
            case str():
                for part in value.split(", "):
                    if mention(part, self._may) != part:
                        self.hidden[part] = None
                return _told_all(value, self._may)
            case list() | tuple():
                return [self._keys(item) for item in value]
            case _:
                return self.value(value)


def _without_user(reason: Any) -> Any:
    """A reason of a hidden workload, without the user that its sentence begins with."""
    if reason.get("code") != Code.USER_LIMIT_EXCEEDED:
        return reason
    message = str(reason.get("message", "")).replace(str(reason.get("other", "")), ANOTHER_USER, 1)
    return {**reason, "other": ANOTHER_USER, "message": message}


def _without(value: Any, hidden: Container[str]) -> Any:
    """Safety net: masks names in texts that were generated too early."""
    match value:
        case str():
            return _PATHS.sub(lambda match: _mask(match[0], hidden), value)
        case dict():
            return {field: _without(other, hidden) for field, other in value.items()}
        case list():
            return [_without(item, hidden) for item in value]
        case _:
            return value


def _mask(path: str, hidden: Container[str]) -> str:
    """A path without hidden names; candidates are looked up, since there may be many names."""
    result, *rest = path.split("/")
    for part in rest:
        namespace = result.rpartition("/")[2].rpartition(":")[2]
        if _begins_hidden(namespace, part, hidden):
            result = f"{result.removesuffix(namespace)}{ANOTHER}"
        else:
            result = f"{result}/{part}"
    return result


def _begins_hidden(namespace: str, part: str, hidden: Container[str]) -> bool:
    """Whether it is a hidden name, or the name of something that belongs to one, such as a pod."""
    return any(f"{namespace}/{part[: match.start()]}" in hidden for match in _BORDER.finditer(part))
