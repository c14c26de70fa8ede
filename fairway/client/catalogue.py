"""Which kinds a server serves, and which one a person means.

Pure: a `Catalogue` is made from discovery documents and searched by the words people use:
`workloads`, `wl`, `Workload`, `deployments.apps`, `jobs.v1.batch`, or a category such as `fairway`
or `all`. Where a word fits several kinds, the first in the server's order wins, as with kubectl.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairway.client.errors import UnknownKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One served version of a kind."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`workloads.fairway.dev`; a kind of the core group has no suffix."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_singular(self) -> str:
        """`workload.fairway.dev`, as it is shown before an object's name."""
        singular = self.singular or self.kind.lower()
        return f"{singular}.{self.group}" if self.group else singular

    def path(self, name: str = "", *, namespace: str | None = None, subresource: str = "") -> str:
        """The path of the collection, of one object in it, or of a subresource of that object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (self.plural, name, subresource) if part)
        return root + inside + tail

    def names(self) -> set[str]:
        """Every word that means this kind, in lower case."""
        singular = self.singular or self.kind.lower()
        return {self.plural, singular, self.kind.lower(), *self.short_names}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything one server serves, preferred versions first within a group."""

    served: Sequence[Served]

    def resolve(self, word: str) -> Served:
        """The kind that a word means."""
        resource = self._find(word)
        if resource is None:
            raise UnknownKind(
                f'the server doesn\'t have a resource type "{word}"{self._like(word)}'
            )
        return resource

    def expand(self, word: str) -> list[Served]:
        """The kinds that a word means: one, or all of a category."""
        match = self._find(word)
        if match is not None:
            return [match]
        members = [resource for resource in self._prefer() if word.lower() in resource.categories]
        return members or [self.resolve(word)]

    def of(self, api_version: str, kind: str) -> Served:
        """The kind that an object declares."""
        for resource in self.served:
            if resource.api_version == api_version and resource.kind == kind:
                return resource
        known = {resource.kind for resource in self.served if resource.api_version == api_version}
        close = difflib.get_close_matches(kind, known, n=1)
        raise UnknownKind(
            f'no matches for kind "{kind}" in version "{api_version}": '
            + (f'did you mean "{close[0]}"?' if close else "is its definition installed?")
        )

    def preferred(self) -> list[Served]:
        """Every kind once, in the version its group prefers."""
        return list(self._prefer())

    def _prefer(self) -> Iterator[Served]:
        seen: set[tuple[str, str]] = set()
        for resource in self.served:
            if (resource.group, resource.plural) not in seen:
                seen.add((resource.group, resource.plural))
                yield resource

    def _find(self, word: str) -> Served | None:
        name, _, tail = word.lower().partition(".")
        matches = [resource for resource in self.served if name in resource.names()]
        if not tail:
            return matches[0] if matches else None
        for match in matches:
            full = f"{match.version}.{match.group}" if match.group else match.version
            if tail in {match.group, full}:
                return match
        return None

    def _like(self, word: str) -> str:
        known = sorted({name for resource in self.served for name in resource.names()})
        close = difflib.get_close_matches(word.lower(), known, n=1)
        return f' (did you mean "{close[0]}"?)' if close else ""


def from_aggregated(documents: Iterable[Mapping[str, Any]]) -> Catalogue:
    """A catalogue from `APIGroupDiscoveryList`s, the core group first."""
    served: list[Served] = []
    for document in documents:
        for group in document.get("items") or ():
            name = group.get("metadata", {}).get("name", "")
            for version in group.get("versions") or ():
                for resource in version.get("resources") or ():
                    kind = resource.get("responseKind") or {}
                    parts = resource.get("subresources") or ()
                    served.append(
                        Served(
                            group=name,
                            version=version["version"],
                            plural=resource["resource"],
                            kind=str(kind.get("kind", "")),
                            singular=str(resource.get("singularResource") or ""),
                            namespaced=resource.get("scope") == "Namespaced",
                            verbs=tuple(resource.get("verbs") or ()),
                            short_names=tuple(resource.get("shortNames") or ()),
                            categories=tuple(resource.get("categories") or ()),
                            subresources=tuple(part["subresource"] for part in parts),
                        )
                    )
    return Catalogue(served)


def from_resource_list(group: str, version: str, document: Mapping[str, Any]) -> list[Served]:
    """Kinds of one `APIResourceList`, which servers without aggregated discovery serve."""
    entries = document.get("resources") or ()
    parts: dict[str, list[str]] = {}
    for entry in entries:
        plural, _, part = str(entry["name"]).partition("/")
        if part:
            parts.setdefault(plural, []).append(part)
    return [
        Served(
            group=group,
            version=version,
            plural=entry["name"],
            kind=entry["kind"],
            singular=str(entry.get("singularName") or ""),
            namespaced=bool(entry.get("namespaced")),
            verbs=tuple(entry.get("verbs") or ()),
            short_names=tuple(entry.get("shortNames") or ()),
            categories=tuple(entry.get("categories") or ()),
            subresources=tuple(parts.get(entry["name"], ())),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
