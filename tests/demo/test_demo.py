"""The demo shows what it promises: one round on the whole hub, on virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairway import demo
from fairway.api.codec import to_yaml
from fairway.clock import VirtualClock
from fairway.demo.event_lines import Telling
from fairway.demo.narrator import Line
from fairway.demo.player import PROCESSES
from fairway.demo.story import ROUND_SECONDS
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Selection
from fairway.store.keys import WORKLOADS
from tests.controllers.fleets import Fleet, running

Told = list[tuple[float, Line]]


@pytest.fixture
async def told(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path) -> Told:
    """What is told in one round, and a little of the next."""
    lines: Told = []
    async with running(store, clock, tmp_path / "clusters") as fleet:
        await begin(fleet)
        telling = Telling(
            store,
            clock,
            explain=fleet.plane.explain,
            tell=lambda at, line: lines.append((at, line)),
        )
        playing = asyncio.ensure_future(telling.run())
        await clock.advance(2 * ROUND_SECONDS)
        left = await store.list(WORKLOADS)
        assert len(left.items) <= 20, "what is finished goes"
        playing.cancel()
        await clock.advance(5)
        assert playing.done(), "it leaves nothing behind"
        assert not (await store.list(WORKLOADS, Selection(labels=PROCESSES))).items
    return lines


async def begin(fleet: Fleet) -> None:
    """The fleet of the demo, less this machine, which has no virtual time."""
    for document in demo.documents():
        if document.value["metadata"]["name"] != "laptop":
            await fleet.apply(to_yaml(document.value))


def when(told: Told, verb: str, who: str = "", text: str = "") -> float:
    """When something was first told; in the first two minutes, as the demo promises."""
    for at, line in told:
        if line.verb == verb and who in line.who and text in line.text:
            assert at <= 120, (at, line)
            return at
    script = "\n".join(f"{at:6.1f} {value.verb:11} {value.who} {value.text}" for at, value in told)
    raise AssertionError(f"never told: {verb} {who} {text}\n{script}")


async def test_within_two_minutes_everything_that_was_promised_is_seen(told: Told) -> None:
    when(told, "preempted", "sweep-1", "for train-large-1 (priority 100 > 0)")
    when(told, "overflowed", "ablation-1", "cloud-east on h100: 1 node of h100-on-demand ordered")
    when(told, "waits", "evaluate-1", "for 8")
    when(told, "waits", "sweep-1", "when finetune-1 ends")  # of another team: all is told here
    when(told, "spread", "assistant", "cloud-west")
    small = when(told, "updates", "assistant", "to revision 2, batch 1 of 3: cloud-west")
    home = when(told, "updates", "assistant", "batch 2 of 3: ")
    assert small < home < when(told, "updated", "assistant", "to revision 2, everywhere")
    lost = when(told, "lost", "cloud-east")
    moved = when(told, "moves", "ablation-1", "away from cloud-east")
    again = when(told, "running", "ablation-1", "onprem-hangzhou, attempt 2")
    assert lost < moved < again
    when(told, "ready", "cloud-east", "is heard again")
    for name in ("finetune-1", "train-large-1", "sweep-1", "distill-1", "evaluate-1", "analyze-1"):
        when(told, "succeeded", name)
    assert any(line.who == "train-large-2" for _, line in told), "it goes on"
