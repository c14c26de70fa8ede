"""Paths and query parameters of the Kubernetes API."""

from __future__ import annotations

from urllib.parse import quote

from fairway.api.errors import BadRequest
from fairway.store.interface import Page, Patch, ResourceKey, Selection, WatchFrom, Write


def path_of(kind: ResourceKey, name: str = "", namespace: str = "", subresource: str = "") -> str:
    """The path of a collection, of an object in it, or of a subresource of that object.

    BadRequest if a name would be a step of the path: clients resolve such steps.
    """
    for part in (name, namespace):
        if part in (".", ".."):
            raise BadRequest(f"{part!r} is not a name")
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    tail = "".join(f"/{quote(other, safe='')}" for other in (name, subresource) if other)
    return f"{root}{inside}/{kind.plural}{tail}"


def list_query(selection: Selection, page: Page) -> dict[str, str]:
    return _without_empty(
        labelSelector=selection.labels,
        fieldSelector=selection.fields,
        limit=str(page.limit) if page.limit else "",
        **{"continue": page.continue_from},
        resourceVersion=page.version,
        resourceVersionMatch=page.match,
    )


def watch_query(selection: Selection, start: WatchFrom, seconds: int) -> dict[str, str]:
    sends = "" if start.initial_events is None else str(start.initial_events).lower()
    return _without_empty(
        watch="true",
        labelSelector=selection.labels,
        fieldSelector=selection.fields,
        resourceVersion=start.version,
        resourceVersionMatch="NotOlderThan" if sends else "",
        sendInitialEvents=sends,
        allowWatchBookmarks="true" if start.bookmarks else "",
        timeoutSeconds=str(seconds),
    )


def write_query(write: Write) -> dict[str, str]:
    return _without_empty(
        fieldManager=write.manager,
        fieldValidation=write.field_validation,
        dryRun="All" if write.dry_run else "",
    )


def patch_query(patch: Patch, write: Write) -> dict[str, str]:
    query = write_query(write)
    return {**query, "force": "true"} if patch.type == "apply" and patch.force else query


def _without_empty(**query: str) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}
