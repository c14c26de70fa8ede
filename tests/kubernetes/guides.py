"""Somebody who does what a guide says, command by command, as it stands there.

Blocks that are marked `sh` are typed in one after another. Where the guide has an agent started
elsewhere, with the command that the last block printed, that is done before `fairway accept`.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes import binaries
from tests.kubernetes.fleet import ROOT, Member
from tests.waiting import PATIENCE_SECONDS, seen


def blocks_of(guide: Path) -> list[str]:
    """The commands of a guide, block by block."""
    return re.findall(r"^```sh\n(.*?)^```$", guide.read_text(), re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Laptop:
    """A machine with `fairway`, `kubectl` and a kubeconfig."""

    folder: Path
    environment: Mapping[str, str]

    def know_hub(self, kubeconfig: Path) -> None:
        """A hub on this machine leaves its kubeconfig where commands find it."""
        share = Path(self.environment["HOME"]) / ".local" / "share" / "fairway"
        share.mkdir(parents=True)
        (share / "kubeconfig").write_bytes(kubeconfig.read_bytes())

    async def follow(self, guide: Path, *, agent_of: str, typed: int = 0) -> None:
        """Does all that a guide says, after the blocks that were typed already.

        `agent_of` is the context of the cluster with an agent.
        """
        blocks = blocks_of(guide)[typed:]
        at = next(at for at, block in enumerate(blocks) if "fairway accept" in block)
        told = [await self.type(block) for block in blocks[:at]]
        command = told[-1].strip().splitlines()[-1]
        async with self.agent(command, "--context", agent_of):
            for block in blocks[at:]:
                await self.type(block)

    async def type(self, block: str) -> str:
        """Runs a block as it stands in the guide; whoever is asked says yes."""
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-euo", "pipefail", "-c", block],
            env=self.environment,
            input="y\n" * 9 if "accept" in block else None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {done.stdout}{done.stderr}"
        return done.stdout

    @asynccontextmanager
    async def agent(self, command: str, *words: str) -> AsyncIterator[None]:
        """An agent, once it waits to be accepted."""
        log = self.folder / "agent.log"
        with log.open("wb") as written:
            agent = subprocess.Popen(
                [*command.split(), *words],
                env=self.environment,
                executable=str(self.folder / "bin" / "fairway"),
                stdout=written,
                stderr=written,
            )
            try:

                async def said() -> str:
                    assert agent.poll() is None, log.read_text()
                    return log.read_text()

                await seen(said, lambda told: "Waiting" in told, "it to wait")
                yield
            finally:
                agent.terminate()
                await asyncio.to_thread(agent.wait, PATIENCE_SECONDS)


def laptop_of(folder: Path, contexts: Mapping[str, Member]) -> Laptop:
    """The machine of somebody who has what a guide asks for."""
    programs, home = folder / "bin", folder / "home"
    programs.mkdir()
    script = f'#!/bin/sh\nexec {sys.executable} -m fairway.cli.main "$@"\n'
    (programs / "fairway").write_text(script)
    (programs / "fairway").chmod(0o755)
    (programs / "kubectl").symlink_to(binaries.program("kubectl"))
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    for name, member in contexts.items():
        found = yaml.safe_load(member.plane.kubeconfig.read_text())
        for plural, singular in (("clusters", "cluster"), ("users", "user")):
            entry = {"name": name, singular: found[plural][0][singular]}
            merged.setdefault(plural, []).append(entry)
        context = {"name": name, "context": {"cluster": name, "user": name}}
        merged.setdefault("contexts", []).append(context)
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").write_text(yaml.safe_dump(merged))
    path = f"{programs}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(home), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return Laptop(folder=folder, environment=environment)
