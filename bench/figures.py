"""How figures are taken, shown and kept."""

from __future__ import annotations

import json
import os
import platform
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(slots=True)
class Report:
    """The figures of one run."""

    figures: dict[str, float] = field(default_factory=dict)

    def add(
        self, name: str, value: float, unit: str, aim: float | None = None, **more: float
    ) -> None:
        """Prints one line: what was measured, and by how much it meets its aim."""
        self.figures[name] = value
        shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
        extra = "".join(f"  {key} {number:,.2f}" for key, number in more.items())
        against = ""
        if aim is not None:
            is_most = unit in ("s", "ms", "MiB", "writes", "x", "errors")
            ratio = (aim + 1) / (value + 1) if unit == "errors" else aim / value
            ratio = ratio if is_most else value / aim
            sign = "at most" if is_most else "at least"
            against = f"  ({sign} {aim:,.0f}: {ratio:.2f}x{'' if ratio >= 1 else '  MISSED'})"
        print(f"  {name:<58}{shown:>12} {unit}{against}{extra}", flush=True)

    def keep(self, name: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        kept = {"machine": machine(), "figures": self.figures}
        (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")


def machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
        "fsync_ms": round(fsync_seconds() * 1000, 3),
    }


def fsync_seconds(count: int = 100) -> float:
    """The median time of an fsync after a small write, on the disk that holds temporary files."""
    with tempfile.TemporaryFile() as scratch:
        taken = []
        for _ in range(count):
            scratch.write(b"x" * 4096)
            scratch.flush()
            started = time.perf_counter()
            os.fsync(scratch.fileno())
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mib(process: int | None = None) -> float:
    """What a process holds in memory now."""
    pages = int(Path(f"/proc/{process or 'self'}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
