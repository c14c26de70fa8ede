"""What may be told to whom: names of workloads, as far as somebody may look into namespaces.

Who may not list the workloads of a namespace learns nothing of what runs there: no name of it, no
user, nor that the namespace exists. Amounts, times and numbers of others stay in every answer,
since the fleet cannot be understood without them. A foreign workload is then `ANOTHER`, the same
words for each.

Names are taken out of the structure, and sentences are made from it afterwards:

- `mention(key, may)` for one workload, `namespace/name`;
- `discreet_explanation(explanation, may)` for why a workload waits, before it becomes English;
- `discreet(answer, may)` for any answer that is JSON already. It knows by their field what holds a
  workload (see `_KEYS`), and by its field `namespace` what else belongs to somebody.

`may` says whether the caller may list the workloads of a namespace. The server makes one for each
call; a new question gives its answer to `discreet` and is done.
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
SOMEBODY = "somebody of another team"
MayLook = Callable[[str], bool]  # by namespace

# Reasons whose `other` is a workload; of the rest it is a flavor, a taint, a cluster.
_OF_WORKLOADS = frozenset(
    {
        Code.BEHIND_HEAD,
        Code.RESERVED,
        Code.WAITS_FOR_VICTIMS,
        Code.PREEMPTED_WITHIN_QUEUE,
        Code.PREEMPTED_TO_RECLAIM,
        Code.PREEMPTED_FOR_FAIR_SHARE,
        Code.PREEMPTED_WHILE_BORROWING,
    }
)
# Fields of answers that hold a workload, or several, as `namespace/name`.
_KEYS = frozenset({"workload", "workloads", "heads", "for", "because", "waitsFor", "victims"})
# Fields of something in a namespace that say what or whose it is.
_NAMES = frozenset({"name", "workload"})
_WHOSE = frozenset({"namespace", "user", "users", "team", "uid", "labels", "annotations"})
# Names in a sentence, with whatever is behind them: `namespace/name`, `namespace/name-0/main`.
_PATHS = re.compile(r"(?<![\w.-])[\w.-]+(?:/[\w.:-]*\w)+")
_BORDER = re.compile(r"\b")


def within(namespace: str) -> MayLook:
    """Looks into one namespace alone."""
    return lambda other: other == namespace


def everywhere(namespace: str) -> bool:
    """Looks into every namespace: nothing is hidden, and nothing need be looked through."""
    return True


def mention(key: str, may: MayLook) -> str:
    """A workload by its name, if that may be told."""
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
    """An answer without names that the caller may not know; the one that is given stays as it is.

    Sentences should be made from what this returns. Where one is in the answer already, names of
    workloads that also stand in its structure are taken out of it.
    """
    if may is everywhere:
        return answer
    walk = _Walk(may)
    result = walk.value(answer)
    return _without(result, walk.hidden) if walk.hidden else result


def _told_all(keys: str, may: MayLook) -> str:
    """Several workloads in one text; all that may not be told are one."""
    return ", ".join(dict.fromkeys(mention(part, may) for part in keys.split(", ")))


def _discreet_reason(reason: Reason, may: MayLook) -> Reason:
    if reason.code not in _OF_WORKLOADS:
        return reason
    return replace(reason, other=_told_all(reason.other, may))


class _Walk:
    """One way through an answer, and the workloads that were hidden on it."""

    def __init__(self, may: MayLook) -> None:
        self._may = may
        self.hidden: dict[str, None] = {}

    def value(self, value: Any) -> Any:
        match value:
            case dict():
                return self._object(value)
            case list() | tuple():
                return [self.value(item) for item in value if not self._is_foreign_choice(item)]
            case _:
                return value

    def _is_foreign_choice(self, value: Any) -> bool:
        """Whether it says which clusters a policy of others chooses."""
        policy = value.get("policy") if isinstance(value, dict) else None
        return isinstance(policy, str) and mention(policy, self._may) != policy

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
    """A reason of a workload of others; its sentence begins with who has too much."""
    if reason.get("code") != Code.USER_LIMIT_EXCEEDED:
        return reason
    message = str(reason.get("message", "")).replace(str(reason.get("other", "")), SOMEBODY, 1)
    return {**reason, "other": SOMEBODY, "message": message}


def _without(value: Any, hidden: Container[str]) -> Any:
    """The net below: texts that were made too early."""
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
    """A path without names; what may be one is looked up, since texts and names may be many."""
    result, *rest = path.split("/")
    for part in rest:
        namespace = result.rpartition("/")[2].rpartition(":")[2]
        if _begins_hidden(namespace, part, hidden):
            result = f"{result.removesuffix(namespace)}{ANOTHER}"
        else:
            result = f"{result}/{part}"
    return result


def _begins_hidden(namespace: str, part: str, hidden: Container[str]) -> bool:
    """Whether it is a hidden name, or that of something which belongs to one: a pod."""
    return any(f"{namespace}/{part[: match.start()]}" in hidden for match in _BORDER.finditer(part))
