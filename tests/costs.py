"""What each test costs: seconds on the clock, and seconds of processor with its child processes.

A suite that shares two cores is slow by the processor time that it takes, which `--durations` does
not tell. `FAIRWAY_COSTS=FOLDER` writes a line for each test; `python -m tests.costs FOLDER` adds
them up, the dearest first.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_GIVEN = os.environ.get("FAIRWAY_COSTS", "")
FOLDER = str(Path(_GIVEN).absolute()) if _GIVEN else ""  # tests may change the current folder
_SHOWN = 50


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measures a test together with the fixtures that it is the first to ask for."""
    if not FOLDER:
        return (yield)
    clock, processor = time.monotonic(), _processor_seconds()
    result = yield
    line = {
        "test": item.nodeid,
        "clock": round(time.monotonic() - clock, 3),
        "processor": round(_processor_seconds() - processor, 3),
    }
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    path = Path(FOLDER)
    path.mkdir(parents=True, exist_ok=True)
    with (path / f"{worker}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return result


def _processor_seconds() -> float:
    """Of this process, and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in both)


def main(folder: str) -> None:
    """Prints what folders and the dearest tests cost."""
    lines = [
        json.loads(line)
        for path in sorted(Path(folder).glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    folders: dict[str, Counter[str]] = {}
    for line in lines:
        place = "/".join(line["test"].split("::")[0].split("/")[:3])
        folders.setdefault(place, Counter()).update(
            tests=1, clock=line["clock"], processor=line["processor"]
        )
    print(f"{'processor':>10}{'clock':>10}{'tests':>7}")
    for place, sums in sorted(folders.items(), key=lambda pair: -pair[1]["processor"])[:_SHOWN]:
        print(f"{sums['processor']:10.1f}{sums['clock']:10.1f}{sums['tests']:7d}  {place}")
    print()
    for line in sorted(lines, key=lambda line: -max(line["processor"], line["clock"]))[:_SHOWN]:
        print(f"{line['processor']:10.1f}{line['clock']:10.1f}         {line['test']}")


if __name__ == "__main__":
    main(sys.argv[1])
