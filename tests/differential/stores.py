"""Runs the script of the comparison of stores on one store, and tells what came of each step."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

from fairway.api.errors import ApiError
from fairway.store.interface import ResourceKey, Selection, Store, Stored, WatchFrom, Write
from tests.differential import normal_form
from tests.differential.store_steps import SPACE, STEPS, Step

NAMESPACES = ResourceKey("", "v1", "namespaces")
PATIENCE_SECONDS = 20
# What came of one step, in normal form.
Outcome = dict[str, Any]


async def outcomes(store: Store) -> dict[str, Outcome]:
    """Does every step; the sentence leads to the outcome."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    await store.create(NAMESPACES, space, write=Write())
    watched = {step.kind for step in STEPS if step.call == "watch"}
    begin = {kind: (await store.list(kind, Selection(namespace=SPACE))).version for kind in watched}
    return {step.say: await _outcome(store, step, begin) for step in STEPS}


async def _outcome(store: Store, step: Step, begin: dict[ResourceKey, str]) -> Outcome:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await _called(store, step, begin)
    except ApiError as fault:
        return {"refused": type(fault).__name__, **_plain(fault.status())}
    except TimeoutError:
        return {"never": "answered"}
    return {key: _plain(value) for key, value in found.items()}


async def _called(store: Store, step: Step, begin: dict[ResourceKey, str]) -> dict[str, Any]:
    match step.call:
        case "create":
            assert step.body is not None
            body = deepcopy(step.body)
            made = await store.create(step.kind, body, namespace=step.where, write=step.write)
            return {"object": made.object(), "warnings": list(_taken(step.write))}
        case "get":
            return {"object": (await store.get(step.kind, step.name, step.where)).object()}
        case "list":
            return await _listed(store, step)
        case "update":
            return {"object": (await _updated(store, step)).object()}
        case "patch":
            assert step.patch is not None
            changed, is_new = await store.patch(
                step.kind, step.name, deepcopy(step.patch), namespace=step.where,
                subresource=step.subresource, write=step.write,
            )  # fmt: skip
            return {"object": changed.object(), "isNew": is_new}
        case "delete":
            gone, is_gone = await store.delete(
                step.kind, step.name, namespace=step.where, how=step.how, write=step.write
            )
            # What a server answers about an object that is no more is up to it.
            return {"isGone": is_gone, **({} if is_gone else {"object": gone.object()})}
        case "watch":
            return await _watched(store, step, begin[step.kind])


async def _updated(store: Store, step: Step) -> Stored:
    body = deepcopy(step.body)
    if step.over is not None:
        now = (await store.get(step.kind, step.name, step.where)).object()
        over = deepcopy(dict(step.over))
        metadata = {**now["metadata"], **over.pop("metadata", {})}
        body = {**now, **over, "metadata": metadata}
    assert body is not None
    return await store.update(
        step.kind, body, namespace=step.where, subresource=step.subresource, write=step.write
    )


def _selected(step: Step) -> Selection:
    chosen = step.selection
    return Selection(namespace=step.where, labels=chosen.labels, fields=chosen.fields)


async def _listed(store: Store, step: Step) -> dict[str, Any]:
    found = await store.list(step.kind, _selected(step), step.page)
    return {
        "names": [item.object()["metadata"]["name"] for item in found.items],
        "hasMore": bool(found.continue_from),
        "remaining": found.remaining,
    }


async def _watched(store: Store, step: Step, version: str) -> dict[str, Any]:
    watch = await store.watch(step.kind, _selected(step), WatchFrom(version=version))
    told: list[Any] = []
    try:
        while len(told) < step.events:
            told += [[item.type, item.stored.object()] for item in await watch.batch()]
    finally:
        await watch.close()
    return {"events": told[: step.events]}


def _taken(write: Write) -> list[str]:
    """The warnings of a call; the script's own writes are used again."""
    warnings = list(write.warnings)
    write.warnings.clear()
    return warnings


def _plain(given: Any) -> Any:
    return normal_form.value(_without_owners(given))


def _without_owners(given: Any) -> Any:
    """Who owns which field is not kept by every store in memory, and compared elsewhere."""
    if isinstance(given, list):
        return [_without_owners(item) for item in given]
    if isinstance(given, dict):
        kept = {key: value for key, value in given.items() if key != "managedFields"}
        return {key: _without_owners(value) for key, value in kept.items()}
    return given
