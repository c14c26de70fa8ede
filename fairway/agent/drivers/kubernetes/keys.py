"""Which object, whatever version of its kind it is told in, and where a kind is served."""

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
    """The object that a manifest, or an object itself, is."""
    group, _, _ = text(body, "apiVersion").rpartition("/")
    return ObjectKey(
        group=group,
        kind=text(body, "kind"),
        namespace=namespace_of(body),
        name=name_of(body),
    )


def key_of_kind(served: Served) -> ResourceKey:
    """The kind as it is asked for in the version that the cluster serves."""
    return ResourceKey(served.group, served.version, served.plural)
