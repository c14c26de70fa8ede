"""An agent that stops and starts, with and without its hub."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fairway.agent.hub import Hub
from fairway.agent.memory import Memory
from fairway.api.report import WorkState
from tests.agent.stage import Stage
from tests.agent.test_life import with_spec
from tests.contracts.drivers import work


async def test_a_restart_changes_nothing_that_runs(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    before = await stage.until("Running", one)
    await stage.crash()
    await stage.passes(30)
    await stage.start()
    await stage.passes(5)
    after = await stage.until("Running", one)
    assert after.started_at == before.started_at
    assert (await stage.lease())["spec"]["holderIdentity"] == "here/2"


async def test_what_ends_while_the_agent_is_away_is_told_when_it_is_back(stage: Stage) -> None:
    one = work("one", seconds=10)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.crash()
    await stage.passes(60)
    await stage.start()
    done = await stage.until("Succeeded", one)
    assert done.finished_at is not None
    assert done.started_at is not None
    assert (done.finished_at - done.started_at).total_seconds() == 10


async def test_without_its_hub_it_keeps_to_the_last_desired_state(stage: Stage) -> None:
    runs, ends = work("runs"), work("ends", term=1)
    for item in (runs, ends):
        await stage.put(item)
        await stage.until("Running", item)
    await stage.bury(ends)
    await stage.until("Stopping", ends)
    await stage.crash()
    stage.reached.is_away = True
    stage.worlds.forget("here")  # all that ran is gone, as after a loss of power
    await stage.start()
    await stage.passes(30)
    assert await stage.pods(runs) == 1
    assert await stage.pods(ends) == 0
    stage.reached.is_away = False
    await stage.until("Running", runs)
    await stage.until("Gone", ends)


async def test_what_has_ended_is_not_run_again_though_the_cluster_forgot_it(stage: Stage) -> None:
    one = work("one", seconds=5)
    await stage.put(one)
    done = await stage.until("Succeeded", one)
    await stage.crash()
    stage.worlds.forget("here")
    await stage.start()
    await stage.passes(600)
    assert await stage.pods(one) == 0
    assert await stage.until("Succeeded", one) == done


async def test_the_highest_term_is_remembered(stage: Stage) -> None:
    await stage.put(work("first", term=7))
    await stage.until("Running", work("first"))
    await stage.crash()
    await stage.start()
    old = work("second", term=6)
    await stage.put(old)
    await stage.passes(10)
    assert await stage.pods(old) == 0


async def test_a_hub_that_is_away_stops_nothing(stage: Stage) -> None:
    one = work("one")
    await stage.put(one)
    await stage.until("Running", one)
    await stage.reached.go_away()
    await stage.passes(7200)
    assert await stage.pods(one) == 1
    stage.reached.is_away = False
    await stage.bury(one)
    await stage.until("Gone", one)


async def test_a_work_that_is_to_stop_in_silence_stops_by_itself(stage: Stage) -> None:
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.passes(1000)  # heartbeats are answered
    assert await stage.pods(one) == 1
    await stage.reached.go_away()
    await stage.passes(280)
    assert await stage.pods(one) == 1
    await stage.passes(40)
    assert await stage.pods(one) == 0
    stage.reached.is_away = False
    failed = await stage.until("Failed", one)
    assert failed.reason == "HubSilent"
    await stage.passes(600)
    assert await stage.pods(one) == 0  # its attempt is over
    await stage.put(with_spec(one, attempt=2, term=2))
    assert (await stage.until("Running", one)).attempt == 2


async def test_silence_is_counted_through_a_restart(stage: Stage) -> None:
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.passes(30)
    await stage.reached.go_away()
    await stage.passes(200)
    await stage.crash()
    await stage.start()
    await stage.passes(60)
    assert await stage.pods(one) == 1
    await stage.passes(60)
    assert await stage.pods(one) == 0


async def test_a_long_absence_of_the_agent_is_no_silence_of_the_hub(stage: Stage) -> None:
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.passes(30)
    await stage.crash()
    await stage.passes(1000)
    await stage.start()
    await stage.passes(30)
    assert await stage.pods(one) == 1


async def test_time_that_is_set_forward_is_no_silence_of_the_hub(stage: Stage) -> None:
    one = work("one", stop_when_silent_seconds=300)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.reached.go_away()
    await stage.passes(100)
    stage.clock.step(3600)
    await stage.passes(100)
    assert await stage.pods(one) == 1
    await stage.passes(120)
    assert await stage.pods(one) == 0


async def test_silence_ends_a_work_for_good_through_a_restart(stage: Stage) -> None:
    one = work("one", stop_when_silent_seconds=60)
    await stage.put(one)
    await stage.until("Running", one)
    await stage.reached.go_away()
    await stage.passes(120)
    assert await stage.pods(one) == 0
    await stage.crash()
    await stage.start()
    await stage.passes(30)
    assert await stage.pods(one) == 0


async def test_silence_begins_once_an_agent_that_starts_has_asked(stage: Stage) -> None:
    now = stage.clock.now()
    hub = Hub(stage.store, "here", clock=stage.clock, epoch=2, heard_at=now - 1000)
    assert (hub.silent_seconds(), hub.silent_at(300)) == (0, now + 300)


class TestMemory:
    def opened(self, folder: Path) -> Memory:
        memory = Memory(folder, is_inline=True)
        memory.open()
        return memory

    async def test_begins_a_new_epoch_each_time(self, tmp_path: Path) -> None:
        assert [self.opened(tmp_path).epoch for _ in range(3)] == [1, 2, 3]

    async def test_keeps_works_their_ends_and_the_term(self, tmp_path: Path) -> None:
        memory = self.opened(tmp_path)
        one, two, three = (work(name, term=4) for name in ("one", "two", "three"))
        for each in (one, two, three):
            await memory.keep(each)
        ended = WorkState(work=two.metadata.name, attempt=1, phase="Succeeded")
        await memory.end(two.metadata.name, ended)
        await memory.forget(three.metadata.name)
        again = self.opened(tmp_path)
        assert again.works == memory.works
        assert again.works[two.metadata.name].ended == ended
        assert again.term == 4

    async def test_a_line_that_was_cut_off_is_as_if_it_had_never_been(self, tmp_path: Path) -> None:
        memory = self.opened(tmp_path)
        await memory.keep(work("one"))
        await memory.keep(work("two"))
        path = tmp_path / "works.log"
        path.write_bytes(path.read_bytes()[:-40])
        assert list(self.opened(tmp_path).works) == ["team.one"]

    async def test_a_new_attempt_has_not_ended(self, tmp_path: Path) -> None:
        memory = self.opened(tmp_path)
        one = work("one")
        await memory.keep(one)
        await memory.end(
            one.metadata.name, WorkState(work=one.metadata.name, attempt=1, phase="Failed")
        )
        await memory.keep(work("one", attempt=2))
        assert self.opened(tmp_path).works[one.metadata.name].ended is None

    async def test_is_written_anew_before_it_grows_without_bound(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path, is_inline=True, is_synced=False)
        memory.open()
        for term in range(5000):
            await memory.keep(work("one", term=term))
        assert (tmp_path / "works.log").stat().st_size < 2_000_000
        assert self.opened(tmp_path).works["team.one"].work.spec.term == 4999

    async def test_several_lines_share_a_write_and_all_are_kept(self, tmp_path: Path) -> None:
        memory = Memory(tmp_path)
        memory.open()
        await asyncio.gather(*(memory.keep(work(f"w{n}")) for n in range(50)))
        await memory.close()
        assert len(self.opened(tmp_path).works) == 50
