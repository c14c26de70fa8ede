"""Identifies an object, whatever API version it is read in, and the resource of a kind."""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.meta import JsonObject
from fairway.client.catalogue import Served
from fairway.kinds.plain import name_of, namespace_of, text
from fairway.store.interface import ResourceKey


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectKey:
    """One object of a namespace."""

    group: str
    kind: str
    namespace: str
    name: str


def key_of(body: JsonObject) -> ObjectKey:
    """The key of a manifest or an object."""
    group, _, _ = text(body, "apiVersion").rpartition("/")
    return ObjectKey(
        group=group,
        kind=text(body, "kind"),
        namespace=namespace_of(body),
        name=name_of(body),
    )


def key_of_kind(served: Served) -> ResourceKey:
    """The resource of a kind, in the version that the cluster serves."""
    return ResourceKey(served.group, served.version, served.plural)
