"""Brings what is missing on a server back from a backup.

An object that is there stays as it is, since it is newer. One that is missing is created again, and
its status is written. The server gives it another uid, so references of its dependents are changed,
and a workload says under which uid agents know it. An object whose owner is gone is left out: the
server would delete it at once, and a native object that comes back makes its workload again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairway.api.errors import AlreadyExists, NotFound, Unavailable
from fairway.api.kinds import KINDS
from fairway.api.meta import VERSION
from fairway.api.names import RESTORED_UID
from fairway.clock import Clock
from fairway.schema.node import JsonObject
from fairway.store.backup_lines import Item
from fairway.store.interface import BY_HUB, ResourceKey, Stored
from fairway.store.keys import LEASES, WORKLOADS, resource_of
from fairway.store.kubernetes.moments import NAMESPACE
from fairway.store.kubernetes.store import KubernetesStore

_TERM = "fairway-term"
_LEASE_SECONDS = 15
_MADE_BY_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_VERSIONS = {(kind.struct.api_group, kind.plural): kind.stored for kind in KINDS}
_WITH_STATUS = {(kind.struct.api_group, kind.plural) for kind in KINDS if kind.has_status}


@dataclass(slots=True)
class Outcome:
    """What became of the objects of a backup."""

    created: list[Item] = field(default_factory=list)
    there: list[Item] = field(default_factory=list)  # and left as they are
    left_out: list[Item] = field(default_factory=list)  # since their owners are gone


async def refuse_running(store: KubernetesStore, clock: Clock) -> None:
    """Raises Unavailable while a hub leads: it would decide on objects that are half restored."""

    async def lease() -> JsonObject:
        try:
            return (await store.get(LEASES, _TERM, NAMESPACE)).object()
        except NotFound:
            return {"metadata": {}, "spec": {}}

    before = await lease()
    holder = before["spec"].get("holderIdentity")
    if not holder:
        return
    for _ in range(before["spec"].get("leaseDurationSeconds") or _LEASE_SECONDS):
        await clock.sleep(1)
        if (await lease())["metadata"] != before["metadata"]:
            raise Unavailable(f"the hub {holder} is running on this server: stop it first")


async def restore(store: KubernetesStore, items: Iterable[Item]) -> Outcome:
    """Creates what is missing, owners before their dependents."""
    restoring = _Restoring(store)
    waiting = [(item, Stored(item.value).object()) for item in items if not item.is_file]
    while waiting:
        own = {body["metadata"]["uid"] for _, body in waiting}
        later: list[tuple[Item, JsonObject]] = []
        for item, body in waiting:
            owners = {owner["uid"] for owner in body["metadata"].get("ownerReferences") or ()}
            if owners & own:
                later.append((item, body))
            else:
                await restoring.restore(item, body)
        if len(later) == len(waiting):
            restoring.outcome.left_out += [item for item, _ in later]
            break
        waiting = later
    return restoring.outcome


class _Restoring:
    def __init__(self, store: KubernetesStore) -> None:
        self._store = store
        self._uids: dict[str, str] = {}  # from the uid in the backup to that on the server
        self.outcome = Outcome()

    async def restore(self, item: Item, body: JsonObject) -> None:
        kind = ResourceKey(item.group, _version_of(item), item.plural)
        uid = body["metadata"]["uid"]
        try:
            there = await self._store.get(kind, item.name, item.namespace)
        except NotFound:
            owners = await self._owners(body)
            if owners is None:
                self.outcome.left_out.append(item)
                return
            there = await self._create(kind, item, _as_new(body, owners, kind))
        else:
            self.outcome.there.append(item)
        self._uids[uid] = there.object()["metadata"]["uid"]

    async def _create(self, kind: ResourceKey, item: Item, body: JsonObject) -> Stored:
        try:
            made = await self._store.create(kind, body, namespace=item.namespace, write=BY_HUB)
        except AlreadyExists:
            self.outcome.there.append(item)
            return await self._store.get(kind, item.name, item.namespace)
        self.outcome.created.append(item)
        if (item.group, item.plural) in _WITH_STATUS and body.get("status"):
            now = {**made.object(), "status": body["status"]}
            return await self._store.update(
                kind, now, namespace=item.namespace, subresource="status", write=BY_HUB
            )
        return made

    async def _owners(self, body: JsonObject) -> list[JsonObject] | None:
        """The references to its owners as they are on the server; None if an owner is gone."""
        owners: list[JsonObject] = []
        for owner in body["metadata"].get("ownerReferences") or ():
            uid = self._uids.get(owner["uid"])
            if uid is None:
                kind = resource_of(owner["apiVersion"], owner["kind"])
                namespace = body["metadata"].get("namespace", "")
                try:
                    there = await self._store.get(kind, owner["name"], namespace)
                except NotFound:
                    return None
                uid = there.object()["metadata"]["uid"]
            owners.append({**owner, "uid": uid})
        return owners


def _as_new(body: JsonObject, owners: list[JsonObject], kind: ResourceKey) -> JsonObject:
    """The object as it is created again."""
    before = body["metadata"]
    metadata = {key: value for key, value in before.items() if key not in _MADE_BY_SERVER}
    metadata.pop("ownerReferences", None)
    if owners:
        metadata["ownerReferences"] = owners
    if kind == WORKLOADS:
        annotations = before.get("annotations") or {}
        metadata["annotations"] = {RESTORED_UID: before["uid"], **annotations}
    return {**body, "metadata": metadata}


def _version_of(item: Item) -> str:
    return _VERSIONS.get((item.group, item.plural), VERSION if item.group else "v1")
