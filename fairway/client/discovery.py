"""Reads once what a server serves.

Newer servers list everything in two documents; older ones need a request for each group version.
The catalogue is kept until `forget`, which is called when a word is unknown: the definition of its
kind may be new.
"""

from __future__ import annotations

import asyncio

from fairway.api.errors import ApiError
from fairway.client.calls import Calls
from fairway.client.catalogue import Catalogue, Served, from_aggregated, from_resource_list
from fairway.client.errors import UnknownKind
from fairway.client.wire import DISCOVERY, Object, Request


class Discovery:
    """The catalogue of one server, read when first needed."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._catalogue: Catalogue | None = None
        self._lock = asyncio.Lock()

    async def catalogue(self) -> Catalogue:
        async with self._lock:
            if self._catalogue is None:
                self._catalogue = await self._ask()
            return self._catalogue

    def forget(self) -> None:
        self._catalogue = None

    async def resolve(self, word: str) -> Served:
        """The kind a word means; runs discovery again before it fails."""
        was_known = self._catalogue is not None
        try:
            return (await self.catalogue()).resolve(word)
        except UnknownKind:
            if not was_known:
                raise
        self.forget()
        return (await self.catalogue()).resolve(word)

    async def expand(self, word: str) -> list[Served]:
        """The kinds that a word or a category means."""
        return (await self.catalogue()).expand(word)

    async def of(self, obj: Object) -> Served:
        """The kind that an object declares; runs discovery again before it fails."""
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        was_known = self._catalogue is not None
        try:
            return (await self.catalogue()).of(api_version, kind)
        except UnknownKind:
            if not was_known:
                raise
        self.forget()
        return (await self.catalogue()).of(api_version, kind)

    async def _ask(self) -> Catalogue:
        core, groups = await asyncio.gather(
            self._calls.json(Request(method="GET", path="/api", accept=DISCOVERY)),
            self._calls.json(Request(method="GET", path="/apis", accept=DISCOVERY)),
        )
        if "items" in core and "items" in groups:
            return from_aggregated([core, groups])
        pairs = [("", str(version)) for version in core.get("versions") or ()]
        for group in groups.get("groups") or ():
            first = group.get("preferredVersion", {}).get("version", "")
            versions = [str(version["version"]) for version in group.get("versions") or ()]
            ordered = [first, *(version for version in versions if version != first)]
            pairs += [(str(group["name"]), version) for version in ordered if version]
        lists = await asyncio.gather(*(self._one(group, version) for group, version in pairs))
        return Catalogue([served for list_ in lists for served in list_])

    async def _one(self, group: str, version: str) -> list[Served]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = await self._calls.json(Request(method="GET", path=path))
        except ApiError:
            # One broken group must not hide all the others.
            return []
        return from_resource_list(group, version, document)
