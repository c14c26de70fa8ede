"""The certificate authority that all replicas of a hub on Kubernetes share, in a Secret.

The API server trusts any replica by it, and replicas trust each other.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable
from pathlib import Path

from fairway.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from fairway.api.meta import JsonObject
from fairway.api.names import AUTHORITY
from fairway.hub.on_kubernetes import NAMESPACE
from fairway.server.access.certificates import ServingFiles
from fairway.server.access.private_files import write_private
from fairway.store.interface import BY_HUB, Store
from fairway.store.keys import SECRETS

_TRIES_MOST = 5
_KEYS = ("ca.crt", "ca.key")

_log = logging.getLogger(__name__)


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
