"""Definitions of kinds on a real server: applied, and waited for until the server serves them."""

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
_FILLED_IN: JsonObject = {"conversion": {"strategy": "None"}}  # by the server, where we say nothing


async def define(
    store: KubernetesStore, definitions: Sequence[JsonObject], *, clock: Clock
) -> None:
    """Makes each definition what this version says, and returns once all are served.

    What the server has already is left alone: to take a definition, even the same one, it checks
    all of it and compiles its rules.
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
    """The definition as the server has it, if it does."""
    try:
        return (await store.get(DEFINITIONS, definition["metadata"]["name"])).object()
    except NotFound:
        return None


def _converted_as_before(definition: JsonObject, before: JsonObject | None) -> JsonObject:
    """With the webhook that the server asks already: the leader says where that is."""
    asked = (before or {"spec": {}})["spec"].get("conversion") or {}
    if "conversion" not in definition["spec"] or asked.get("strategy") != "Webhook":
        return definition
    return {**definition, "spec": {**definition["spec"], "conversion": asked}}


async def await_definitions(
    store: KubernetesStore, definitions: Sequence[JsonObject], *, clock: Clock
) -> None:
    """Returns once the server serves all kinds that are defined."""
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
    """Why a definition is not served yet; empty where it is."""
    status = definition.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    named = conditions.get("NamesAccepted", {})
    return str(named.get("message") or "it has not looked at it yet")
