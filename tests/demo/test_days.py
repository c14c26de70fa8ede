"""`fairway demo`: what it tells of a day, and the picture that it draws."""

from __future__ import annotations

import re

import pytest

from fairway.cli.demo import picture, sentence
from fairway.cli.main import run
from fairway.demo.days.day import Reading
from fairway.demo.days.stories import CROSS_REGION, HYBRID

LINE = re.compile(r"^(\d\d):(\d\d)  asked for +(\d+): (.*)$")


def reading(hour: float, wanted: int, site: int, cloud: int, nodes: int = 0) -> Reading:
    return Reading(
        hour=hour,
        wanted=wanted,
        ready={"on-premises": site, "cloud": cloud},
        held={"on-premises": site, "cloud": cloud},
        others={"on-premises": 0, "cloud": 0},
        nodes={"on-premises": {}, "cloud": {"elastic": nodes}},
        says=("the tide comes in",) if hour == 9 else (),
    )


def test_a_moment_is_a_sentence() -> None:
    assert sentence(HYBRID, reading(8.5, 17, 16, 0, nodes=1)) == (
        "08:30  asked for 17: on-premises 16, cloud 0 (1 node bought); 1 not there yet"
    )
    assert sentence(HYBRID, reading(0.0, 6, 6, 0)) == "00:00  asked for  6: on-premises 6, cloud 0"


def test_the_picture_grows_with_the_day() -> None:
    first = picture(HYBRID, [reading(0.0, 6, 6, 0)]).plain
    then = picture(HYBRID, [reading(0.0, 6, 6, 0), reading(9.0, 36, 16, 12, nodes=3)]).plain
    assert (first.count("█"), then.count("█")) == (2 + 2, 2 + 11 + 2)
    assert then.count("░") == 3 + 1, "what is asked for and not there is seen, and explained"
    assert "the tide comes in" in then
    assert "24:00" not in then
    assert "21:00" in then


@pytest.mark.long
def test_a_day_into_a_pipe_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", HYBRID.name]) == 0
    told = capsys.readouterr().out
    assert HYBRID.title in told
    assert "\x1b" not in told
    lines = [found for line in told.splitlines() if (found := LINE.match(line))]
    assert len(lines) > 50
    assert [line[0] for line in lines] == sorted(line[0] for line in lines)
    used = ["cloud 0" not in line[4] for line in lines]
    assert not used[0]
    assert any(used), "the last group is needed at the peak"
    assert not used[-1], "and left by the end"
    bought = [line[4] for line in lines if "bought" in line[4]]
    assert bought, "nodes are bought on the way"
    assert "bought" not in lines[-1][4], "and given back"


def test_a_day_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "doomsday"]) != 0
    assert "cross-region" in capsys.readouterr().err


def test_faster_replicas_count_for_more() -> None:
    assert CROSS_REGION.speed("region-a-1") == 1.5
    assert CROSS_REGION.speed("region-b") == 1.0
