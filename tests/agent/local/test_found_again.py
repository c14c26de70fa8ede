"""A hub that is killed loses nothing: its processes go on, and the next one finds them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from fairway.agent.drivers.interface import DriverFault
from fairway.api.codec import encode
from fairway.api.work import Work
from tests.agent.local import stamps
from tests.agent.local.machines import machine, phase_of, pod, program, shared
from tests.agent.local.test_processes import first_line, is_alive, is_over, is_ready
from tests.contracts.drivers import in_phase, work
from tests.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]


async def hub(folder: Path, one: Work, point: str) -> asyncio.subprocess.Process:
    """A hub in a process of its own, which has applied a work or died over it."""
    written = folder / "work-of-the-test.json"
    written.write_bytes(encode(one))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.agent.local.hub", str(folder), str(written)),
        point,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)
    return process


def stamping(tmp_path: Path, task: str, **more: str) -> tuple[str, ...]:
    """A program that stamps until it is told to end."""
    here = shared(tmp_path)
    script = shutil.copy(stamps.__file__, here)
    until = str(here / "end")
    return (sys.executable, "-S", script, str(here / "stamps"), task, "0", "--until", until)


async def stamped(tmp_path: Path, count: int) -> None:
    """Waits until the file has so many more stamps."""
    file = shared(tmp_path) / "stamps"

    def lines() -> int:
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def grows(to: int) -> None:
        while lines() < to:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(grows(lines() + count), PATIENCE_SECONDS)


async def test_a_hub_that_is_killed_finds_its_processes_again_and_nothing_runs_twice(
    tmp_path: Path,
) -> None:
    one = work("one", pod("one", *stamping(tmp_path, "a")))
    process = await hub(tmp_path, one, "nowhere")
    await stamped(tmp_path, 3)
    process.kill()
    await process.wait()
    await stamped(tmp_path, 3)  # it goes on without a hub
    async with machine(tmp_path) as rig:
        await rig.until(is_ready(one), "the pod found again")
        await rig.driver.apply(one)
        await stamped(tmp_path, 3)
        (shared(tmp_path) / "end").touch()
        await rig.until(is_over(one), "the end of the pod")
    runs = stamps.read(shared(tmp_path) / "stamps")
    assert stamps.faults(runs, tasks=["a"], gap_seconds_max=20.0) == []


async def test_a_process_that_ends_while_there_is_no_hub_is_told_to_the_next(
    tmp_path: Path,
) -> None:
    end = shared(tmp_path) / "end"
    text = (
        "import os, sys, time\n"
        f"while not os.path.exists({str(end)!r}): time.sleep(0.01)\n"
        "print('good bye')\n"
        "sys.exit(5)"
    )
    one = work("one", pod("one", *program(text)))
    process = await hub(tmp_path, one, "nowhere")
    process.kill()
    await process.wait()
    end.touch()
    async with machine(tmp_path) as rig:
        seen = await rig.until(is_over(one), "the end of the pod")
        ended = seen.works[one.metadata.name].pods[0]
        assert (ended.phase, ended.exit_code) == ("Failed", 5)
        assert await first_line(rig, one) == "good bye"


@pytest.mark.parametrize("point", ["before the plan", "before the start", "after the start"])
async def test_a_hub_that_dies_while_it_starts_a_pod_starts_it_once(
    tmp_path: Path, point: str
) -> None:
    one = work("one", pod("one", *stamping(tmp_path, "a")))
    process = await hub(tmp_path, one, point)
    assert await process.wait() == -signal.SIGKILL
    async with machine(tmp_path) as rig:
        await rig.driver.apply(one)
        await rig.until(is_ready(one), "a ready pod")
        await stamped(tmp_path, 3)
        (shared(tmp_path) / "end").touch()
        await rig.until(is_over(one), "the end of the pod")
    runs = stamps.read(shared(tmp_path) / "stamps")
    assert stamps.faults(runs, tasks=["a"], gap_seconds_max=20.0) == []


async def test_a_pod_whose_supervisor_is_killed_is_lost_and_nothing_of_it_survives(
    tmp_path: Path,
) -> None:
    text = "import os, time; print(os.getpid(), flush=True); time.sleep(3600)"
    one = work("one", pod("one", *program(text)))
    async with machine(tmp_path) as rig:
        await rig.driver.apply(one)
        child = rig.on_machine(one, int(await first_line(rig, one)))
        supervisor, keeper = rig.supervisor(one), rig.keeper(one)
        os.kill(supervisor, signal.SIGKILL)
        seen = await rig.until(is_over(one), "the pod lost")
        assert seen.works[one.metadata.name].pods[0].reason == "Lost"
        assert not is_alive(keeper)
        assert not is_alive(child)
        await rig.restart()
        again = await rig.driver.observe()
        assert again.works[one.metadata.name].pods[0].reason == "Lost"


async def test_a_supervisor_that_was_killed_while_there_was_no_hub_leaves_a_lost_pod(
    tmp_path: Path,
) -> None:
    text = "import os, time; print(os.getpid(), flush=True); time.sleep(3600)"
    one = work("one", pod("one", *program(text)))
    async with machine(tmp_path) as rig:
        await rig.driver.apply(one)
        child = rig.on_machine(one, int(await first_line(rig, one)))
        supervisor, keeper = rig.supervisor(one), rig.keeper(one)
        await rig.driver.close()
        os.kill(supervisor, signal.SIGKILL)
        os.kill(keeper, signal.SIGKILL)  # so that nobody is left to end the process
        rig.driver = rig._new()
        await rig.driver.open()
        seen = await rig.until(is_over(one), "the pod lost")
        assert seen.works[one.metadata.name].pods[0].reason == "Lost"
        assert not is_alive(child)


async def test_a_stop_goes_on_when_the_driver_starts_again(tmp_path: Path) -> None:
    text = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "time.sleep(3600)"
    )
    one = work("one", pod("one", *program(text)), grace_seconds=6)
    async with machine(tmp_path) as rig:
        await rig.driver.apply(one)
        await first_line(rig, one)
        await rig.driver.stop(one.metadata.name, one.spec.stop)
        assert phase_of(await rig.driver.observe(), one) == "Terminating"
        await rig.restart()
        assert phase_of(await rig.driver.observe(), one) == "Terminating"
        await rig.until(lambda seen: not phase_of(seen, one), "the pod gone")
        await rig.restart()
        assert not phase_of(await rig.driver.observe(), one)


async def test_a_second_driver_of_the_same_folder_is_refused(tmp_path: Path) -> None:
    async with machine(tmp_path) as rig:
        second = rig._new()
        with pytest.raises(DriverFault, match="another driver"):
            await second.open()


async def test_ended_pods_stay_ended_when_the_driver_starts_again(tmp_path: Path) -> None:
    one = work("one", pods=2, seconds=0.01)
    async with machine(tmp_path) as rig:
        await rig.driver.apply(one)
        before = await rig.until(in_phase(one, "Succeeded", 2), "two succeeded pods")
        await rig.restart()
        after = await rig.driver.observe()
        assert after.works == before.works
