"""The desired objects of works, and how each is written.

What already exists decides what may be done to it: an object of another work, or one that this
fleet did not make, is not taken over if it runs pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.keys import ObjectKey, key_of, key_of_kind
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.watches import Following
from fairway.agent.drivers.kubernetes.works import Kept
from fairway.agent.drivers.kubernetes.writes import Hands, Refused
from fairway.api.cluster import Permits
from fairway.api.errors import ApiError, Forbidden
from fairway.api.meta import JsonObject
from fairway.api.work import Manifest, Work
from fairway.client.catalogue import Served
from fairway.client.discovery import Discovery
from fairway.client.errors import UnknownKind
from fairway.kinds import decision, permitted
from fairway.kinds.interface import Kind
from fairway.kinds.permitted import FindKind
from fairway.kinds.plain import (
    annotation,
    child,
    copy_of,
    maps_at,
    name_of,
    namespace_of,
    number,
    text,
    with_value,
    with_value_of,
    without,
)
from fairway.kinds.pods import HOST_NAME_LABEL

_SECRETS = ("", "Secret")
_GRACE_SECONDS = 30  # of pods without a grace period
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """An object to be written."""

    position: int
    manifest: Manifest
    kind: Kind | None
    served: Served
    there: JsonObject | None  # as it is now
    owner: marks.Owner


class Making:
    """Makes the objects of works."""

    def __init__(
        self,
        *,
        cluster: str,
        permits: Permits,
        hands: Hands,
        discovery: Discovery,
        following: Following,
        picture: Picture,
        find_kind: FindKind,
    ) -> None:
        self._cluster = cluster
        self._permits = permits
        self._hands = hands
        self._discovery = discovery
        self._following = following
        self._picture = picture
        self._find_kind = find_kind

    def refusals(self, work: Work) -> dict[int, str]:
        """Why the cluster does not permit a work, by position of the manifests."""
        written = [
            (position, manifest.object)
            for position, manifest in enumerate(work.spec.manifests)
            if manifest.update != "ReadOnly"
        ]
        faults = permitted.faults_in([body for _, body in written], self._permits, self._find_kind)
        return {written[index][0]: "; ".join(several) for index, several in faults.items()}

    async def make(self, kept: Kept, work: Work, places: tuple[str, ...] = ()) -> dict[int, str]:
        """Makes all objects of a permitted work; returns what was refused, by position.

        If any is refused, nothing else is made. What runs is made last: it must not run as an
        account that the cluster has and the work may not use. `places` are the nodes that were held
        for its pods, which should run there.
        """
        faults: dict[int, str] = {}
        kept.looked_at, kept.refused = {}, set()
        planned = []
        for position in range(len(work.spec.manifests)):
            try:
                planned += await self._plan(kept, work, position)
            except Refused as refused:
                _note(kept, faults, position, refused)
        if faults:
            return faults
        for write in sorted(planned, key=lambda item: item.kind is not None):
            try:
                await self._make(write, work, places)
            except Refused as refused:
                _note(kept, faults, write.position, refused)
                if write.kind is None or not refused.may_pass:
                    break
        return faults

    async def kind_of(self, body: JsonObject) -> Served:
        """The kind of an object in this cluster; Refused if the cluster has no such kind."""
        try:
            resource = await self._discovery.of(body)
        except UnknownKind as fault:
            raise Refused(str(fault)) from fault
        if not resource.namespaced:
            raise Refused(f"kind: {resource.kind} belongs to the whole cluster")
        return resource

    async def _plan(self, kept: Kept, work: Work, position: int) -> list[_Write]:
        """What is to be written for a manifest; Refused if it must not be."""
        manifest = work.spec.manifests[position]
        wanted, kind = manifest.object, self._find_kind(manifest.object)
        if not name_of(wanted):
            raise Refused("metadata.name: an object needs a name")
        served = await self.kind_of(wanted)
        key = key_of(wanted)
        if manifest.update == "ReadOnly":
            await self._look_at(kept, position, served, key, work)
            return []
        if kind is not None and (wrong := kind.faults(wanted)):
            raise Refused("; ".join(wrong))
        await self._follow(served)
        there = self._picture.object(key)
        if there is None:
            there = await self._hands.get(key_of_kind(served), key.name, key.namespace, work)
        owner = self._owner(manifest, kind, there, work)
        if manifest.update == "CreateOnly" and there is not None:
            if not self._is_ours(there):
                kept.looked_at[position] = there
            return []
        return [
            _Write(
                position=position,
                manifest=manifest,
                kind=kind,
                served=served,
                there=there,
                owner=owner,
            )
        ]

    async def _make(self, write: _Write, work: Work, places: tuple[str, ...]) -> None:
        body = self._body(write.manifest, write.kind, write.there, work, places)
        body = marks.with_marks(body, write.owner, **{marks.POSITION: str(write.position)})
        key = key_of(write.manifest.object)
        await self._write(write.manifest, write.served, key, body, write.there, work)

    async def _look_at(
        self, kept: Kept, position: int, served: Served, key: ObjectKey, work: Work
    ) -> None:
        stored = await self._hands.get(key_of_kind(served), key.name, key.namespace, work)
        if stored is not None:
            kept.looked_at[position] = stored

    async def _follow(self, served: Served) -> None:
        """Watches a kind. Secrets are not watched: the agent would have to see those of all."""
        if (served.group, served.kind) == _SECRETS:
            return
        try:
            await self._following.follow(served)
        except Forbidden as fault:
            raise Refused(str(fault)) from fault

    def _is_ours(self, there: JsonObject) -> bool:
        own = text(there, "metadata", "labels", marks.CLUSTER)
        return own == marks.label(self._cluster)

    def _owner(
        self, manifest: Manifest, kind: Kind | None, there: JsonObject | None, work: Work
    ) -> marks.Owner:
        """The owner of an object; Refused if the object must not be touched."""
        name, attempt = work.metadata.name, work.spec.attempt
        deletion: str = manifest.deletion
        what = f"{text(manifest.object, 'kind')} {name_of(manifest.object)}"
        if there is not None and not self._is_ours(there):
            if kind is not None:
                raise Refused(f"{what} is there already, and was not made by this fleet")
            if permitted.is_account(there) and not self._may_use(name_of(there)):
                raise Refused(f"{what} is there already, and may have rights of its own")
            deletion = marks.FOUND  # it existed before, and stays
        elif there is not None and marks.label(marks.work_of(there)) != marks.label(name):
            is_taken = manifest.update == "ServerSideApply" and manifest.force
            if kind is not None or (manifest.update != "CreateOnly" and not is_taken):
                message = f"{what} belongs to the work {marks.work_of(there)}"
                raise Refused(message, may_pass=True)
            # Several works may need the same object; the first owns it until that work is removed.
            name, attempt = marks.work_of(there), marks.attempt_of(there)
        if annotation(there or {}, marks.DELETION) == marks.FOUND:
            deletion = marks.FOUND
        return marks.Owner(cluster=self._cluster, work=name, attempt=attempt, deletion=deletion)

    def _may_use(self, account: str) -> bool:
        return account == "default" or account in self._permits.service_accounts

    def _body(
        self,
        manifest: Manifest,
        kind: Kind | None,
        there: JsonObject | None,
        work: Work,
        places: tuple[str, ...],
    ) -> JsonObject:
        """The desired object, except the marks of its owner."""
        body = without(manifest.object, "status")
        body = with_value(body, ("metadata", "namespace"), namespace_of(body))
        if kind is not None:
            body = kind.release(body)
            owner = marks.Owner(
                cluster=self._cluster, work=work.metadata.name, attempt=work.spec.attempt
            )
            body = marks.marked_pods(kind, body, owner)
            body = _with_grace(kind, body, there, work.spec.stop.grace_seconds)
            held = annotation(there or {}, marks.PLACES)
            places = tuple(held.split(",")) if held else places
            if places:
                body = _with_places(kind, body, places)
        if there is not None:
            for pointer in manifest.ignored_fields:
                body = with_value_of(there, body, pointer)
        return body

    async def _write(
        self,
        manifest: Manifest,
        served: Served,
        key: ObjectKey,
        body: JsonObject,
        there: JsonObject | None,
        work: Work,
    ) -> None:
        kind, name, namespace = key_of_kind(served), key.name, key.namespace
        # An account is created, never taken over: one that came into being since may have rights.
        is_new_account = there is None and permitted.is_account(body)
        if manifest.update == "ServerSideApply" and not is_new_account:
            patched = await self._hands.patch(
                kind, name, body, namespace, work, type="apply", force=manifest.force
            )
        elif there is None:
            patched = await self._hands.create(kind, body, namespace, work)
        else:
            patched = await self._hands.patch(kind, name, body, namespace, work)
        self._picture.take_object(key, patched)

    async def hand_over(self, key: ObjectKey, body: JsonObject, to: Kept) -> None:
        """Hands an object over to another work that needs it too."""
        assert to.work is not None, "it lists the object"
        attempt = to.work.spec.attempt
        owner = marks.Owner(cluster=self._cluster, work=to.name, attempt=attempt)
        patch = marks.with_marks({}, owner)
        served = await self.kind_of(body)
        patched = await self._hands.patch(
            key_of_kind(served), key.name, patch, key.namespace, to.work
        )
        self._picture.take_object(key, patched)

    async def known_kinds(self) -> list[Served]:
        """The kinds of this cluster that works may consist of."""
        try:
            catalogue = await self._discovery.catalogue()
        except ApiError:
            self._discovery.forget()
            raise
        return kinds_for_works(catalogue.served, self._find_kind, self._permits)


def _note(kept: Kept, faults: dict[int, str], position: int, refused: Refused) -> None:
    faults[position] = str(refused)
    if not refused.may_pass:
        kept.refused.add(position)


def kinds_for_works(
    served: Iterable[Served], find_kind: FindKind, permits: Permits
) -> list[Served]:
    """Of the kinds that a cluster serves, those that works may consist of."""
    return [
        resource
        for resource in served
        if resource.namespaced
        and {"list", "watch", "patch"} <= set(resource.verbs)
        and (
            find_kind({"apiVersion": resource.api_version, "kind": resource.kind}) is not None
            or permitted.is_listed(resource.group, resource.kind, permits)
        )
    ]


def _with_grace(kind: Kind, body: JsonObject, there: JsonObject | None, seconds: int) -> JsonObject:
    """Gives the pods at least the grace period that their work grants them.

    An existing object keeps its grace period, since many kinds do not permit a change.
    """
    body = copy_of(body)
    present = kind.templates(there) if there is not None else {}
    for name, template in kind.templates(body).items():
        spec = child(template, "spec")
        own = number(spec, "terminationGracePeriodSeconds", default=_GRACE_SECONDS)
        granted = max(own, seconds)
        if name in present:
            granted = number(
                present[name], "spec", "terminationGracePeriodSeconds", default=granted
            )
        if granted != own and spec:
            spec["terminationGracePeriodSeconds"] = granted
    return body


def _with_places(kind: Kind, body: JsonObject, places: tuple[str, ...]) -> JsonObject:
    """Makes pods prefer the nodes that were held for them; others are allowed, if a node fails."""
    body = copy_of(body)
    test = {"key": HOST_NAME_LABEL, "operator": "In", "values": list(places)}
    term = {"matchExpressions": [test]}
    for template in kind.templates(body).values():
        affinity = decision.make_map(template, "spec", "affinity", "nodeAffinity")
        affinity[_PREFERRED] = [
            *maps_at(affinity, _PREFERRED),
            {"weight": 100, "preference": term},
        ]
    return with_value(body, ("metadata", "annotations", marks.PLACES), ",".join(places))
