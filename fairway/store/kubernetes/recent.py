"""A cache of the objects seen most recently.

An update that changes nothing costs a request, a check of every field and a place in the server's
queue. So an update of the newest version that we know is compared first. The texts are shared with
mirrors; their number is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from fairway.api.equality import same
from fairway.kubeapi.parse import Head, head_of
from fairway.schema.node import JsonObject
from fairway.store.interface import ResourceKey, Stored

ObjectKey = tuple[ResourceKey, str, str]  # kind, namespace, name

_MOST = 8_192
_SERVER_SETS = ("managedFields",)


class Recent:
    """The newest known texts; the least recently seen are evicted."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: OrderedDict[ObjectKey, tuple[str, Stored]] = OrderedDict()

    def see(self, kind: ResourceKey, stored: Stored, head: Head | None = None) -> Stored:
        """Caches an object, unless a later version of it is known."""
        head = head or head_of(stored.raw)
        key = (kind, head.namespace, head.name)
        known = self._known.get(key)
        if known is None or not _is_older(head.resource_version, known[0]):
            self._known[key] = (head.resource_version, stored)
            self._known.move_to_end(key)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return stored

    def forget(self, kind: ResourceKey, namespace: str, name: str) -> None:
        self._known.pop((kind, namespace, name), None)

    def if_unchanged(
        self, kind: ResourceKey, body: JsonObject, *, namespace: str, subresource: str
    ) -> Stored | None:
        """The object, if an update would not change it."""
        metadata = body.get("metadata") or {}
        known = self._known.get((kind, namespace, str(metadata.get("name"))))
        if known is None or known[0] != metadata.get("resourceVersion"):
            return None
        before = known[1].object()
        is_same = (
            same(before.get("status"), body.get("status"))
            if subresource == "status"
            else not subresource and same(_without_status(before), _without_status(body))
        )
        return known[1] if is_same else None


def _is_older(name: str, other: str) -> bool:
    """Whether a version is older; versions of one server are numbers that grow."""
    return name.isdecimal() and other.isdecimal() and int(name) < int(other)


def _without_status(body: JsonObject) -> dict[str, Any]:
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SETS}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
