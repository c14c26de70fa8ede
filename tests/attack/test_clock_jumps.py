"""A machine whose time jumps far: nothing is lost by the jump, and nothing waits after it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fairway.agent.drivers.simulated.driver import Worlds
from fairway.api import codec
from fairway.api.cluster import Cluster, ClusterStatus
from fairway.api.workload import Workload, WorkloadStatus
from fairway.app import prepare_store
from fairway.clock import Clock, SteadyClock, VirtualClock, timestamp
from fairway.controllers.moments import set_back
from fairway.kinds.registry import built_in
from fairway.loops import end, run_steadily
from fairway.resources.catalogue import standard_catalogue
from fairway.server.access import certificates
from fairway.store.embedded.memory import MemoryJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, Write
from fairway.store.keys import CLUSTERS
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_moves_run import FLAVOR, apply, cluster, policy, queue, service

YEARS = 10 * 365 * 86_400.0
EVENTS = ResourceKey("", "v1", "events")
TAINT = {"key": "maintenance", "effect": "NoExecute"}
BEARS = {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}

GANG = {
    "apiVersion": "fairway.dev/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "queue": "serving",
        "retry": {"limit": 3},
        "podSets": [{"name": "worker", "count": 2, "requests": {"nvidia.com/gpu": 1}}],
    },
}


# The clock of a process.


@pytest.mark.parametrize("seconds", [YEARS, 3600.0, -3600.0, -YEARS])
async def test_a_jump_and_its_return_are_told_and_not_followed(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    machine = VirtualClock()
    clock, began = SteadyClock(machine), machine.now()
    machine.step(seconds)
    assert clock.now() == began
    await machine.advance(60)
    assert clock.now() == began + 60
    machine.step(-seconds)
    assert clock.now() == began + 60
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith(f"the machine's time has jumped by {seconds:.0f} seconds")
    assert told[1:] == ["the machine's time is back"]


@pytest.mark.parametrize("seconds", [5.0, -5.0, -30.0])
def test_a_small_correction_is_followed_at_once(
    seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    machine = VirtualClock()
    clock = SteadyClock(machine)
    machine.step(seconds)
    assert clock.now() == machine.now()
    assert not caplog.records


@pytest.mark.parametrize("seconds", [YEARS, -YEARS])
async def test_a_process_starts_over_once_a_jump_lasts(seconds: float) -> None:
    machine = VirtualClock()
    starts: list[float] = []

    async def run(clock: Clock) -> None:
        starts.append(clock.now())
        await asyncio.get_running_loop().create_future()

    process = asyncio.ensure_future(run_steadily(run, machine))
    began = machine.now()
    await machine.advance(100)
    machine.step(seconds)
    await machine.advance(300)
    machine.step(-seconds)
    await machine.advance(1000)
    assert starts == [began]  # it was back in time
    machine.step(seconds)
    await machine.advance(700)
    assert len(starts) == 2
    assert 0 <= machine.now() - starts[1] < 120
    await end([process])


@pytest.mark.parametrize("seconds", [YEARS, -YEARS])
async def test_a_clock_is_sure_only_after_a_time_without_jumps(seconds: float) -> None:
    machine = VirtualClock()
    clock = SteadyClock(machine)
    await machine.advance(590)
    assert not clock.is_sure()
    machine.step(seconds)
    await machine.advance(300)
    assert not clock.is_sure()
    machine.step(-seconds)
    assert clock.is_sure()


async def test_a_process_that_fails_does_so_on_a_steady_clock_too() -> None:
    async def run(clock: Clock) -> None:
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        await run_steadily(run, VirtualClock())


# Stored moments.


def text(seconds: float) -> str:
    return timestamp(VirtualClock().now() + seconds)


@pytest.mark.parametrize(
    ("status", "mended"),
    [
        pytest.param(
            {"claim": {"decidedAt": text(YEARS), "deadline": text(YEARS + 300)}},
            {"claim": {"decidedAt": text(0), "deadline": text(300)}},
            id="a deadline stays as far from its decision",
        ),
        pytest.param(
            {
                "requeue": {"count": 1, "notBefore": text(3600 + 60)},
                "history": [{"endedAt": text(3600), "startedAt": text(3600 - 30)}],
            },
            {
                "requeue": {"count": 1, "notBefore": text(60)},
                "history": [{"endedAt": text(0), "startedAt": text(-30)}],
            },
            id="a back-off stays as long",
        ),
        pytest.param(
            {"requeue": {"count": 1, "avoidUntil": text(YEARS)}},
            {"requeue": {"count": 1, "avoidUntil": text(0)}},
            id="a wait of years ends",
        ),
        pytest.param(
            {"queuedAt": text(-50), "requeue": {"count": 1, "notBefore": text(7200)}},
            None,
            id="a wait is as it should be",
        ),
        pytest.param({"queuedAt": text(90)}, None, id="another replica's clock is a little ahead"),
        pytest.param(
            {"queuedAt": text(YEARS).removesuffix("Z")},
            {"queuedAt": text(0)},
            id="a moment without a zone",
        ),
    ],
)
def test_moments_that_lie_ahead_are_set_back(
    status: dict[str, Any], mended: dict[str, Any] | None
) -> None:
    given = decoded(status)
    changed = set_back(given, VirtualClock().now())
    if mended is None:
        assert changed is given
    else:
        assert changed == decoded(mended)


def decoded(status: dict[str, Any]) -> WorkloadStatus:
    if "claim" in status:
        status = {**status, "claim": {"attempt": 1, "term": 1, **status["claim"]}}
    if "history" in status:
        status = {**status, "history": [{"attempt": 1, **past} for past in status["history"]]}
    plain = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"queue": "serving", "podSets": [{"name": "worker", "count": 2}]},
        "status": status,
    }
    return codec.decode(plain, Workload).status


# A whole hub.


@asynccontextmanager
async def hub(
    journal: MemoryJournal, machine: VirtualClock, folder: Path, worlds: Worlds
) -> AsyncIterator[Fleet]:
    """A hub process on a machine; its clusters are other machines."""
    clock = SteadyClock(machine)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    await prepare_store(store)
    async with running(store, machine, folder, worlds=worlds, hub_clock=clock) as fleet:
        yield fleet
    await store.close()


def serves(workload: Workload) -> bool:
    return workload.status.pods.ready == 2


async def status_of(fleet: Fleet, name: str) -> ClusterStatus:
    return codec.decode((await fleet.store.get(CLUSTERS, name)).raw, Cluster).status


async def test_nothing_is_evicted_expired_or_lost_by_a_jump(tmp_path: Path) -> None:
    machine = VirtualClock()
    worlds = Worlds(built_in().of, SteadyClock(machine))
    async with hub(MemoryJournal(), machine, tmp_path, worlds) as fleet:
        tolerant = policy()
        tolerant["spec"]["tolerations"] = [{**BEARS, "tolerationSeconds": 7200}]
        limited = service(2, runSeconds={"limit": 86_400})
        await apply(fleet, FLAVOR, cluster("home", 4), queue(8), tolerant, limited)
        await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
        before = await fleet.until("chat", serves, 300)
        events = {
            item.object()["metadata"]["uid"] for item in (await fleet.store.list(EVENTS)).items
        }
        assert events
        machine.step(YEARS)
        await machine.advance(120)
        assert (await status_of(fleet, "home")).phase == "Ready"
        machine.step(-YEARS)
        await machine.advance(120)
        found = await fleet.workload("chat")
        assert found.status.claim == before.status.claim
        assert found.status.history == ()
        left = {item.object()["metadata"]["uid"] for item in (await fleet.store.list(EVENTS)).items}
        assert events <= left


async def test_a_hub_that_starts_with_its_time_behind_sets_nothing_back(tmp_path: Path) -> None:
    machine, journal = VirtualClock(), MemoryJournal()
    worlds = Worlds(built_in().of, SteadyClock(machine))
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await apply(fleet, FLAVOR, cluster("home", 4), queue(8), policy(enabled=False))
        await apply(fleet, service(2))
        before = await fleet.until("chat", serves, 300)
    machine.step(-YEARS)
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await machine.advance(300)
        machine.step(YEARS)  # as when a machine hears the time from others after it started
        await machine.advance(580)
        found = await fleet.workload("chat")
        assert found.status.claim == before.status.claim
        assert found.status.history == ()


async def test_a_back_off_of_a_hub_whose_time_was_years_ahead_ends(tmp_path: Path) -> None:
    machine, journal = VirtualClock(), MemoryJournal()
    worlds = Worlds(built_in().of, SteadyClock(machine))
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await apply(fleet, FLAVOR, cluster("home", 4), queue(8))
        await apply(fleet, GANG)
        await fleet.until("train", "Running", 300)
    machine.step(YEARS)
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await machine.advance(60)
        world = worlds.world("home")
        for pod in world.pods("default.train") or ():
            world.fail_pod(pod, machine.now() - YEARS, reason="Evicted")
        waiting = await fleet.until("train", "Waiting", 300)
        assert waiting.status.requeue is not None
        assert waiting.status.requeue.not_before is not None
    machine.step(-YEARS)
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await machine.advance(660)  # until the clock is sure
        again = await fleet.until("train", "Running", 900)
        assert again.status.claim is not None
        assert again.status.claim.attempt == 2


async def test_what_a_hub_wrote_whose_time_was_years_ahead_delays_nothing_later(
    tmp_path: Path,
) -> None:
    machine, journal = VirtualClock(), MemoryJournal()
    worlds = Worlds(built_in().of, SteadyClock(machine))
    tolerant = policy(enabled=False)
    tolerant["spec"]["tolerations"] = [BEARS]
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await apply(fleet, FLAVOR, cluster("home", 4), cluster("cloud", 4), queue(8), tolerant)
        await apply(fleet, service(2))
        await fleet.until("chat", serves, 300)
    machine.step(YEARS)
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await machine.advance(60)
        await fleet.change_cluster("home", {"spec": {"taints": [TAINT]}})
        body = {"involvedObject": {}, "metadata": {"name": "of-the-future", "namespace": "default"}}
        await fleet.store.create(EVENTS, body, namespace="default", write=Write())
    machine.step(-YEARS)
    async with hub(journal, machine, tmp_path, worlds) as fleet:
        await machine.advance(630)  # until the clock is sure
        assert "home" in summary_of(await fleet.workload("chat"))  # its toleration lasts a minute
        moved = await fleet.until(
            "chat", lambda item: serves(item) and summary_of(item) == "cloud (2)", 900
        )
        assert moved.status.claim is not None
        assert moved.status.claim.decided_at.timestamp() <= machine.now()
        for name in ("home", "cloud"):
            status = await status_of(fleet, name)
            assert status.agent.last_seen_at is not None
            assert status.agent.last_seen_at.timestamp() <= machine.now()
        names = [
            item.object()["metadata"]["name"] for item in (await fleet.store.list(EVENTS)).items
        ]
        assert "of-the-future" not in names


# Certificates.


@pytest.mark.parametrize("seconds", [YEARS, 86_400 * 500.0, -YEARS])
def test_the_authority_that_clients_trust_is_back_when_the_time_is(
    tmp_path: Path, seconds: float
) -> None:
    machine = VirtualClock()
    trusted = certificates.generate_certificate(tmp_path, ["hub"], clock=machine).authority
    machine.step(seconds)
    certificates.generate_certificate(tmp_path, ["hub"], clock=machine)
    machine.step(-seconds)
    files = certificates.generate_certificate(tmp_path, ["hub"], clock=machine)
    assert files.authority == trusted
    serving = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    assert serving.not_valid_before_utc.timestamp() < machine.now()


# A local pod.

_POD = """
import time
machine = time.time
def jump():
    time.time = lambda: machine() + {seconds}
plan = {{"start_at": machine(), "planned_at": machine(), "deadline_seconds": 3600}}
plan["containers"] = [{{"name": "main", "role": "main", "restart": "Never"}}]
{before}
from fairway.agent.drivers.local.supervisor.pod import Supervisor, steady_time
pod = Supervisor(plan)
{after}
assert pod.containers[0].not_before <= steady_time(), "it waits"
assert 0 < pod.deadline() - steady_time() <= 3600, "it ends"
"""


@pytest.mark.parametrize("seconds", [YEARS, -YEARS])
@pytest.mark.parametrize(
    "when", [{"before": "jump()", "after": ""}, {"before": "", "after": "jump()"}]
)
def test_a_local_pod_neither_ends_nor_waits_because_of_a_jump(
    seconds: float, when: dict[str, str]
) -> None:
    program = _POD.format(seconds=seconds, **when)
    subprocess.run([sys.executable, "-c", program], check=True)
