"""A hub as a process of its own, and what it costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.kubernetes import control_plane

_TICKS = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def hub(plane: control_plane.ControlPlane, data: Path) -> AsyncIterator[subprocess.Popen]:
    command = [sys.executable, "-m", "fairway.cli.main", "up", "--store", "kubernetes"]
    options = ["--kubeconfig", str(plane.kubeconfig), "--data", str(data), "--port", "0"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            for line in iter(process.stdout.readline, ""):
                if line.startswith("Stop with"):
                    break
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def cpu_seconds(process: int) -> float:
    """CPU time of a process and its children, those that live included."""
    spent = 0.0
    for child in (process, *children(process)):
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        spent += sum(map(int, fields[11:15])) / _TICKS
    return spent


def children(process: int) -> list[int]:
    """Those that a process started, and theirs."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [other for child in map(int, listed) for other in (child, *children(child))]
