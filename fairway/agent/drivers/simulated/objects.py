"""The objects that a simulated cluster keeps, as an API server would.

Objects belong to the work that made them. The cluster serves the kinds listed for it, else the
built-in kinds and those that Fairway knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairway.api.equality import same
from fairway.api.meta import JsonObject
from fairway.api.work import Manifest
from fairway.kinds.interface import Kind
from fairway.kinds.plain import maps_at, name_of, namespace_of, text, with_value_of

FindKind = Callable[[JsonObject], Kind | None]
Key = tuple[str, str, str, str]

_BUILTIN_GROUPS = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)


class Refused(Exception):
    """The cluster rejects a manifest; unless it may pass, it would reject it again."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


@dataclass(slots=True, kw_only=True)
class Kept:
    """An object in the cluster, without its status."""

    body: JsonObject
    owner: str  # name of the work that made it; empty if it was left behind


def key_of(manifest: JsonObject) -> Key:
    return (
        text(manifest, "apiVersion"),
        text(manifest, "kind"),
        namespace_of(manifest),
        name_of(manifest),
    )


class Objects:
    """All objects of a cluster."""

    def __init__(
        self,
        find_kind: FindKind,
        served: Sequence[str] = (),
        refused_images: Sequence[str] = (),
    ) -> None:
        self.find_kind = find_kind
        self.served = frozenset(served)
        self.refused_images = frozenset(refused_images)
        self._kept: dict[Key, Kept] = {}
        self._uids = 0

    def get(self, key: Key) -> Kept | None:
        return self._kept.get(key)

    def check(self, manifest: Manifest, *, owner: str) -> None:
        """Raises Refused if an object cannot be made or updated."""
        if manifest.update == "ReadOnly":
            return
        wanted = self._released(manifest)
        self._check(wanted)
        key = key_of(wanted)
        kept = self._kept.get(key)
        if kept is None or kept.owner in ("", owner) or manifest.update == "CreateOnly":
            return
        if manifest.update != "ServerSideApply" or not manifest.force:
            message = f"{key[1]} {key[2]}/{key[3]} belongs to the work {kept.owner}"
            raise Refused(message, may_pass=True)

    def apply(self, manifest: Manifest, *, owner: str) -> JsonObject | None:
        """Makes or updates an object by its update strategy, after its check.

        Returns None for a read-only object that does not exist.
        """
        wanted = self._released(manifest)
        key = key_of(wanted)
        kept = self._kept.get(key)
        if manifest.update == "ReadOnly":
            return kept.body if kept else None
        if kept is None:
            kept = Kept(body=self._new(wanted), owner=owner)
            self._kept[key] = kept
            return kept.body
        kept.owner = kept.owner or owner
        if manifest.update != "CreateOnly":
            kept.body = _update(kept.body, wanted, manifest.ignored_fields)
        return kept.body

    def remove(self, manifest: Manifest, *, owner: str) -> None:
        """Removes an object of a work, or leaves it behind if it is to stay."""
        key = key_of(manifest.object)
        kept = self._kept.get(key)
        if kept is None or kept.owner != owner:
            return
        if manifest.deletion == "Orphan":
            kept.owner = ""
        else:
            del self._kept[key]

    def _released(self, manifest: Manifest) -> JsonObject:
        kind = self.find_kind(manifest.object)
        return manifest.object if kind is None else kind.release(manifest.object)

    def _check(self, wanted: JsonObject) -> None:
        api_version, name = text(wanted, "apiVersion"), text(wanted, "kind")
        group = api_version.rpartition("/")[0]
        kind = self.find_kind(wanted)
        is_served = (
            f"{api_version}/{name}" in self.served
            if self.served and group not in _BUILTIN_GROUPS
            else group in _BUILTIN_GROUPS or kind is not None
        )
        if not is_served or not name:
            raise Refused(f"the cluster serves no kind {name} of {api_version}")
        if not name_of(wanted):
            raise Refused("metadata.name: an object needs a name")
        faults = kind.faults(wanted) if kind is not None else []
        if faults:
            raise Refused("; ".join(faults))
        for template in kind.templates(wanted).values() if kind is not None else ():
            for container in maps_at(template, "spec", "containers"):
                if (image := text(container, "image")) in self.refused_images:
                    raise Refused(f'admission webhook "images" denied the request: {image}')

    def _new(self, wanted: JsonObject) -> JsonObject:
        self._uids += 1
        digest = hashlib.sha256(repr((key_of(wanted), self._uids)).encode()).hexdigest()
        metadata = {**wanted.get("metadata", {}), "uid": digest[:32], "generation": 1}
        return {**wanted, "metadata": metadata}


def _update(body: JsonObject, wanted: JsonObject, ignored: Sequence[str]) -> JsonObject:
    """The wanted object, with the identity of the existing object."""
    for pointer in ignored:
        wanted = with_value_of(body, wanted, pointer)
    identity = {key: body["metadata"][key] for key in ("uid", "generation")}
    after = {**wanted, "metadata": {**wanted.get("metadata", {}), **identity}}
    if same(after, body):
        return body
    after["metadata"]["generation"] += 1
    return after
