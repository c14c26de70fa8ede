"""Volumes: the cluster where a volume claim is bound is noted on the claim at its first use.

A claim on the hub is only a request; the volume is made in the cluster that runs the first work
mounting it. From then on its workloads stay there, unless they say that it is portable.
"""

from __future__ import annotations

from fairway.api.errors import NotFound
from fairway.api.names import work_namespace
from fairway.api.work import Work
from fairway.controllers.adoption import is_adopted
from fairway.controllers.context import Context
from fairway.kinds.plain import text
from fairway.kinds.volumes import BOUND_IN, CLAIM
from fairway.loops import Loop
from fairway.store.interface import Patch, Write
from fairway.store.keys import VOLUME_CLAIMS, WORKS

_WRITE = Write(user="system:fairway", manager="fairway-volumes")
_LOOK_SECONDS = 5.0
_RAN = ("Running", "Succeeded", "Failed")
_TELLING = f'"{CLAIM}"'.encode()


class Volumes:
    """Notes where volumes are bound."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._cache = context.cache
        self._clock = context.clock
        self._roster = context.roster
        self._states = context.states
        self._loop: Loop[tuple[str, str]] = Loop(
            "volumes", self._reconcile, clock=context.clock, forgets=True
        )
        context.states.followers.append(self._state_changed)

    async def run(self) -> None:
        """Looks at every work that mounts a claim, then at changed works, until cancelled."""
        works = [
            self._cache.get(Work, name[1], name[0])
            for name, stored in self._cache.mirror(WORKS).items()
            if _TELLING in stored.raw
        ]
        await self._loop.run(
            [(work.spec.cluster, work.metadata.name) for work in works if work is not None]
        )

    def _state_changed(self, cluster: str, work: str) -> None:
        state = self._states.get(cluster, work)
        stored = self._cache.mirror(WORKS).get((work_namespace(cluster), work))
        if state is not None and state.phase in _RAN and stored and _TELLING in stored.raw:
            self._loop.mark((cluster, work))

    async def _reconcile(self, key: tuple[str, str]) -> float | None:
        cluster, name = key
        work = self._roster.work(cluster, name)
        state = self._states.get(cluster, name)
        if work is None or state is None or state.phase not in _RAN:
            return None
        if is_adopted(work):
            return self._clock.now() + _LOOK_SECONDS  # its manifests are the agent's own words
        for manifest in work.spec.manifests:
            if manifest.object.get("kind") == CLAIM:
                claim = text(manifest.object, "metadata", "name")
                await self._note(work.spec.workload.namespace, claim, cluster)
        return None

    async def _note(self, namespace: str, name: str, cluster: str) -> None:
        stored = self._cache.mirror(VOLUME_CLAIMS).get((namespace, name))
        if stored is None:
            return
        metadata = stored.object()["metadata"]
        if (metadata.get("annotations") or {}).get(BOUND_IN):
            return
        noted = {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {BOUND_IN: cluster},
        }
        patch = Patch(type="merge", body={"metadata": noted})
        try:
            await self._store.patch(VOLUME_CLAIMS, name, patch, namespace=namespace, write=_WRITE)
        except NotFound:
            return  # a conflict makes the loop look again
