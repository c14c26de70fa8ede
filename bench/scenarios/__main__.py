"""`python -m bench.scenarios [DAY]...`: plays days, all if none is named; writes their pictures."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.scenarios.bound import least_cost
from bench.scenarios.costs import cost
from bench.scenarios.picture import picture
from fairway.app.days import play
from fairway.demo.days.day import Reading
from fairway.demo.days.stories import DAYS

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or list(DAYS):
        day = DAYS[name]
        readings: list[Reading] = []
        play(day, readings.append)
        spent, least = cost(day, readings), least_cost(day, readings)
        (FOLDER / f"{name}.svg").write_text(picture(day, readings, spent / least), encoding="utf-8")
        print(f"{name:16} cost {spent:8.2f}  least {least:8.2f}  ratio {spent / least:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
