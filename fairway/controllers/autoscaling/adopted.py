"""HorizontalPodAutoscalers of an embedded hub, each honoured as a FleetAutoscaler.

No controller beside the hub acts on them there. Each owns a FleetAutoscaler that says the same, so
deleting the one deletes the other; the status of the FleetAutoscaler is written back. What a
FleetAutoscaler cannot do was refused when the HorizontalPodAutoscaler was written.
"""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256

import msgspec

from fairway.api.autoscaler import FleetAutoscaler
from fairway.api.equality import same
from fairway.api.errors import Invalid
from fairway.api.horizontal_autoscaler import GROUP, KIND, VERSION, fleet_spec, horizontal_status
from fairway.api.meta import JsonObject
from fairway.api.names import SOURCE_HASH, adopted_autoscaler_name
from fairway.api.serving import serving_api_version
from fairway.controllers.autoscaling.other_autoscalers import AUTOSCALERS_OF_PODS
from fairway.controllers.context import Context
from fairway.loops import Loop
from fairway.store.interface import Patch, Stored, Write
from fairway.store.keys import AUTOSCALERS
from fairway.store.mirrors import Mirror, Name

_API_VERSION = f"{GROUP}/{VERSION}"
_TAKEN_SECONDS = 60.0  # before one whose FleetAutoscaler's name is taken is tried again
_TAKEN = "its FleetAutoscaler would be {}, which is there already and was not made for it"
_WRITE = Write(user="system:fairway", manager="fairway-adopted-autoscalers")

_log = logging.getLogger(__name__)


class AdoptedAutoscalers:
    """The controller of HorizontalPodAutoscalers."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._clock = context.clock
        self._notes = context.notes
        self._loop: Loop[Name] = Loop(
            "adopted autoscalers", self._reconcile, clock=context.clock, forgets=True
        )
        self._mirror = Mirror(context.store, AUTOSCALERS_OF_PODS, clock=context.clock)
        self._mirror.followers.append(lambda name, _: self._loop.mark(name))
        context.cache.mirror(AUTOSCALERS).followers.append(self._autoscaler_changed)

    async def run(self) -> None:
        """Honours each one when it or its FleetAutoscaler changes, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mirror.run())
            tasks.create_task(self._loop.run(list(self._mirror.names())))

    def _autoscaler_changed(self, name: Name, stored: Stored | None) -> None:
        """Marks the one whose FleetAutoscaler changed; one that was deleted is made again."""
        for other in self._mirror.names():
            if (other[0], adopted_autoscaler_name(other[1])) == name:
                self._loop.mark(other)

    async def _reconcile(self, name: Name) -> float | None:
        stored = self._mirror.get(name)
        if stored is None:
            return None  # its FleetAutoscaler is deleted with it
        body = {"apiVersion": _API_VERSION, "kind": KIND, **stored.object()}
        metadata = body["metadata"]
        if metadata.get("deletionTimestamp"):
            return None
        own = adopted_autoscaler_name(name[1])
        existing = self._cache.get(FleetAutoscaler, own, name[0])
        if existing is not None and not is_adopted(existing, uid=metadata["uid"]):
            await self._notes.warn(body, "NameTaken", _TAKEN.format(own))
            return self._clock.now() + _TAKEN_SECONDS
        await self._keep(body, own, existing)
        if existing is not None:
            await self._write_status(body, existing)
        return None

    async def _keep(self, body: JsonObject, name: str, existing: FleetAutoscaler | None) -> None:
        """Makes the FleetAutoscaler say what its owner says."""
        metadata, spec = body["metadata"], fleet_spec(body)
        digest = sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:16]
        if existing is not None and existing.metadata.annotations.get(SOURCE_HASH) == digest:
            return
        owner = {
            "apiVersion": _API_VERSION,
            "kind": KIND,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        made = {
            "apiVersion": serving_api_version(),
            "kind": "FleetAutoscaler",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "annotations": {SOURCE_HASH: digest},
                "ownerReferences": [owner],
            },
            "spec": spec,
        }
        patch = Patch(type="apply", body=made, force=True)
        try:
            await self._store.patch(
                AUTOSCALERS, name, patch, namespace=metadata["namespace"], write=_WRITE
            )
        except Invalid as fault:
            await self._notes.warn(body, "InvalidAutoscaler", str(fault))

    async def _write_status(self, body: JsonObject, autoscaler: FleetAutoscaler) -> None:
        status = horizontal_status(body, autoscaler.status)
        if not autoscaler.status.conditions or same(status, body.get("status")):
            return
        try:
            await self._store.update(
                AUTOSCALERS_OF_PODS,
                {**body, "status": status},
                namespace=body["metadata"]["namespace"],
                subresource="status",
                write=_WRITE,
            )
        except Invalid as fault:
            _log.warning("the status of %s was refused: %s", body["metadata"]["name"], fault)


def is_adopted(autoscaler: FleetAutoscaler, *, uid: str = "") -> bool:
    """Whether a FleetAutoscaler was made for a HorizontalPodAutoscaler, any or the one given."""
    return any(
        owner.kind == KIND and uid in ("", owner.uid)
        for owner in autoscaler.metadata.owner_references
    )
