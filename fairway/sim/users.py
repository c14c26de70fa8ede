"""Users: they submit, change their minds, and take capacity away, at random times.

They use the store directly, without faults: its answers are reliable. Their requests are kept as
wishes, which are used to check that nothing was lost. After the hub was set back to a backup they
ask again for what they had asked for since.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fairway.api.errors import AlreadyExists, ApiError, NotFound
from fairway.api.names import OVER
from fairway.clock import timestamp
from fairway.kinds.plain import copy_of
from fairway.sim import fleet
from fairway.sim.fleet import NAMESPACE, Wish
from fairway.sim.log import Log
from fairway.sim.time import Time
from fairway.store.interface import Patch, ResourceKey, Store, Write
from fairway.store.keys import (
    CLUSTERS,
    FLEET_POLICIES,
    FLEETS,
    JOBS,
    POLICIES,
    QUEUES,
    WORKLOADS,
)

_WRITE = Write(user="ada", manager="ada")
_SERVICES_MOST = 3


class Users:
    """All users of a fleet."""

    def __init__(
        self, live_store: Callable[[], Store], time: Time, log: Log, chance: random.Random
    ) -> None:
        self._live_store = live_store
        self._time = time
        self._log = log
        self._chance = chance
        self._names = 0
        self._pausing: list[asyncio.Task[None]] = []
        self._spoken_for: set[str] = set()  # names that a restored hub may know from before
        self.wishes: dict[str, Wish] = {}
        self.acting = asyncio.Lock()  # nobody acts while the hub is set back
        self.on_resubmit: Callable[[str], None] = lambda name: None
        self.nominal = {name: dict(of) for name, of in fleet.NOMINAL.items()}

    async def run(self, *, mean_seconds: float) -> None:
        """Performs random user actions until cancelled."""
        actions: dict[Callable[[], Awaitable[None]], int] = {
            self._submit: 40,
            self._submit_native: 4,
            self._delete: 5,
            self._cancel: 3,
            self._hold: 4,
            self._release: 6,
            self._scale: 4,
            self._prioritize: 4,
            self._hold_cluster: 1,
            self._release_cluster: 3,
            self._pause_fleet: 1,
            self._change_quota: 3,
            self._put_fleet_policy: 3,
            self._drop_fleet_policy: 2,
            self._taint_cluster: 1,
            self._untaint_cluster: 3,
            self._change_policy: 2,
            self._rebalance: 1,
        }
        while True:
            await self._time.sleep(self._chance.expovariate(1 / mean_seconds))
            act = self._chance.choices(list(actions), list(actions.values()))[0]
            async with self.acting:
                try:
                    await act()
                except ApiError as fault:
                    self._log.note("user", f"{act.__name__} was refused: {fault}")

    async def _submit(self) -> None:
        for _ in range(self._chance.choice((1, 1, 1, 1, 3))):
            name = self._name()
            wish, body = fleet.draw_workload(name, self._chance)
            is_many = sum(wish.mode == "Divided" for wish in self._live()) >= _SERVICES_MOST
            if wish.mode == "Divided" and is_many:
                continue
            await self._create(WORKLOADS, body, wish)

    def _name(self) -> str:
        """A new name, or occasionally that of a deleted workload."""
        gone = [
            wish.name
            for wish in self.wishes.values()
            if wish.is_deleted and not wish.is_native and wish.name not in self._spoken_for
        ]
        if gone and self._chance.random() < 0.1:
            return self._chance.choice(gone)
        self._names += 1
        return f"w{self._names}"

    async def _submit_native(self) -> None:
        self._names += 1
        wish, body = fleet.native(f"n{self._names}", self._chance)
        await self._create(JOBS, body, wish)

    async def _create(self, kind: ResourceKey, body: dict[str, Any], wish: Wish) -> None:
        # The wish is recorded before the store answers, because the checks see the write at once.
        before = self.wishes.get(wish.name)
        self.wishes[wish.name] = wish
        wish.body = copy_of(body)
        try:
            stored = await self._live_store().create(kind, body, namespace=NAMESPACE, write=_WRITE)
        except ApiError:
            if before is not None:
                self.wishes[wish.name] = before
            else:
                del self.wishes[wish.name]
            raise
        if not wish.is_native:
            wish.uid = stored.object()["metadata"]["uid"]

    def _live(self, *, native: bool = False) -> list[Wish]:
        return [
            wish
            for wish in self.wishes.values()
            if not wish.is_deleted and not wish.is_cancelled and (native or not wish.is_native)
        ]

    def _any(self, wishes: list[Wish]) -> Wish | None:
        """A random one of the most recent wishes."""
        return self._chance.choice(wishes[-12:]) if wishes else None

    async def _delete(self) -> None:
        wish = self._any(self._live(native=True))
        if wish is not None:
            wish.is_deleted = True
            await self._delete_object(wish)

    async def _delete_object(self, wish: Wish) -> None:
        kind, name = (JOBS, wish.name[4:]) if wish.is_native else (WORKLOADS, wish.name)
        await self._live_store().delete(kind, name, namespace=NAMESPACE, write=_WRITE)

    async def _cancel(self) -> None:
        wish = self._any(self._live())
        if wish is not None:
            await self._change(wish, {"cancelled": True})
            wish.is_cancelled = True

    async def _hold(self) -> None:
        wish = self._any(self._live())
        if wish is not None:
            wish.is_held = True
            await self._change(wish, {"hold": self._chance.choice(("Hold", "HoldAndDrain"))})

    async def _release(self) -> None:
        wish = self._any([wish for wish in self._live() if wish.is_held])
        if wish is not None:
            wish.is_held = False
            await self._change(wish, {"hold": "None"})

    async def _scale(self) -> None:
        wish = self._any([wish for wish in self._live() if wish.mode == "Divided"])
        if wish is not None:
            wish.pods = self._chance.randint(1, 5)
            await self._change(wish, {"replicas": wish.pods})

    async def _prioritize(self) -> None:
        wish = self._any(self._live())
        if wish is not None:
            await self._change(wish, {"priority": self._chance.choice((0, 5, 10, 20))})

    async def _change(self, wish: Wish, spec: dict[str, Any]) -> None:
        patch = Patch(type="merge", body={"spec": spec})
        try:
            await self._live_store().patch(
                WORKLOADS, wish.name, patch, namespace=NAMESPACE, write=_WRITE
            )
        except NotFound:
            if not wish.is_deleted:
                raise

    async def _hold_cluster(self) -> None:
        hold = self._chance.choice(("Hold", "HoldAndDrain"))
        await self._change_fleetwide(CLUSTERS, self._chance.choice(sorted(fleet.FLAVOR_OF)), hold)

    async def _release_cluster(self) -> None:
        name = self._chance.choice(sorted(fleet.FLAVOR_OF))
        await self._change_fleetwide(CLUSTERS, name, "None")

    async def _change_fleetwide(self, kind: ResourceKey, name: str, hold: str) -> None:
        patch = Patch(type="merge", body={"spec": {"hold": hold}})
        await self._live_store().patch(kind, name, patch, write=_WRITE)

    async def _taint_cluster(self) -> None:
        effect = self._chance.choice(("NoSchedule", "NoExecute"))
        taints = [{"key": "repairs", "effect": effect}]
        await self._set_taints(self._chance.choice(sorted(fleet.FLAVOR_OF)), taints)

    async def _untaint_cluster(self) -> None:
        await self._set_taints(self._chance.choice(sorted(fleet.FLAVOR_OF)), [])

    async def _set_taints(self, name: str, taints: list[dict[str, Any]]) -> None:
        patch = Patch(type="merge", body={"spec": {"taints": taints}})
        await self._live_store().patch(CLUSTERS, name, patch, write=_WRITE)

    async def _change_policy(self) -> None:
        await self._write_policy(fleet.draw_policy(self._chance))

    async def _write_policy(self, spec: dict[str, Any]) -> None:
        patch = Patch(type="merge", body={"spec": spec})
        namespace = fleet.policy()["metadata"]["namespace"]
        await self._live_store().patch(
            POLICIES, "services", patch, namespace=namespace, write=_WRITE
        )

    async def _rebalance(self) -> None:
        wish = self._any([wish for wish in self._live() if wish.mode == "Divided"])
        if wish is not None:
            await self._change(wish, {"rebalanceAt": timestamp(self._time.now())})

    async def _pause_fleet(self) -> None:
        await self._pause(is_paused=True)
        self._pausing.append(asyncio.ensure_future(self._end_pause(self._chance.uniform(3, 20))))

    async def _end_pause(self, seconds: float) -> None:
        await self._time.sleep(seconds)
        async with self.acting:
            await self._pause(is_paused=False)

    async def _pause(self, *, is_paused: bool) -> None:
        patch = Patch(type="merge", body={"spec": {"paused": is_paused}})
        await self._live_store().patch(FLEETS, "fleet", patch, write=_WRITE)

    async def _change_quota(self) -> None:
        name, flavor = self._chance.choice(fleet.QUEUES), self._chance.choice(("h100", "a100"))
        usual = fleet.NOMINAL[name][flavor]
        self.nominal[name][flavor] = self._chance.choice((usual, usual, usual // 2, usual + 4))
        await self._write_quota(name)

    async def _put_fleet_policy(self) -> None:
        """Some clusters are forbidden, or high priorities."""
        chance = self._chance
        names = chance.sample(sorted(fleet.FLAVOR_OF), max(1, len(fleet.FLAVOR_OF) - 1))
        rules = chance.choice(({"clusters": {"names": names}}, {"priority": {"max": 10}}))
        body = {
            "apiVersion": "governance.fairway.dev/v1alpha1",
            "kind": "FleetPolicy",
            "metadata": {"name": "rules"},
            "spec": {
                **rules,
                "enforcement": chance.choice(("Enforce", "Enforce", "Enforce", "Warn")),
                "onViolation": chance.choice(("Keep", "Stop")),
                "graceSeconds": chance.choice((0, 5, 20)),
            },
        }
        await self._drop_fleet_policy()
        await self._live_store().create(FLEET_POLICIES, body, write=_WRITE)

    async def _drop_fleet_policy(self) -> None:
        with suppress(NotFound):
            await self._live_store().delete(FLEET_POLICIES, "rules", write=_WRITE)

    async def _write_quota(self, name: str) -> None:
        spec = fleet.queue(name, self.nominal[name])["spec"]
        patch = Patch(type="merge", body={"spec": {"resourceGroups": spec["resourceGroups"]}})
        await self._live_store().patch(QUEUES, name, patch, write=_WRITE)

    # A hub that was set back.

    def remember(self) -> Mapping[str, Wish]:
        """What was asked for until now; names of that time are not used again."""
        self._spoken_for |= set(self.wishes)
        return {name: replace(wish) for name, wish in self.wishes.items()}

    async def ask_again(self, before: Mapping[str, Wish], phases: Mapping[str, str]) -> None:
        """Asks again for what the hub has forgotten since `before`.

        `phases` has all workloads as they were until then: what was over is not asked for again.
        """
        self._spoken_for |= set(self.wishes)
        await self._drop_fleet_policy()  # it may forbid what it allowed at the time
        is_paused = any(not task.done() for task in self._pausing)
        await self._pause(is_paused=is_paused)
        for name in fleet.QUEUES:
            await self._write_quota(name)
        for name, wish in list(self.wishes.items()):
            then = before.get(name)
            if then is None:
                if (name not in phases and wish.is_deleted) or phases.get(name) in OVER:
                    del self.wishes[name]
                    continue
                then = await self._resubmit(wish)
            try:
                await self._change_again(then, wish)
            except NotFound:
                self._log.note("user", f"{name} is gone already")

    async def _resubmit(self, wish: Wish) -> Wish:
        kind = JOBS if wish.is_native else WORKLOADS
        self.on_resubmit(wish.name)
        with suppress(AlreadyExists):
            stored = await self._live_store().create(
                kind, copy_of(wish.body), namespace=NAMESPACE, write=_WRITE
            )
            wish.uid = "" if wish.is_native else stored.object()["metadata"]["uid"]
        return replace(wish, is_deleted=False, is_cancelled=False, is_held=False, pods=-1)

    async def _change_again(self, then: Wish, wish: Wish) -> None:
        """Makes the changes again that a wish has had since."""
        if wish.is_deleted and not then.is_deleted:
            await self._delete_object(wish)
        elif wish.is_native or wish.is_deleted:
            return
        if wish.is_cancelled and not then.is_cancelled:
            await self._change(wish, {"cancelled": True})
        if wish.is_held != then.is_held:
            await self._change(wish, {"hold": "Hold" if wish.is_held else "None"})
        if wish.mode == "Divided" and wish.pods != then.pods:
            await self._change(wish, {"replicas": wish.pods})

    async def relent(self) -> None:
        """Restores quotas, clusters and holds, so that all workloads can end."""
        for task in self._pausing:
            await task
        await self._drop_fleet_policy()
        for name in fleet.QUEUES:
            self.nominal[name] = dict(fleet.NOMINAL[name])
            await self._write_quota(name)
        for name in sorted(fleet.FLAVOR_OF):
            await self._change_fleetwide(CLUSTERS, name, "None")
            await self._set_taints(name, [])
        anywhere = {"selector": None, "division": None, "spread": None}
        await self._write_policy(anywhere)
        for wish in [wish for wish in self._live() if wish.is_held]:
            wish.is_held = False
            await self._change(wish, {"hold": "None"})
