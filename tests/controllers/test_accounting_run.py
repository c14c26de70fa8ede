"""Accounts in a hub that runs: who used what is recorded, and outlives the hub."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from fairway.api import codec
from fairway.api.costs import CostAccount, CostAccountSpec, CostRow
from fairway.api.meta import ObjectMeta
from fairway.clock import VirtualClock
from fairway.core.costs.reports import By, Report, hours, money, report
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import COST_ACCOUNTS, FLAVORS
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import FLEET, job

_USER = Write(user="ada", manager="test")
_EVENING = 1_800_056_400.0  # 2027-01-15 23:40 UTC


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(_EVENING)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        await priced(found)
        yield found


async def priced(fleet: Fleet) -> None:
    """The fleet of two nodes with eight GPUs, at two dollars a GPU for an hour."""
    await fleet.apply(FLEET)
    for item in (await fleet.store.list(FLAVORS)).items:
        patch = Patch(type="merge", body={"spec": {"prices": {"nvidia.com/gpu": "2"}}})
        name = item.object()["metadata"]["name"]
        await fleet.store.patch(FLAVORS, name, patch, write=_USER)


async def rows(store: EmbeddedStore) -> list[CostRow]:
    stored = (await store.list(COST_ACCOUNTS)).items
    return [row for item in stored for row in codec.decode(item.raw, CostAccount).spec.rows]


async def told(fleet: Fleet, by: By) -> Report:
    return report(await rows(fleet.store), by)


async def test_gpu_hours_and_money_of_a_workload_are_recorded(fleet: Fleet) -> None:
    await fleet.apply(job("train", pods=1, seconds=900))
    await fleet.until("train", "Succeeded", 1000)
    await fleet.clock.advance(120)
    found = await told(fleet, "workload")
    (line,) = [line for line in found.lines if line.name == "default/train"]
    used = line.of("Used")
    assert 2.0 <= float(hours(used)) < 2.05
    assert float(money(used)) == pytest.approx(2 * float(hours(used)), abs=0.02)


async def test_the_fleet_says_which_label_names_the_team(fleet: Fleet) -> None:
    head = "apiVersion: fairway.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
    await fleet.apply(f"{head}spec: {{accounting: {{teamLabel: squad}}}}")
    await fleet.apply(job("train").replace("default,", "default, labels: {squad: vision},"))
    await fleet.until("train", "Running", 60)
    await fleet.clock.advance(120)
    assert {row.team for row in await rows(fleet.store) if row.workload} == {"vision"}


async def test_the_first_account_is_there_within_half_a_minute(fleet: Fleet) -> None:
    await fleet.clock.advance(30)
    assert {row.use for row in await rows(fleet.store)} == {"Idle"}


async def test_what_stood_idle_is_recorded_by_cluster(fleet: Fleet) -> None:
    await fleet.clock.advance(1800)
    await fleet.apply(job("train", pods=1, seconds=7200))
    await fleet.clock.advance(1800)
    await fleet.clock.advance(60)
    found = await told(fleet, "cluster")
    (line,) = [line for line in found.lines if line.name == "hangzhou"]
    used, idle = float(hours(line.of("Used"))), float(hours(line.of("Idle")))
    assert used == pytest.approx(8 * 0.5, abs=0.2)
    assert used + idle == pytest.approx(16.0, abs=0.4)


async def test_work_that_a_preemption_cost_is_recorded_as_lost(fleet: Fleet) -> None:
    for name in ("first", "second"):
        await fleet.apply(job(name, seconds=9000))
        await fleet.until(name, "Running", 30)
    await fleet.clock.advance(1800)
    await fleet.apply(job("urgent", priority=10, seconds=600))
    await fleet.until("urgent", "Running", 60)
    await fleet.clock.advance(120)
    found = await told(fleet, "queue")
    assert float(hours(found.total.of("Lost"))) == pytest.approx(4.0, abs=0.1)
    assert found.total.of("Lost").money > 0
    histories = [(await fleet.workload(name)).status.history for name in ("first", "second")]
    (victim,) = [history[0] for history in histories if history]
    lost = victim.lost_seconds * 8 / 3600
    assert float(hours(found.total.of("Lost"))) == pytest.approx(lost, abs=0.01)


async def test_an_account_goes_on_where_the_last_hub_left_it(
    store: EmbeddedStore, clock: VirtualClock, tmp_path: Path
) -> None:
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await priced(fleet)
        await fleet.apply(job("train", seconds=90_000))
        await fleet.until("train", "Running", 30)
        await fleet.clock.advance(1200)
        worlds = fleet.worlds
    clock.step(1200)  # nobody looks, and it runs on
    async with running(store, clock, tmp_path / "clusters", worlds=worlds) as fleet:
        await fleet.clock.advance(1200)
        await fleet.clock.advance(60)
        found = await told(fleet, "workload")
        assert float(hours(found.total.of("Used"))) == pytest.approx(8.0, abs=0.3)


async def test_each_day_has_an_account_and_days_add_up(fleet: Fleet) -> None:
    """The clock of these tests begins 20 minutes before midnight."""
    await fleet.apply(job("train", seconds=200_000))
    await fleet.until("train", "Running", 30)
    await fleet.clock.advance(3600)
    assert len((await fleet.store.list(COST_ACCOUNTS)).items) == 2
    found = await told(fleet, "workload")
    assert float(hours(found.total.of("Used"))) == pytest.approx(8.0, abs=0.2)


async def test_accounts_are_kept_for_as_long_as_the_fleet_says(fleet: Fleet) -> None:
    head = "apiVersion: fairway.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n"
    await fleet.apply(f"{head}spec: {{accounting: {{days: 10}}}}")
    for day in ("2027-01-04", "2027-01-05", "2027-01-14"):
        made = CostAccount(
            metadata=ObjectMeta(name=day),
            spec=CostAccountSpec(until=datetime.fromisoformat(f"{day}T12:00:00+00:00")),
        )
        await fleet.store.create(COST_ACCOUNTS, codec.to_plain(made), write=_USER)
    await fleet.clock.advance(300)
    names = [
        item.object()["metadata"]["name"] for item in (await fleet.store.list(COST_ACCOUNTS)).items
    ]
    assert sorted(names) == ["2027-01-05", "2027-01-14", "2027-01-15"]
