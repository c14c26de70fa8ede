"""Plays the story on a hub as a user would: submits, scales, and takes a region down and up again.

It keeps no state: after a restart the hub continues with the next round, whose number is derived
from existing workloads. What a person changes or deletes meanwhile is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from fairway.api.errors import AlreadyExists, ApiError, NotFound
from fairway.api.meta import JsonObject
from fairway.clock import Clock
from fairway.demo.story import ROUND_SECONDS, STORY, Step, process, rollout, service, workload
from fairway.store.interface import Patch, Selection, Store, Write
from fairway.store.keys import CLUSTERS, ROLLOUTS, WORKLOADS

PROCESSES = "fairway.dev/demo=process"
_STORY = "fairway.dev/demo in (story, process)"
_WRITE = Write(user="demo", manager="fairway-demo")
_LEAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.1

_log = logging.getLogger(__name__)


class Player:
    """Plays rounds until cancelled."""

    def __init__(self, store: Store, clock: Clock, says: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._says = says

    async def run(self) -> None:
        number = await self._first_round()
        for step in STORY:
            # A previous hub may have been stopped in the middle of an outage.
            if step.down:
                await self._do(Step(at=0, up=step.down), number)
        while True:
            await self.play(number)
            number += 1

    async def play(self, number: int) -> None:
        """Plays one round."""
        began = self._clock.now()
        for step in STORY:
            await self._clock.sleep(max(0.0, began + step.at - self._clock.now()))
            if step.says:
                self._says(step.says.format(number=number))
            await self._do(step, number)
        await self._clock.sleep(max(0.0, began + ROUND_SECONDS - self._clock.now()))

    async def leave(self) -> None:
        """Ends the processes on this machine, which would otherwise outlive the hub."""
        began = self._clock.now()
        while self._clock.now() < began + _LEAVE_SECONDS:
            listing = await self._store.list(WORKLOADS, Selection(labels=PROCESSES))
            if not listing.items:
                return
            for stored in listing.items:
                metadata = stored.object()["metadata"]
                if "deletionTimestamp" not in metadata:
                    with suppress(NotFound):
                        await self._store.delete(
                            WORKLOADS,
                            metadata["name"],
                            namespace=metadata["namespace"],
                            write=_WRITE,
                        )
            await self._clock.sleep(_LOOK_SECONDS)

    async def _first_round(self) -> int:
        """The number after the highest existing one."""
        listing = await self._store.list(WORKLOADS, Selection(labels=_STORY))
        names = (str(stored.object()["metadata"]["name"]) for stored in listing.items)
        numbers = (name.rpartition("-")[2] for name in names)
        return 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)

    async def _do(self, step: Step, number: int) -> None:
        try:
            if step.submit is not None:
                await self._submit(workload(step.submit, number))
            if step.runs_here:
                await self._submit(process(number))
            if step.replicas is not None:
                await self._scale(step.replicas)
            if step.updates:
                await self._update(number + 1)
            for cluster, is_down in ((step.down, True), (step.up, False)):
                if cluster:
                    await self._set_outage(cluster, is_down=is_down)
        except ApiError as fault:
            _log.warning("the demo goes on without a step: %s", fault)

    async def _submit(self, body: JsonObject) -> None:
        namespace = str(body["metadata"]["namespace"])
        await self._store.create(WORKLOADS, body, namespace=namespace, write=_WRITE)

    async def _scale(self, replicas: int) -> None:
        body = service(replicas)
        try:
            await self._submit(body)
        except AlreadyExists:
            await self._change(body, {"replicas": replicas})
        with suppress(AlreadyExists):
            entry = rollout()
            namespace = str(entry["metadata"]["namespace"])
            await self._store.create(ROLLOUTS, entry, namespace=namespace, write=_WRITE)

    async def _update(self, version: int) -> None:
        """Changes the version of the service, and nothing else."""
        body = service(0, version=version)
        await self._change(body, {"template": body["spec"]["template"]})

    async def _change(self, body: JsonObject, spec: JsonObject) -> None:
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        patch = Patch(type="merge", body={"spec": spec})
        await self._store.patch(WORKLOADS, name, patch, namespace=namespace, write=_WRITE)

    async def _set_outage(self, cluster: str, *, is_down: bool) -> None:
        body = {"spec": {"simulated": {"faults": {"outage": is_down}}}}
        await self._store.patch(CLUSTERS, cluster, Patch(type="merge", body=body), write=_WRITE)
