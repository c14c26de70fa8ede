"""Ends pods and objects.

An object is held before its pods are ended, so that its controller makes no others; an object that
cannot be held is deleted with its pods. Deletion is in the foreground: an object exists until
everything it made is gone, so nothing counts as gone too early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.keys import ObjectKey, key_of_kind
from fairway.agent.drivers.kubernetes.objects import Making
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.pods import OwnPod
from fairway.agent.drivers.kubernetes.works import Kept, Works
from fairway.agent.drivers.kubernetes.writes import Hands, Refused
from fairway.api.equality import same
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.kinds.interface import Kind
from fairway.kinds.permitted import FindKind
from fairway.kinds.plain import text
from fairway.schema.patches import difference
from fairway.store.interface import Deletion
from fairway.store.keys import PODS

_LIVE = ("Pending", "Bound", "Ready")
_OVER = ("Succeeded", "Failed")


class Ending:
    """Ends the pods and objects of works."""

    def __init__(
        self, *, hands: Hands, making: Making, picture: Picture, works: Works, find_kind: FindKind
    ) -> None:
        self._hands = hands
        self._making = making
        self._picture = picture
        self._works = works
        self._find_kind = find_kind

    async def hold(self, kept: Kept) -> None:
        """Makes sure that nothing creates pods for a work any more."""
        for key, body in self._works.running(kept):
            kind = self._find_kind(body)
            if kind is None or kind.read(body).phase in _OVER or _is_ending(body):
                continue
            held = _hold(kind, body)
            if held is None:
                await self.delete(key, body, kept.work)
            elif held:
                served = await self._making.kind_of(body)
                patched = await self._hands.patch(
                    key_of_kind(served), key.name, held, key.namespace, kept.work
                )
                self._picture.take_object(key, patched)

    async def end_pods(
        self,
        kept: Kept,
        *,
        grace_seconds: int | None,
        which: Callable[[OwnPod], bool] = lambda _: True,
    ) -> None:
        """Deletes live pods, with a grace period."""
        pods = [
            pod
            for pod in self._picture.pods.get(kept.label, {}).values()
            if pod.seen.phase in _LIVE and which(pod)
        ]
        await asyncio.gather(*(self._end_pod(pod, kept.work, grace_seconds) for pod in pods))

    async def clear_pods(self, kept: Kept) -> None:
        """Deletes ended pods that no controller deletes."""
        pods = [
            pod
            for pod in self._picture.pods.get(kept.label, {}).values()
            if pod.seen.phase in _OVER and not pod.is_controlled
        ]
        await asyncio.gather(*(self._end_pod(pod, kept.work, None) for pod in pods))

    async def remove_object(self, kept: Kept, key: ObjectKey, body: JsonObject) -> None:
        """Deletes an object, unless it is to stay or another work needs it."""
        other = self._works.another_that_needs(key, kept)
        if other is not None:
            await self._making.hand_over(key, body, other)
        elif marks.stays(body):
            served = await self._making.kind_of(body)
            patched = await self._hands.patch(
                key_of_kind(served), key.name, marks.without_marks(), key.namespace, kept.work
            )
            self._picture.take_object(key, patched)
        elif not _is_ending(body):
            await self.delete(key, body, kept.work)

    async def delete(self, key: ObjectKey, body: JsonObject, work: Work | None) -> None:
        served = await self._making.kind_of(body)
        how = Deletion(propagation="Foreground", uid=text(body, "metadata", "uid"))
        try:
            await self._hands.delete(key_of_kind(served), key.name, key.namespace, work, how)
        except Refused as refused:
            raise Refused(f"{key.kind} {key.name}: {refused}") from refused
        if key.kind == "Secret":
            self._picture.take_object(key, None)  # secrets are not watched

    async def _end_pod(self, pod: OwnPod, work: Work | None, grace_seconds: int | None) -> None:
        how = Deletion(uid=pod.uid, grace_seconds=grace_seconds)
        await self._hands.delete(PODS, pod.seen.name, pod.namespace, work, how)


def _is_ending(body: JsonObject) -> bool:
    return bool(text(body, "metadata", "deletionTimestamp"))


def _hold(kind: Kind, body: JsonObject) -> JsonObject | None:
    """The patch that holds an object: empty if it is held already, None if it cannot be held."""
    if kind.is_held(body):
        return {}
    after = kind.hold(body)
    # A pod that exists cannot be held.
    return None if same(after, body) or kind.name == "Pod" else difference(body, after)
