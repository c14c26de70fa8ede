"""Conversion of a hub's objects on a kube-apiserver: the server asks the hub.

The leader tells the server the hub's address and which authority signed its certificate. Replicas
share one authority, in a Secret, so that the server trusts any of them. Our own parts read the
stored version, which needs no conversion; only the other version fails while no hub answers.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairway.api import crds
from fairway.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from fairway.api.kinds import KINDS
from fairway.api.meta import JsonObject
from fairway.api.names import AUTHORITY
from fairway.clock import Clock
from fairway.hub.on_kubernetes import NAMESPACE
from fairway.server.access.certificates import ServingFiles
from fairway.server.access.private_files import write_private
from fairway.store.interface import BY_HUB, Patch, Store
from fairway.store.keys import DEFINITIONS, SECRETS

_LOOK_SECONDS = 60.0
_TRIES_MOST = 5
_KEYS = ("ca.crt", "ca.key")

_log = logging.getLogger(__name__)


class Conversions:
    """Keeps definitions with several versions pointed at this hub, while it leads."""

    def __init__(self, *, store: Store, clock: Clock, client: JsonObject) -> None:
        self._store = store
        self._clock = clock
        self._client = client
        self._names = [kind.qualified for kind in KINDS if kind.further]

    async def run(self) -> None:
        while True:
            for name in self._names:
                try:
                    await self._point(name)
                except Forbidden as fault:
                    _log.warning("%s is served in one version only: %s", name, fault)
                    return
                except (ApiError, OSError) as fault:
                    _log.warning("the conversion of %s could not be set up: %s", name, fault)
            await self._clock.sleep(_LOOK_SECONDS)

    async def _point(self, name: str) -> None:
        try:
            result = (await self._store.get(DEFINITIONS, name)).object()
        except NotFound:
            return
        wanted = crds.conversion(self._client)
        if _says(result["spec"].get("conversion"), wanted):
            return
        # Fields of the other way of naming a hub must be removed.
        client = {"url": None, "service": None, "caBundle": None}
        client |= wanted["webhook"]["clientConfig"]
        webhook = {**wanted["webhook"], "clientConfig": client}
        body = {"spec": {"conversion": {**wanted, "webhook": webhook}}}
        await self._store.patch(DEFINITIONS, name, Patch(type="merge", body=body), write=BY_HUB)


def _says(value: Any, wanted: Any) -> bool:
    """Whether all wanted fields are there, whatever else a server filled in."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        ways = {"url", "service"} & value.keys()
        return ways <= wanted.keys() and all(_says(value.get(key), wanted[key]) for key in wanted)
    return bool(value == wanted)


def client_of(url: str, host_names: Iterable[str], authority: bytes | None) -> JsonObject:
    """How a server reaches the hub: by its Service if it has the name of one, else by URL."""
    bundle = {"caBundle": base64.b64encode(authority).decode()} if authority else {}
    for name in host_names:
        parts = name.split(".")
        if len(parts) == 3 and parts[2] == "svc":
            return {"service": {"name": parts[0], "namespace": parts[1]}, **bundle}
    return {"url": f"{url}{crds.CONVERSION_PATH}", **bundle}


async def with_shared_authority(
    store: Store, folder: Path, make: Callable[[], ServingFiles]
) -> ServingFiles:
    """Serving files under the authority that all replicas share; the first replica makes it."""
    try:
        for _ in range(_TRIES_MOST):
            secret = await _secret(store)
            known = _files_of(secret)
            if known is not None and known != _read(folder):
                for name, content in zip(_KEYS, known, strict=True):
                    write_private(folder / "tls" / name, content)
            files = make()
            own = _read(folder)
            if own is None or own == known or await _put(store, secret, own):
                return files
    except Forbidden as fault:
        _log.warning("the authority of this hub's certificate is its own alone: %s", fault)
    return make()


async def _secret(store: Store) -> JsonObject:
    try:
        return (await store.get(SECRETS, AUTHORITY, NAMESPACE)).object()
    except NotFound:
        metadata = {"name": AUTHORITY, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def _put(store: Store, secret: JsonObject, own: tuple[bytes, ...]) -> bool:
    """Stores an authority for all replicas; false: another replica was faster."""
    data = {name: base64.b64encode(value).decode() for name, value in zip(_KEYS, own, strict=True)}
    keep = store.update if "resourceVersion" in secret["metadata"] else store.create
    try:
        await keep(SECRETS, {**secret, "data": data}, namespace=NAMESPACE, write=BY_HUB)
    except (AlreadyExists, Conflict):
        return False
    return True


def _files_of(secret: JsonObject) -> tuple[bytes, ...] | None:
    data = secret.get("data") or {}
    try:
        files = tuple(base64.b64decode(data[name], validate=True) for name in _KEYS)
    except (KeyError, TypeError, binascii.Error):
        return None
    return files if all(files) else None


def _read(folder: Path) -> tuple[bytes, ...] | None:
    try:
        return tuple((folder / "tls" / name).read_bytes() for name in _KEYS)
    except FileNotFoundError:
        return None
