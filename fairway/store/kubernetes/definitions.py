"""Applies definitions to a real server, and waits until the server serves their kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fairway.api.errors import NotFound, Unavailable
from fairway.clock import Clock
from fairway.schema.node import JsonObject
from fairway.store.interface import BY_HUB, Patch
from fairway.store.keys import DEFINITIONS
from fairway.store.kubernetes.store import KubernetesStore

_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 60.0
_FILLED_IN: JsonObject = {"conversion": {"strategy": "None"}}  # the server's default


async def define(
    store: KubernetesStore, definitions: Sequence[JsonObject], *, clock: Clock
) -> None:
    """Applies the definitions of this version, and returns once all are served.

    A definition that the server already has is skipped: to accept one, even the same, the server
    checks all of it and compiles its rules.
    """
    known = await asyncio.gather(*(_known(store, definition) for definition in definitions))
    unserved = []
    for definition, before in zip(definitions, known, strict=True):
        body = _converted_as_before(definition, before)
        if before is None or before["spec"] != {**_FILLED_IN, **body["spec"]}:
            patch = Patch(type="apply", body=body, force=True)
            await store.patch(DEFINITIONS, definition["metadata"]["name"], patch, write=BY_HUB)
        elif not _fault(before):
            continue
        unserved.append(definition)
    await await_definitions(store, unserved, clock=clock)


async def _known(store: KubernetesStore, definition: JsonObject) -> JsonObject | None:
    """The server's definition, if it has one."""
    try:
        return (await store.get(DEFINITIONS, definition["metadata"]["name"])).object()
    except NotFound:
        return None


def _converted_as_before(definition: JsonObject, before: JsonObject | None) -> JsonObject:
    """A definition with the server's current conversion webhook, whose address the leader sets."""
    asked = (before or {"spec": {}})["spec"].get("conversion") or {}
    if "conversion" not in definition["spec"] or asked.get("strategy") != "Webhook":
        return definition
    return {**definition, "spec": {**definition["spec"], "conversion": asked}}


async def await_definitions(
    store: KubernetesStore, definitions: Sequence[JsonObject], *, clock: Clock
) -> None:
    """Returns once the server serves the kinds of all definitions."""
    until = clock.now() + _PATIENCE_SECONDS
    for definition in definitions:
        name = definition["metadata"]["name"]
        while True:
            fault = _fault((await store.get(DEFINITIONS, name)).object())
            if not fault:
                break
            if clock.now() > until:
                raise Unavailable(f"the server does not serve {name}: {fault}")
            await clock.sleep(_LOOK_SECONDS)
    store.api.discovery.forget()


def _fault(definition: JsonObject) -> str:
    """Why a definition is not served yet; empty: it is served."""
    status = definition.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    named = conditions.get("NamesAccepted", {})
    return str(named.get("message") or "it has not looked at it yet")
