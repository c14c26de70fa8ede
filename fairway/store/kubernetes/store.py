"""The store interface over the verbs of a kube-apiserver; see the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from fairway.api.errors import BadRequest, Expired
from fairway.api.submission import HUB, SUBMITTED_BY, note_of
from fairway.kubeapi import KubeApi, SeenEvent
from fairway.schema.node import JsonObject
from fairway.store.interface import (
    EVERYTHING,
    PLAIN_DELETION,
    WHOLE,
    Deletion,
    Listing,
    Page,
    Patch,
    ResourceKey,
    Selection,
    Stored,
    WatchFrom,
    Write,
)
from fairway.store.keys import WORKLOADS
from fairway.store.kubernetes.joined_writes import Joining, is_joinable
from fairway.store.kubernetes.recent import Recent
from fairway.store.kubernetes.stamps import Stamps, is_stamped, with_notes, with_submitter
from fairway.store.kubernetes.watches import KubernetesWatch

_LISTS_MOST = 2  # attempts in pages, which may expire; the next one is not in pages


class KubernetesStore:
    """Durable objects on a kube-apiserver."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api
        self.stamps = Stamps()  # until the server is known to record who submits
        self.recent = Recent()
        self.joining = Joining()
        self.spared = 0  # writes that would have changed nothing
        self._watches: set[KubernetesWatch] = set()

    async def end_watches(self) -> None:
        for watch in list(self._watches):
            await watch.close()

    async def close(self) -> None:
        await self.end_watches()
        await self.api.close()

    # Reading.

    async def get(self, kind: ResourceKey, name: str, namespace: str = "") -> Stored:
        raw = await self.api.get(kind, name, namespace)
        return self.recent.see(kind, self.stamps.read(kind, raw))

    async def list(
        self, kind: ResourceKey, selection: Selection = EVERYTHING, page: Page = WHOLE
    ) -> Listing:
        if page.limit or page.continue_from or page.match == "Exact":
            list_page = await self.api.page(kind, selection, page, read=self._reader(kind))
            return Listing(
                items=[seen.value for seen in list_page.items],
                version=list_page.version,
                continue_from=list_page.continue_from,
                remaining=list_page.remaining,
            )
        for _ in range(_LISTS_MOST):
            try:
                return await self._whole(kind, selection, page)
            except Expired:
                continue
        list_page = await self.api.page(kind, selection, page, read=self._reader(kind))
        return Listing(items=[seen.value for seen in list_page.items], version=list_page.version)

    async def _whole(self, kind: ResourceKey, selection: Selection, page: Page) -> Listing:
        """A list in pages; only one page at a time is held in the server's form."""
        items: list[Stored] = []
        version = ""
        async for list_page in self.api.pages(kind, selection, page, read=self._reader(kind)):
            items.extend(seen.value for seen in list_page.items)
            version = list_page.version
        return Listing(items=items, version=version)

    async def watch(
        self,
        kind: ResourceKey,
        selection: Selection = EVERYTHING,
        start: WatchFrom = WatchFrom(),  # noqa: B008 - frozen
    ) -> KubernetesWatch:
        def see(event: SeenEvent[Stored]) -> None:
            if event.type == "DELETED":
                self.recent.forget(kind, event.head.namespace, event.head.name)
            elif event.value is not None:
                self.recent.see(kind, event.value, event.head)

        batches = self.api.watch(kind, selection, start, read=self._reader(kind))
        watch = KubernetesWatch(batches, see, on_close=self._watches.discard)
        await watch.open()
        self._watches.add(watch)
        return watch

    def _reader(self, kind: ResourceKey) -> Callable[[bytes], Stored]:
        return lambda raw: self.stamps.read(kind, raw)

    # Writing.

    async def create(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str = "", write: Write
    ) -> Stored:
        body = await self._name(kind, _with_notes(kind, body, write))
        raw = await self.api.create(kind, body, namespace=namespace, write=write)
        return self._keep(kind, raw, write)

    async def update(
        self,
        kind: ResourceKey,
        body: JsonObject,
        *,
        namespace: str = "",
        subresource: str = "",
        write: Write,
    ) -> Stored:
        known = self.recent.if_unchanged(kind, body, namespace=namespace, subresource=subresource)
        if known is not None:
            self.spared += 1
            return known
        if _is_of_user(kind, subresource, write):
            body = with_submitter(body, write)
        body = await self._name(kind, body)
        raw = await self.api.replace(
            kind, body, namespace=namespace, subresource=subresource, write=write
        )
        return self._keep(kind, raw, write)

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
        if _is_of_user(kind, subresource, write):
            patch = await self._noted(kind, name, patch, namespace=namespace, write=write)

        async def send(patch: Patch) -> tuple[Stored, bool]:
            raw, is_new = await self.api.patch(
                kind, name, patch, namespace=namespace, subresource=subresource, write=write
            )
            return self._keep(kind, raw, write), is_new

        if is_joinable(patch, subresource, write):
            key = (kind, namespace, name, write.user, write.manager)
            return await self.joining.send(key, patch, send)
        return await send(patch)

    async def delete(
        self,
        kind: ResourceKey,
        name: str,
        *,
        namespace: str = "",
        how: Deletion = PLAIN_DELETION,
        write: Write,
    ) -> tuple[Stored, bool]:
        raw, is_gone = await self.api.delete(kind, name, namespace=namespace, how=how, write=write)
        if not write.dry_run:
            self.recent.forget(kind, namespace, name)
        return self.stamps.read(kind, raw), is_gone

    async def _noted(
        self, kind: ResourceKey, name: str, patch: Patch, *, namespace: str, write: Write
    ) -> Patch:
        """A patch that says which user makes it; the server knows only the hub."""
        if patch.type == "apply":
            # An apply may create it. On an existing one, the server's policy keeps the annotations.
            return replace(patch, body=_with_notes(kind, patch.body, write))
        if patch.type != "json":
            is_map = isinstance(patch.body, Mapping)
            return replace(patch, body=with_submitter(patch.body, write)) if is_map else patch
        if not isinstance(patch.body, list):
            return patch
        body = msgspec.json.decode(await self.api.get(kind, name, namespace))
        path, note = "/metadata/annotations", note_of(write.user, write.groups)
        has_annotations = bool(body["metadata"].get("annotations"))
        first = [] if has_annotations else [{"op": "add", "path": path, "value": {}}]
        key = SUBMITTED_BY.replace("/", "~1")
        last = {"op": "add", "path": f"{path}/{key}", "value": note}
        return replace(patch, body=[*first, *patch.body, last])

    def _keep(self, kind: ResourceKey, raw: bytes, write: Write) -> Stored:
        stored = self.stamps.read(kind, raw)
        return stored if write.dry_run else self.recent.see(kind, stored)

    async def _name(self, kind: ResourceKey, body: JsonObject) -> JsonObject:
        """An object with its apiVersion and kind, which custom resources need."""
        if body.get("kind") and body.get("apiVersion"):
            return body
        catalogue = await self.api.discovery.catalogue()
        for served in catalogue.served:
            if (served.group, served.version, served.plural) == (
                kind.group,
                kind.version,
                kind.plural,
            ):
                return {"apiVersion": served.api_version, "kind": served.kind, **body}
        return body  # the server says what is wrong


def _with_notes(kind: ResourceKey, body: JsonObject, write: Write) -> JsonObject:
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if not isinstance(metadata, Mapping):
        raise BadRequest("metadata must be an object")
    return with_notes(kind, body, write)


def _is_of_user(kind: ResourceKey, subresource: str, write: Write) -> bool:
    """Whether a user makes a change that may name another queue.

    A server also takes the metadata of a native object from a write of its status.
    """
    parts = ("",) if kind == WORKLOADS else ("", "status")
    return write.user != HUB and subresource in parts and is_stamped(kind)
