"""The record of decisions: bounded in memory and on disk, private, never full from the start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairway.controllers.scheduling.planner import InlinePlanner
from fairway.controllers.scheduling.planner_state import Fed
from fairway.controllers.scheduling.record import RecordingPlanner
from fairway.hub.decision_log import FileSink, read_segment, segments

NOW = 1_800_000_000.0


async def test_a_fleet_larger_than_a_segment_does_not_fill_it(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, segment_bytes=1_000)
    planner = RecordingPlanner(InlinePlanner, sink)

    def everything() -> Sequence[Fed]:
        return [
            Fed(
                b'{"apiVersion":"fairway.dev/v1alpha1","kind":"Flavor","metadata":{"name":"%032x"}}'
                % (index * 0x9E3779B97F4A7C15)
            )
            for index in range(200)
        ]

    await planner.restart(everything, 50)
    await planner.plan(NOW, 10)
    assert sink._written > 1_000
    assert not planner.wants_restart
    for number in range(2_000):
        await planner.plan(NOW + number, 10)
    assert planner.wants_restart
    sink.close()
    assert len(list(read_segment(segments(tmp_path)[-1]))) == 4 + 1 + 2_000


def test_others_cannot_read_a_record(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "decisions")
    sink.begin()
    sink.close()
    (segment,) = segments(tmp_path / "decisions")
    assert segment.stat().st_mode & 0o077 == 0
    assert segment.parent.stat().st_mode & 0o077 == 0
