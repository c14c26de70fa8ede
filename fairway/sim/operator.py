"""The operator: backs the hub up, and sets it back to a backup, as the guide says.

The hub is stopped, its data replaced, and the hub started again; agents are left alone. Some time
later users notice that the hub has forgotten what they asked for since the backup, and ask again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairway.api.names import work_name
from fairway.sim.checks import CheckedWorkload, Checks, Known
from fairway.sim.database import Copy, Database
from fairway.sim.fleet import NAMESPACE, Wish
from fairway.sim.time import Time
from fairway.sim.truth import Truth
from fairway.sim.users import Users

_STOPPED_SECONDS_MOST = 5.0
_UNNOTICED_SECONDS_MOST = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The data of the hub, what was known of it, and what users had asked for."""

    copy: Copy
    known: Known
    wishes: Mapping[str, Wish]


class Operator:
    """Whoever looks after the data of the hub."""

    def __init__(
        self,
        database: Database,
        users: Users,
        checks: Checks,
        truth: Truth,
        *,
        time: Time,
        chance: random.Random,
    ) -> None:
        self._database = database
        self._users = users
        self._checks = checks
        self._truth = truth
        self._time = time
        self._chance = chance
        users.on_resubmit = truth.resubmit

    async def back_up(self) -> Backup:
        async with self._users.acting:
            known, wishes = self._checks.copy(), self._users.remember()
            # The moment of the copy is now; the hub goes on while the copy is written.
            copy = await self._database.copy()
            return Backup(copy=copy, known=known, wishes=wishes)

    async def set_back(
        self, backup: Backup, *, stop_hub: Callable[[], None], start_hub: Callable[[], None]
    ) -> None:
        """Sets the hub back to a backup, and lets users ask again."""
        async with self._users.acting:
            await self._database.stop()
            await self._time.sleep(self._chance.uniform(0, _STOPPED_SECONDS_MOST))
            stop_hub()
            workloads = self._checks.seen
            self._database.restore(backup.copy)
            self._checks.restore(backup.known)
            self._truth.restore(_succeeded(workloads))
            start_hub()
            await self._time.sleep(self._chance.uniform(0, _UNNOTICED_SECONDS_MOST))
            phases = {name: workload.status.phase for name, workload in workloads.items()}
            await self._users.ask_again(backup.wishes, phases)


def _succeeded(workloads: Mapping[str, CheckedWorkload]) -> Mapping[str, str]:
    """The uids of workloads that have succeeded, by their work."""
    return {
        work_name(NAMESPACE, name): workload.metadata.uid
        for name, workload in workloads.items()
        if workload.status.phase == "Succeeded"
    }
