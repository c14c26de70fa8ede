"""Where the programs of workloads find their frameworks, and how a user submits workloads."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import yaml

from tests.endtoend.hubs import ROOT, HubProcess

Json = dict[str, Any]
# What pods of these tests use of this machine.
FOLDERS = (ROOT / ".venv-e2e", ROOT / "tests" / "e2e" / "app")


def python() -> str:
    """The interpreter with the frameworks."""
    return str(ROOT / ".venv-e2e" / "bin" / "python")


async def submit(hub: HubProcess, *bodies: Json) -> None:
    """As a user does it, with `fairway apply`."""
    command = (sys.executable, "-m", "fairway.cli.main", "apply", "-f", "-")
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(hub.data / "kubeconfig")},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate(yaml.safe_dump_all(bodies).encode())
    assert process.returncode == 0, told.decode()
