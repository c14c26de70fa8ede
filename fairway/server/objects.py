"""Reading and writing objects: each verb of a resource is a function from request to response."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from fairway.api.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from fairway.clock import Clock
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.server.access.identity import Identity
from fairway.server.routes import Target
from fairway.server.scale import patched_scale, read_scale, write_scale
from fairway.server.wire import options, rendering, rows
from fairway.server.wire.exchange import Request, Response, json_response
from fairway.server.wire.watches import Show, Streams
from fairway.store.interface import (
    Deletion,
    Page,
    Patch,
    ResourceKey,
    Store,
    Stored,
    Write,
)

Body = TypeVar("Body", JsonObject, Patch)
# Gives the function that reduces an object to what the caller may see; None: everything.
Parts = Callable[["Call"], Awaitable["Show | None"]]
# Checks a write before it is made; raises to refuse it. The old object is None for a new one.
Gate = Callable[[Identity, Target, JsonObject, "JsonObject | None"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request on one resource, by one identity."""

    request: Request
    target: Target
    resource: Resource
    identity: Identity
    is_in_part: bool = False  # the caller may see only a part of each object

    @property
    def key(self) -> ResourceKey:
        return ResourceKey(self.resource.group, self.resource.version, self.resource.plural)

    @property
    def namespace(self) -> str:
        return self.target.namespace if self.resource.namespaced else ""


class Objects:
    """The verbs of resources over a store."""

    def __init__(
        self, store: Store, clock: Clock, streams: Streams, *, gate: Gate, parts: Parts
    ) -> None:
        self._store = store
        self._parts = parts
        self._clock = clock
        self._streams = streams
        self._gate = gate
        self._verbs: dict[str, Callable[[Call], Awaitable[Response]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    async def answer(self, call: Call) -> Response:
        target, resource = call.target, call.resource
        is_misplaced = target.is_below != resource.namespaced and (
            target.is_below or bool(target.name)
        )
        if (
            target.rest
            or is_misplaced
            or (target.subresource and not self._serves(resource, target.subresource))
        ):
            raise NotFound("the server could not find the requested resource", details={})
        if not _is_allowed(call):
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        # A response form that is not available is refused before anything is done.
        rendering.form_of(call.request)
        response = await self._verbs[target.verb](call)
        if resource.deprecation:
            response.warnings = [resource.deprecation, *response.warnings]
        return response

    def _serves(self, resource: Resource, subresource: str) -> bool:
        return (subresource == "status" and resource.has_status) or (
            subresource == "scale" and resource.scale is not None
        )

    async def _get(self, call: Call) -> Response:
        stored = await self._store.get(call.key, call.target.name, call.namespace)
        if call.target.subresource == "scale":
            return json_response(read_scale(call.resource, stored.object()))
        show = await self._parts(call)
        return self._show(call, show(stored) if show is not None else stored)

    async def _list(self, call: Call) -> Response:
        form = rendering.form_of(call.request)
        chosen = options.selection(call.request, call.namespace)
        listing = await self._store.list(call.key, chosen, options.page(call.request))
        show = await self._parts(call)
        if show is not None:
            listing = replace(listing, items=[show(stored) for stored in listing.items])
        if form.kind == "rows" and rows.has_rows(call.resource):
            return Response(body=await rows.many(listing, rendering.list_metadata(listing)))
        return Response(body=rendering.many(listing, call.resource, form, self._clock.now()))

    async def _watch(self, call: Call) -> Response:
        chosen = options.selection(call.request, call.namespace)
        if call.target.name:
            named = f"metadata.name={call.target.name}"
            fields = f"{chosen.fields},{named}" if chosen.fields else named
            chosen = replace(chosen, fields=fields)
        show = await self._parts(call)
        stream = await self._streams.open(
            call.key, call.resource, chosen, request=call.request, show=show
        )
        return Response(stream=stream)

    async def _create(self, call: Call) -> Response:
        write = options.write_options(call.request, call.identity)
        body = await _body(call, write)

        async def create(body: JsonObject, how: Write) -> Stored:
            return await self._store.create(call.key, body, namespace=call.namespace, write=how)

        await self._pass_gate(call, lambda how: _body(call, how), create, write)
        return self._show(call, await create(body, write), status=201, write=write)

    async def _update(self, call: Call) -> Response:
        write = options.write_options(call.request, call.identity)
        body = await _named_body(call, write)
        if call.target.subresource == "scale":
            return await self._scale(call, body, write)

        async def update(body: JsonObject, how: Write) -> Stored:
            return await self._store.update(
                call.key,
                body,
                namespace=call.namespace,
                subresource=call.target.subresource,
                write=how,
            )

        await self._pass_gate(call, lambda how: _named_body(call, how), update, write)
        return self._show(call, await update(body, write), write=write)

    async def _patch(self, call: Call) -> Response:
        write = options.write_options(call.request, call.identity)
        patch = await options.patch_options(call.request)
        if call.target.subresource == "scale":
            current = await self._store.get(call.key, call.target.name, call.namespace)
            body = read_scale(call.resource, current.object())
            return await self._scale(call, patched_scale(body, patch), write)

        async def change(patch: Patch, how: Write) -> tuple[Stored, bool]:
            return await self._store.patch(
                call.key,
                call.target.name,
                patch,
                namespace=call.namespace,
                subresource=call.target.subresource,
                write=how,
            )

        async def result(patch: Patch, how: Write) -> Stored:
            return (await change(patch, how))[0]

        await self._pass_gate(call, lambda _: options.patch_options(call.request), result, write)
        stored, is_new = await change(patch, write)
        return self._show(call, stored, status=201 if is_new else 200, write=write)

    async def _delete(self, call: Call) -> Response:
        how, dry_run = await options.deletion(call.request)
        write = Write(user=call.identity.user, dry_run=dry_run)
        stored, is_gone = await self._store.delete(
            call.key, call.target.name, namespace=call.namespace, how=how, write=write
        )
        if not is_gone:
            return self._show(call, stored)
        return json_response(_deleted(call, stored))

    async def _delete_collection(self, call: Call) -> Response:
        how, dry_run = await options.deletion(call.request)
        chosen = options.selection(call.request, call.namespace)
        listing = await self._store.list(call.key, chosen, Page())
        write = Write(user=call.identity.user, dry_run=dry_run)
        how = Deletion(propagation=how.propagation, grace_seconds=how.grace_seconds)

        async def delete(stored: Stored) -> None:
            metadata = stored.object()["metadata"]
            namespace = metadata.get("namespace", "")
            with contextlib.suppress(NotFound):  # another request deleted it first
                await self._store.delete(
                    call.key, metadata["name"], namespace=namespace, how=how, write=write
                )

        # Concurrently, since deletions that wait together share one fsync.
        await asyncio.gather(*map(delete, listing.items))
        form = rendering.form_of(call.request)
        return Response(body=rendering.many(listing, call.resource, form, self._clock.now()))

    async def _scale(self, call: Call, body: JsonObject, write: Write) -> Response:
        patch = write_scale(call.resource, body)
        stored, _ = await self._store.patch(
            call.key,
            call.target.name,
            patch,
            namespace=call.namespace,
            subresource="scale",
            write=write,
        )
        return json_response(read_scale(call.resource, stored.object()), warnings=write.warnings)

    async def _pass_gate(
        self,
        call: Call,
        read: Callable[[Write], Awaitable[Body]],
        make: Callable[[Body, Write], Awaitable[Stored]],
        write: Write,
    ) -> None:
        """Checks a write of an RBAC object by a dry run: the gate sees the whole, valid result.

        In the embedded store nothing else is decided between the dry run and the write, since
        neither waits before that, and both bodies are decoded by then; a kube-apiserver may accept
        another write in between.
        """
        if call.resource.group != "rbac.authorization.k8s.io":
            return
        trial = Write(
            user=write.user, manager=write.manager, dry_run=True, field_validation="Ignore"
        )
        would = await make(await read(trial), trial)
        self._gate(call.identity, call.target, would.object(), await self._present(call))

    async def _present(self, call: Call) -> JsonObject | None:
        try:
            return (await self._store.get(call.key, call.target.name, call.namespace)).object()
        except ApiError:
            return None

    def _show(
        self, call: Call, stored: Stored, *, status: int = 200, write: Write | None = None
    ) -> Response:
        form = rendering.form_of(call.request)
        body = rendering.one(stored, call.resource, form, self._clock.now())
        return Response(status=status, body=body, warnings=write.warnings if write else [])


def _is_allowed(call: Call) -> bool:
    """Whether a verb is allowed on this target."""
    verb = call.target.verb
    if call.target.subresource:
        return verb in ("get", "update", "patch")
    if verb not in call.resource.verbs:
        return False
    if call.resource.namespaced and not call.target.is_below and verb not in ("list", "watch"):
        return False
    return verb == "watch" or bool(call.target.name) == (
        verb in ("get", "update", "patch", "delete")
    )


async def _body(call: Call, write: Write) -> JsonObject:
    """The object in a request; a duplicate key is a warning, or is refused."""
    body = await options.object_body(call.request)
    if write.field_validation == "Ignore":
        return body
    paths = await options.duplicate_keys(call.request, body)
    doubled = [f'duplicate field "{path}"' for path in paths]
    if doubled and write.field_validation == "Strict":
        kind = call.resource.kind
        raise BadRequest(
            f'{kind} in version "{call.resource.version}" cannot be handled as a {kind}: strict '
            f"decoding error: {', '.join(doubled)}"
        )
    write.warnings.extend(doubled)
    return body


async def _named_body(call: Call, write: Write) -> JsonObject:
    """The object in a request, under the name in its path."""
    body = await _body(call, write)
    metadata = body.get("metadata")
    if metadata is None:
        metadata = body["metadata"] = {}
    if isinstance(metadata, dict):
        name = metadata.get("name") or call.target.name
        metadata["name"] = name
        if name != call.target.name:
            raise BadRequest(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({call.target.name})"
            )
    return body


def _deleted(call: Call, stored: Stored) -> JsonObject:
    details: JsonObject = {"name": call.target.name, "kind": call.resource.plural}
    if call.resource.group:
        details["group"] = call.resource.group
    details["uid"] = stored.object()["metadata"]["uid"]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
