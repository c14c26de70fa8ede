"""A hub that is killed: whatever it started to help itself ends with it, busy or not."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_SECONDS_MOST = 60.0
_CHILD = """
import sys, time
def main():
    sys.stdin.close()
    while True: {does}
"""
_HUB = """
import asyncio
from fairway.controllers.child_processes import start_python
async def main():
    print((await start_python("busy_child")).pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""
_AGENT = """
import asyncio
from fairway.agent.drivers.interface import CommandQuery
from fairway.agent.drivers.local.commands import _Box, _Pipes
async def main():
    query = CommandQuery(work="w", command=("sleep", "3600"))
    run = _Pipes(_Box(query.command, {"cwd": "/", "env": {"PATH": "/usr/bin:/bin"}}, (0, 0)))
    await run.start(query)
    print(run.process.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


def outlives(program: str, folder: Path) -> bool:
    """Whether the process, whose id a program prints, is still there after it was killed."""
    path = os.pathsep.join([str(folder), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        watched = os.pidfd_open(child)
        try:
            parent.kill()
            parent.wait()
            ended, _, _ = select.select([watched], [], [], _SECONDS_MOST)
            if not ended:
                os.kill(child, signal.SIGKILL)
            return not ended
        finally:
            os.close(watched)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux can watch any process")
class TestOnLinux:
    @pytest.mark.parametrize("does", ["pass", "time.sleep(3600)"], ids=["computes", "waits"])
    def test_a_child_ends_with_its_hub(self, tmp_path: Path, does: str) -> None:
        (tmp_path / "busy_child.py").write_text(_CHILD.format(does=does))
        assert not outlives(_HUB, tmp_path)

    def test_a_command_in_a_local_pod_ends_with_its_agent(self, tmp_path: Path) -> None:
        assert not outlives(_AGENT, tmp_path)
