"""One rule of a role: what it allows, and what it covers of another rule.

Allowing and covering differ. A rule allows a request. Covering matters when a user grants a rule to
others: every single right in it must lie inside a rule that the user holds. To decide that, a rule
is split into rights of one verb, one resource and one name each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What a request wants: a verb on a resource, or on a path when `path` is set."""

    user: str
    groups: tuple[str, ...] = ()
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """The resource as in rules: with its subresource, if any."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A policy rule. Rights are the product of its lists; no resource names means every name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Rule:
        return cls(
            verbs=_texts(raw.get("verbs")),
            groups=_texts(raw.get("apiGroups")),
            resources=_texts(raw.get("resources")),
            names=_texts(raw.get("resourceNames")),
            urls=_texts(raw.get("nonResourceURLs")),
        )

    def raw(self) -> dict[str, list[str]]:
        """The rule as a PolicyRule object; empty lists are left out."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {key: list(values) for key, values in fields.items() if values or key == "verbs"}

    def allows_resource(self, wanted: Attributes) -> bool:
        """Whether a request on a resource is allowed, given that the resource itself matches."""
        verbs, groups, names = self.verbs, self.groups, self.names
        return (
            (wanted.verb in verbs or "*" in verbs)
            and (wanted.group in groups or "*" in groups)
            and (not names or wanted.name in names)
        )

    def allows_path(self, wanted: Attributes) -> bool:
        if wanted.verb not in self.verbs and "*" not in self.verbs:
            return False
        return any(_url_covers(url, wanted.path) for url in self.urls)

    def covers(self, right: Rule) -> bool:
        """Whether a single right (see `rights`) lies inside this rule."""
        return (
            _covers_all(self.verbs, right.verbs)
            and _covers_all(self.groups, right.groups)
            and all(self._covers_resource(resource) for resource in right.resources)
            and all(any(_url_covers(mine, url) for mine in self.urls) for url in right.urls)
            and (not self.names or (bool(right.names) and set(right.names) <= set(self.names)))
        )

    def _covers_resource(self, resource: str) -> bool:
        if "*" in self.resources or resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def rights(self) -> Iterator[Rule]:
        """The rule split into rights of one verb on one thing each."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    right = Rule(verbs=(verb,), groups=(group,), resources=(resource,))
                    if not self.names:
                        yield right
                    for name in self.names:
                        yield Rule(
                            verbs=(verb,), groups=(group,), resources=(resource,), names=(name,)
                        )
        for url in self.urls:
            for verb in self.verbs:
                yield Rule(verbs=(verb,), urls=(url,))

    def __str__(self) -> str:
        """The rule as an escalation error shows it."""
        parts = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        shown = (f"{label}:{quoted_list(values)}" for label, values in parts if values)
        return "{" + ", ".join(shown) + "}"


def uncovered_rules(held: Sequence[Rule], granted: Iterable[Rule]) -> list[Rule]:
    """The single rights in `granted` that no rule of `held` covers."""
    rights = (right for rule in granted for right in rule.rights())
    return [right for right in rights if not any(rule.covers(right) for rule in held)]


def compact(rights: Iterable[Rule]) -> list[Rule]:
    """Rights on the same thing joined into one rule with all their verbs, for people to read."""
    verbs_by_thing: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    paths: list[Rule] = []
    for right in rights:
        if right.urls:
            # Like Kubernetes, each right on a path is shown by itself.
            paths.append(right)
            continue
        verbs = verbs_by_thing.setdefault((right.groups, right.resources, right.names), [])
        verbs.extend(verb for verb in right.verbs if verb not in verbs)
    joined = [
        Rule(groups=groups, resources=resources, names=names, verbs=tuple(verbs))
        for (groups, resources, names), verbs in verbs_by_thing.items()
    ]
    return joined + paths


def quote(text: str) -> str:
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:  # bytes from a client that are not text
        return msgspec.json.encode(text.encode(errors="replace").decode()).decode()


def quoted_list(texts: Iterable[str]) -> str:
    """A list as Kubernetes shows one inside a sentence: `["a" "b"]`."""
    return "[" + " ".join(map(quote, texts)) + "]"


def _covers_all(mine: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return "*" in mine or set(wanted) <= set(mine)


def _url_covers(mine: str, wanted: str) -> bool:
    return mine == wanted or (mine.endswith("*") and wanted.startswith(mine.rstrip("*")))


def _texts(value: object) -> tuple[str, ...]:
    """A list of strings; anything else grants nothing."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, str))
