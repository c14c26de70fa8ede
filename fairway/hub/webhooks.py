"""The webhooks of a hub on a kube-apiserver: the server asks the hub.

The server asks how an object reads in another version, and whether a write is right. The leader
tells it the hub's address, and which authority signed the hub's certificate. Any replica answers.

Our own parts need no answer: they read the stored version, and what could not be checked on write
is checked again when a workload is decided. While no hub answers, only the other version fails.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairway.api import crds
from fairway.api.errors import ApiError, Forbidden, NotFound
from fairway.api.kinds import KINDS
from fairway.api.meta import JsonObject
from fairway.clock import Clock
from fairway.store.interface import BY_HUB, Patch, Store
from fairway.store.keys import DEFINITIONS, WEBHOOKS
from fairway.store.kubernetes import checked_writes

_LOOK_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server finds the hub, and the name by which it knows the hub."""

    client: JsonObject  # of a webhook, without a path
    own_name: str
    admission_path: Callable[[], str]
    conversion_path: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Webhook:
    """One setting of the server that names the hub."""

    what: str
    otherwise: str  # what is so if the hub may not write it
    point: Callable[[], Awaitable[None]]


class Webhooks:
    """Keeps the webhooks of a server pointed at this hub, while it leads."""

    def __init__(self, *, store: Store, clock: Clock, address: Address) -> None:
        self._store = store
        self._clock = clock
        self._address = address
        self._webhooks = [
            *(self._conversion(kind.qualified) for kind in KINDS if kind.further),
            _Webhook(
                what="the admission webhook",
                otherwise="the server does not ask this hub about writes, so submitters, full"
                " queues, fleet policies and expressions are only checked later",
                point=self._point_admission,
            ),
        ]

    def _conversion(self, name: str) -> _Webhook:
        return _Webhook(
            what=f"the conversion of {name}",
            otherwise=f"{name} is served in one version only",
            point=partial(self._point_conversion, name),
        )

    async def run(self) -> None:
        webhooks = self._webhooks
        while webhooks := [webhook for webhook in webhooks if await self._keep(webhook)]:
            await self._clock.sleep(_LOOK_SECONDS)

    async def _keep(self, webhook: _Webhook) -> bool:
        """Points a webhook at the hub; false: the hub may not."""
        try:
            await webhook.point()
        except Forbidden as fault:
            _log.warning("%s: %s", webhook.otherwise, fault)
            return False
        except (ApiError, OSError) as fault:
            _log.warning("%s could not be set up: %s", webhook.what, fault)
        return True

    async def _point_conversion(self, name: str) -> None:
        try:
            result = (await self._store.get(DEFINITIONS, name)).object()
        except NotFound:
            return
        wanted = crds.conversion(self._address.client, self._address.conversion_path())
        if _says(result["spec"].get("conversion"), wanted):
            return
        # Fields of the other way of naming a hub must be removed.
        client = {"url": None, "service": None, "caBundle": None}
        client |= wanted["webhook"]["clientConfig"]
        webhook = {**wanted["webhook"], "clientConfig": client}
        body = {"spec": {"conversion": {**wanted, "webhook": webhook}}}
        await self._store.patch(DEFINITIONS, name, Patch(type="merge", body=body), write=BY_HUB)

    async def _point_admission(self) -> None:
        client = crds.at_path(self._address.client, self._address.admission_path())
        wanted = checked_writes.configuration(client, self._address.own_name)
        try:
            result = (await self._store.get(WEBHOOKS, checked_writes.NAME)).object()
        except NotFound:
            result = {}
        if _says(result.get("webhooks"), wanted["webhooks"]):
            return
        patch = Patch(type="apply", body=wanted, force=True)
        await self._store.patch(WEBHOOKS, checked_writes.NAME, patch, write=BY_HUB)


def _says(value: Any, wanted: Any) -> bool:
    """Whether all wanted fields are there, whatever else a server filled in."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        ways = {"url", "service"} & value.keys()
        return ways <= wanted.keys() and all(_says(value.get(key), wanted[key]) for key in wanted)
    if isinstance(value, list) and isinstance(wanted, list) and len(value) == len(wanted):
        return all(map(_says, value, wanted))
    return bool(value == wanted)


def client_of(url: str, host_names: Iterable[str], authority: bytes | None) -> JsonObject:
    """How a server reaches the hub: by its Service if it has the name of one, else by URL."""
    bundle = {"caBundle": base64.b64encode(authority).decode()} if authority else {}
    for name in host_names:
        parts = name.split(".")
        if len(parts) == 3 and parts[2] == "svc":
            return {"service": {"name": parts[0], "namespace": parts[1]}, **bundle}
    return {"url": url, **bundle}
