"""What a store promises.

Objects cross this interface as `Stored`: the JSON text as it is stored, decoded on demand. So code
that only passes on a list or a watch of ten thousand objects decodes nothing.

Names follow Kubernetes: a resource is (group, version, plural); a version of an object is an opaque
string that grows with every write; a write carries its user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol

import msgspec

from fairway.api.submission import HUB
from fairway.schema.node import JsonObject

_WARNINGS_MOST = 100
_decode = msgspec.json.Decoder().decode


class Stored:
    """One object as it is stored: JSON text, decoded on demand."""

    __slots__ = ("_raw",)

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    @property
    def raw(self) -> bytes:
        return self._raw

    def object(self) -> JsonObject:
        """A fresh, mutable copy."""
        decoded: JsonObject = _decode(self._raw)
        return decoded


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """Which kind: group, version, plural."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind: one namespace or all, by labels and fields (selector text)."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How much of a list, and from where."""

    limit: int = 0  # 0: no limit
    continue_from: str = ""
    version: str = ""  # resourceVersion
    match: str = ""  # resourceVersionMatch: "", Exact, NotOlderThan


WHOLE = Page()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects of one kind at one version of the store."""

    items: list[Stored]
    version: str
    continue_from: str = ""
    remaining: int | None = None


EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One change. A BOOKMARK carries only a version in its object's metadata."""

    type: EventType
    stored: Stored
    version: str
    ends_initial: bool = False  # the bookmark that ends the initial events


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFrom:
    """Where a watch begins, and its options.

    `version` "" means from now, with the existing objects first as ADDED; "0" the same; any other
    means every change after that version, or Expired.
    """

    version: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None  # sendInitialEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Who writes, and how."""

    user: str = HUB
    groups: tuple[str, ...] = ()
    manager: str = "fairway"
    dry_run: bool = False
    field_validation: Literal["Ignore", "Warn", "Strict"] = "Strict"
    warnings: list[str] = field(default_factory=list)  # filled by the store

    def warn(self, said: Iterable[str]) -> None:
        """Adds warnings up to a limit, since a Write may be used again and again."""
        self.warnings.extend(islice(said, max(0, _WARNINGS_MOST - len(self.warnings))))


BY_HUB = Write(manager="fairway-hub")  # for the hub's own objects, not on behalf of a user


PatchType = Literal["json", "merge", "strategic", "apply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change of an object: JSON patch, merge patch, strategic merge or server-side apply."""

    type: PatchType
    body: Any
    force: bool = False  # apply only: take fields from their owners


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How to delete: preconditions, grace period and what happens to dependents."""

    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    uid: str = ""
    version: str = ""
    grace_seconds: int | None = None


PLAIN_DELETION = Deletion()


class Watch(Protocol):
    """A stream of changes; closed by its reader, or ended by the store with Expired."""

    def __aiter__(self) -> AsyncIterator[WatchEvent]: ...

    async def batch(self) -> list[WatchEvent]:
        """All queued events, at least one; an empty list once the watch is closed."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """The durable state of a hub. Every call may raise an `api.errors.ApiError`."""

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored: ...

    async def list(
        self, kind: ResourceKey, selection: Selection = EVERYTHING, page: Page = WHOLE
    ) -> Listing: ...

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
    ) -> Watch: ...

    async def create(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str = "", write: Write
    ) -> Stored: ...

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        """Replaces an object, or one of its subresources (`status`)."""
        ...

    async def patch(
        self,
        kind: ResourceKey,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> tuple[Stored, bool]:
        """Changes an object; true when an apply created it."""
        ...

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write,
    ) -> tuple[Stored, bool]:
        """Deletes an object; false while finalizers, dependents or a grace period keep it."""
        ...
