"""A process that looks after a local cluster until it is killed, or kills itself at some point.

    python -m tests.agent.local.hub FOLDER WORK.json POINT

Says `applied` once the work is applied. POINT is a key of `POINTS`: where it ends itself as by
`kill -9`; `nowhere` leaves that to whoever started it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairway.agent.drivers.local import pod_keeper
from fairway.agent.drivers.local.pods import LocalPod
from fairway.api.codec import decode
from fairway.api.work import Work
from tests.agent.local.machines import QUICK, LocalRig


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _before_the_plan() -> None:
    pod_keeper.volumes.make = lambda _plans: die()


def _before_the_start() -> None:
    LocalPod.start = lambda _pod: die()  # type: ignore[method-assign]


def _after_the_start() -> None:
    start: Callable[[LocalPod], Any] = LocalPod.start

    def starts_and_dies(pod: LocalPod) -> None:
        start(pod)
        die()

    LocalPod.start = starts_and_dies  # type: ignore[method-assign]


POINTS: dict[str, Callable[[], None]] = {
    "nowhere": lambda: None,
    "before the plan": _before_the_plan,
    "before the start": _before_the_start,
    "after the start": _after_the_start,
}


async def main() -> None:
    folder, work, point = sys.argv[1:]
    POINTS[point]()
    rig = LocalRig(Path(folder), {"cpu": "16", "memory": "8Gi"}, QUICK)
    await rig.driver.open()
    await rig.driver.apply(decode(Path(work).read_bytes(), Work))
    print("applied", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
