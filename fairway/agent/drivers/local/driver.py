"""The local driver, as an agent calls it: works become pods, pods become processes.

Everything here is quick and runs in one thread. What takes time (running, waiting, ending) is up to
the supervisors, and continues without a driver; they report on a pipe which pod changed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fairway.agent.drivers.interface import (
    CommandQuery,
    DriverFault,
    LogQuery,
    NodeSeen,
    NotPossible,
    Observation,
    PortQuery,
)
from fairway.agent.drivers.local import gpus
from fairway.agent.drivers.local.commands import container_of, has_ended, run_beside
from fairway.agent.drivers.local.isolation import Isolation
from fairway.agent.drivers.local.logs import Output
from fairway.agent.drivers.local.machine import look
from fairway.agent.drivers.local.observation import note_checkpoint, see_work
from fairway.agent.drivers.local.plans import Limits
from fairway.agent.drivers.local.pod_keeper import Keeping
from fairway.agent.drivers.local.pods import LocalPod
from fairway.agent.drivers.local.slots import Slots
from fairway.agent.drivers.local.works import FindKind, Kept, checked_name, folders_of_pods
from fairway.api.amounts import Quantity
from fairway.api.cluster import Cluster
from fairway.api.work import Stop, Work
from fairway.clock import Clock
from fairway.metrics.interface import PodUsage
from fairway.streams.requests import Exchange

# Why no pod may start now; empty if pods may.
WhyNot = Callable[[], str]

_FOLLOW_SECONDS = 0.1
_STRAY_SECONDS = 0.02
_TICK_SECONDS = 1.0
_START_SECONDS_MAX = 10.0


class LocalDriver:
    """The processes of one machine, by work; the driver keeps its state in a folder."""

    def __init__(
        self,
        cluster: Cluster,
        find_kind: FindKind,
        clock: Clock,
        *,
        folder: Path,
        isolation: Isolation | None,
        limits: Limits | None = None,
        why_not: WhyNot | None = None,
    ) -> None:
        """Without `isolation`, pods see what the hub sees.

        `why_not` says why no pod may start now; it is asked before any does.
        """
        settings = cluster.spec.local
        if settings is None:
            raise ValueError(f"the cluster {cluster.metadata.name} is not a local one")
        self._capacity: Mapping[str, Quantity] = settings.capacity
        limits = limits or Limits(grace_seconds=float(settings.stop_seconds))
        self._limits = replace(limits, isolation=isolation)
        self._why_not = why_not
        self._find_kind = find_kind
        self._clock = clock
        self._folder = folder.resolve()
        self._news = asyncio.Event()
        self._lock = -1
        self._wake = -1
        self._heard = b""
        self._watched: dict[int, LocalPod] = {}  # by the descriptor that signals its end
        self._timing: asyncio.Task[None] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._keeping: Keeping | None = None

    async def open(self) -> None:
        self._confirm()
        self._prepare_folder()
        try:
            await self._begin()
        except BaseException:
            await self.close()
            raise

    async def _begin(self) -> None:
        machine = look(self._capacity, gpus.find_gpus(), self._folder)
        self._keeping = Keeping(
            find_kind=self._find_kind,
            clock=self._clock,
            folder=self._folder,
            machine=machine,
            limits=self._limits,
            slots=Slots(machine.allocatable, machine.devices),
            started=self._attend,
            changed=self._news.set,
        )
        asyncio.get_running_loop().add_reader(self._wake, self._hear)
        for work in sorted((self._folder / "works").iterdir()):
            kept = Kept.load(work)
            if kept is None:
                await self._clear(work)
                continue
            self._keeping.works[kept.name] = kept
            await self._find_again(kept)
        for kept in list(self._keeping.works.values()):
            self._keeping.carry_on(kept)
        self._timing = asyncio.ensure_future(self._keep_time())
        self._news.set()

    async def close(self) -> None:
        timing = [self._timing] if self._timing is not None else []
        self._timing = None
        tasks = [*self._tasks.values(), *timing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        loop = asyncio.get_running_loop()
        for watched, pod in self._watched.items():
            loop.remove_reader(watched)
            pod.unwatch()
        self._watched.clear()
        if self._wake >= 0:
            loop.remove_reader(self._wake)
        for descriptor in (self._wake, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._wake = self._lock = -1
        self._keeping = None

    def silent_seconds(self) -> float:
        return 0.0

    async def observe(self) -> Observation:
        self._news.clear()
        keeping = self._keep()
        machine = keeping.machine
        node = NodeSeen(name=machine.name, allocatable=machine.allocatable, labels=machine.labels)
        now = self._clock.now()
        works = {
            name: see_work(work, self._find_kind, node=machine.name, now=now)
            for name, work in keeping.works.items()
        }
        return Observation(nodes=(node,), works=works, version=os.uname().release)

    async def wait_for_change(self) -> None:
        await self._news.wait()

    async def apply(self, work: Work) -> None:
        checked_name(work.metadata.name)
        self._confirm()
        self._keep().apply(work)

    def _confirm(self) -> None:
        """DriverFault if no pod may start here now."""
        why_not = self._why_not() if self._why_not is not None else ""
        if why_not:
            raise DriverFault(why_not)

    async def stop(self, name: str, how: Stop) -> None:
        number = signal.Signals.__members__.get(how.signal or "SIGTERM")
        if number is None:
            raise DriverFault(f"{how.signal!r} is not the name of a signal")
        self._keep().stop(name, number, float(how.grace_seconds))

    async def remove(self, name: str) -> None:
        self._keep().remove(name)

    async def release(self, nodes: Sequence[str]) -> None:
        """Does nothing: the only node is this machine, which stays."""

    async def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        pod = self._pod(query.work, query.pod)
        container = str(container_of(pod, query.container)["name"])
        output = Output(pod.folder, container, is_previous=query.is_previous)
        try:
            yield b""
            for part in output.lines(since=query.since, tail_lines=query.tail_lines):
                yield part
            while query.follow and not query.is_previous:
                is_over = has_ended(pod, container)  # checked first, so that all output is read
                more = output.more()
                for part in more or ():
                    yield part
                if more is None or is_over:
                    return
                await self._clock.sleep(_FOLLOW_SECONDS)
        finally:
            output.close()

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        pod = self._pod(query.work, query.pod)
        container = container_of(pod, query.container)
        return await run_beside(pod, container, query, exchange, self._clock)

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        # A user who may reach a port of one pod would reach any port of the hub's machine.
        raise NotPossible(
            "pods of a local cluster share the ports of the hub's machine: use those directly"
        )

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        raise NotPossible("what pods of a local cluster use is not measured")

    async def _keep_time(self) -> None:
        """Triggers what happens by the clock alone."""
        while True:
            await self._clock.sleep(_TICK_SECONDS)
            self._keep().tick()

    # Supervisors

    def _attend(self, pod: LocalPod) -> None:
        """Watches for the end of a supervisor that was started or found."""
        watched = pod.watch()
        if watched < 0:
            self._bury(pod)
            return
        self._watched[watched] = pod
        if pod.is_ending:
            pod.ask_to_end()  # an earlier driver may have been killed before it did so
        asyncio.get_running_loop().add_reader(watched, self._end, pod)

    def _hear(self) -> None:
        """Reads from the pipe which pods changed."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._wake, 65536):
                self._heard += chunk
        *keys, self._heard = self._heard.split(b"\n")
        keeping = self._keep()
        pods = {pod.key: pod for pod in keeping.all_pods()}
        for key in dict.fromkeys(keys):
            pod = pods.get(key.decode(errors="replace"))
            if pod is not None and pod.look():
                keeping.pod_changed(pod)

    def _end(self, pod: LocalPod) -> None:
        """Handles the end of a supervisor; if it left no final state, its pod is lost."""
        del self._watched[pod.watched]
        asyncio.get_running_loop().remove_reader(pod.watched)
        pod.unwatch()
        pod.reap()
        pod.look()
        if pod.is_over:
            self._keep().pod_changed(pod)
        elif pod.is_supervised():
            # It gave way to a supervisor that an earlier driver started just before it was killed.
            self._look_into(pod, self._meet)
        else:
            self._bury(pod)

    def _bury(self, pod: LocalPod) -> None:
        self._look_into(pod, self._end_strays)

    def _look_into(self, pod: LocalPod, how: Callable[[LocalPod], Awaitable[None]]) -> None:
        """Runs a task in the background, one at a time for each pod."""
        before = self._tasks.get(pod.key)

        async def after() -> None:
            if before is not None:
                await before
            await how(pod)

        self._tasks[pod.key] = mine = asyncio.ensure_future(after())
        mine.add_done_callback(lambda _: self._forget_task(pod.key, mine))

    def _forget_task(self, key: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled() and task.exception() is not None:
            task.get_loop().call_exception_handler(
                {"message": "a pod could not be looked into", "exception": task.exception()}
            )

    async def _end_strays(self, pod: LocalPod) -> None:
        """Kills what is left of a pod; only then is the pod lost."""
        await self._end_all_strays(pod)
        pod.look()
        if not pod.is_over:
            message = "its supervisor ended without saying what became of it"
            pod.conclude(self._clock.now(), reason="Lost", message=message)
        self._keep().pod_changed(pod)

    async def _end_all_strays(self, pod: LocalPod) -> None:
        """Kills what is left of a pod until nothing is; what cannot be killed is tried less."""
        pause = _STRAY_SECONDS
        while not pod.end_strays():
            await self._clock.sleep(pause)
            pause = min(pause * 1.2, _TICK_SECONDS)

    async def _find_again(self, kept: Kept) -> None:
        """Loads the pods that an earlier driver left, with their supervisors."""
        keeping = self._keep()
        for attempt, _, folder in folders_of_pods(kept.folder):
            pod = LocalPod.load(folder)
            if pod is None:
                shutil.rmtree(folder)  # its plan was never complete, hence never started
                continue
            if attempt == kept.attempt:
                note_checkpoint(kept, pod)
            if pod.is_over and (pod.is_ending or attempt != kept.attempt):
                keeping.forget(kept, pod)
                continue
            keeping.adopt(kept, pod)
            if not pod.is_over and not pod.is_placeholder:
                await self._meet(pod)

    async def _clear(self, work: Path) -> None:
        """Clears what a crash of the machine left of a work; nothing of it may run unseen."""
        for _, _, folder in folders_of_pods(work):
            pod = LocalPod.load(folder)
            if pod is not None:
                await self._end_all_strays(pod)
        shutil.rmtree(work)

    async def _meet(self, pod: LocalPod) -> None:
        keeping = self._keep()
        deadline = self._clock.now() + _START_SECONDS_MAX
        while pod.is_supervised() and not pod.state and self._clock.now() < deadline:
            await self._clock.sleep(_STRAY_SECONDS)  # it has only just started
            pod.look()
        if pod.is_over:
            keeping.pod_changed(pod)
        elif pod.is_supervised():
            self._attend(pod)
        elif not pod.state and keeping.may_start(pod):
            # The driver was killed between the plan and the start; a second start does no harm.
            pod.start()
            self._attend(pod)
        else:
            self._bury(pod)

    def _pod(self, work: str, wanted: str) -> LocalPod:
        keeping = self._keep()
        kept = keeping.works.get(work)
        if kept is None:
            raise DriverFault(f"there is no work {work}")
        listed = [*kept.waiting, *(pod.name for pod in kept.pods.values())]
        places = list(folders_of_pods(kept.folder))
        known = [place for place in places if wanted in ("", place[2].name)]
        if not known:
            state = "has not started yet" if wanted in listed else "is not known"
            raise DriverFault(f"the pod {wanted or 'of the work'} {state}")
        # The newest attempt; the first pod by name, if none is named; its newest folder.
        newest = [place for place in known if place[0] == known[-1][0]]
        name = wanted or min(place[2].name for place in newest)
        folder = [place[2] for place in newest if place[2].name == name][-1]
        pod = kept.pods.get(kept.key_of(folder))
        pod = pod or LocalPod.load(folder)
        if pod is None:
            raise DriverFault(f"the pod {name} has not started yet")
        return pod

    def _keep(self) -> Keeping:
        if self._keeping is None:
            raise DriverFault("the driver is not open")
        return self._keeping

    def _prepare_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        (self._folder / "works").mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(self._lock)
            self._lock = -1
            raise DriverFault(f"another driver looks after {self._folder}") from fault
        wake = self._folder / "wake"
        if not wake.exists():
            os.mkfifo(wake, 0o600)
        # Also open for writing, so that the pipe has no end of file while no supervisor writes.
        self._wake = os.open(wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
