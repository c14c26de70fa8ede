"""Objects in the form the client accepts: whole, as a table, as rows, or metadata only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from fairway.api.errors import NotAcceptable
from fairway.clock import parse_timestamp
from fairway.resources.builtin.tables import human_age
from fairway.resources.resource import Column, Resource
from fairway.schema.node import JsonObject
from fairway.schema.paths import compile_jsonpath
from fairway.server.wire import rows
from fairway.server.wire.exchange import Request
from fairway.store.interface import Listing, Stored

_encode = msgspec.json.Encoder().encode
_META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Form:
    """How to show objects: `object`, `table`, `metadata` or `rows`, and the version of the form."""

    kind: str = "object"
    version: str = _META
    include: str = "Metadata"  # what a table's row has of its object: None, Metadata, Object


_WHOLE = Form()


def form_of(request: Request) -> Form:
    """The first form in the Accept header that is served."""
    accept = request.header("accept")
    if not accept or accept in ("*/*", "application/json"):
        return _WHOLE
    return _parse(accept, request.parameter("includeObject") or "Metadata")


@lru_cache(maxsize=512)
def _parse(accept: str, include: str) -> Form:
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        given = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if media not in ("application/json", "*/*", "application/*", "application/yaml"):
            continue
        wanted = given.get("as", "")
        if not wanted:
            return _WHOLE
        version = f"{given.get('g', 'meta.k8s.io')}/{given.get('v', 'v1')}"
        if (wanted, version) == (rows.KIND, rows.GROUP_VERSION):
            return Form("rows", version)
        if version not in (_META, "meta.k8s.io/v1beta1"):
            continue
        if wanted == "Table":
            return Form("table", version, include)
        if wanted.startswith("PartialObjectMetadata"):
            return Form("metadata", version)
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml"
    )


def one(stored: Stored, resource: Resource, form: Form, now: float) -> bytes:
    """One object in a form."""
    match form.kind:
        case "table":
            return _encode(_table([stored], resource, form, now, _meta_of(stored)))
        case "metadata":
            return _encode(_partial(stored.object(), form))
        case _:
            return stored.raw


def many(listing: Listing, resource: Resource, form: Form, now: float) -> bytes:
    """A list in a form. Whole objects are joined as stored, never decoded."""
    metadata = list_metadata(listing)
    if form.kind == "table":
        return _encode(_table(listing.items, resource, form, now, metadata))
    if form.kind == "metadata":
        items = b",".join(_encode(_partial(stored.object(), form)) for stored in listing.items)
        kind, api_version = "PartialObjectMetadataList", form.version
    else:
        items = b",".join(stored.raw for stored in listing.items)
        kind, api_version = resource.list_kind or resource.kind + "List", resource.api_version
    head = _encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', items, b"]}"))


def list_metadata(listing: Listing) -> JsonObject:
    """The metadata of a list: its resource version and continue token."""
    metadata: JsonObject = {"resourceVersion": listing.version}
    if listing.continue_from:
        metadata["continue"] = listing.continue_from
        if listing.remaining is not None:
            metadata["remainingItemCount"] = listing.remaining
    return metadata


def _meta_of(stored: Stored) -> JsonObject:
    return {"resourceVersion": stored.object()["metadata"].get("resourceVersion", "")}


def _partial(body: JsonObject, form: Form) -> JsonObject:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.version,
        "metadata": body["metadata"],
    }


def _table(
    items: Sequence[Stored], resource: Resource, form: Form, now: float, metadata: JsonObject
) -> JsonObject:
    return {
        "kind": "Table",
        "apiVersion": form.version,
        "metadata": metadata,
        "columnDefinitions": [_column(column) for column in resource.columns],
        "rows": [_row(stored.object(), resource, form, now) for stored in items],
    }


def _column(column: Column) -> JsonObject:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(body: JsonObject, resource: Resource, form: Form, now: float) -> JsonObject:
    cells = resource.cells or cells_by_path(resource.columns)
    row: JsonObject = {"cells": cells(body, now)}
    if form.include == "Object":
        row["object"] = body
    else:
        row["object"] = None if form.include == "None" else _partial(body, form)
    return row


@lru_cache(maxsize=1024)
def cells_by_path(columns: tuple[Column, ...]) -> Callable[[JsonObject, float], list[Any]]:
    """The cells of a custom kind, by its columns' JSONPaths."""
    readers = [(column, compile_jsonpath(column.path)) for column in columns]

    def cells(body: JsonObject, now: float) -> list[Any]:
        return [_cell(column, read(body), now) for column, read in readers]

    return cells


def _cell(column: Column, values: list[Any], now: float) -> Any:
    if not values or values[0] is None:
        return None
    value = values[0]
    match column.type:
        case "date":
            try:
                return human_age(now - parse_timestamp(str(value)))
            except ValueError:
                return "<invalid>"
        case "integer":
            return value if isinstance(value, int) else None
        case "number":
            return value if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            if len(values) > 1:
                return ",".join(_text(item) for item in values)
            return _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()
