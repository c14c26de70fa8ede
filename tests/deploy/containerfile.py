"""The steps of a Containerfile, carried out in a folder where no container engine can be had.

The folder stands for the root of the image: absolute paths of the steps lie below it, `python` is
an interpreter of the version that FROM names where this machine has one, and pip may use its cache,
which an image leaves out to be small. A stage begins in an empty folder, and has nothing of an
earlier one but what it copies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

_ABSOLUTE = re.compile(r"(?<![\w./:-])/(?=\w)")
# Where packages come from and what is trusted there is this machine's own affair.
_OF_PIP = re.compile(r"PIP_\w+|\w+_proxy|\w+_PROXY|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|HOME")


def steps_of(text: str) -> Iterator[tuple[str, str]]:
    """Instructions with their arguments, in order."""
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in plain.replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), " ".join(rest.split())


@dataclass(kw_only=True)
class Image:
    """An image as it is built: `root` is that of the stage at work."""

    root: Path
    context: Path
    ignored: list[str]
    python: str = sys.executable
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    stages: dict[str, Path] = field(default_factory=dict)

    def build(self, text: str) -> None:
        name = ""
        for word, rest in steps_of(text):
            match word:
                case "FROM":
                    self._end_stage(name)
                    image, _, name = rest.partition(" AS ")
                    self.python = python_like(image)
                case "WORKDIR":
                    self.workdir = rest
                    self._inside(rest).mkdir(parents=True, exist_ok=True)
                case "RUN":
                    self._run(rest)
                case "COPY":
                    self._copy(rest.split())
                case "ENV":
                    self.env |= dict(part.split("=", 1) for part in rest.split())
                case "ENTRYPOINT":
                    self.entrypoint = json.loads(rest)
                case "USER" | "EXPOSE" | "CMD":
                    pass
                case _:
                    raise AssertionError(f"nobody has said how to carry out {word} {rest}")

    def environment(self) -> dict[str, str]:
        """What a process in the image finds: what ENV says, and nothing of this machine."""
        found = {name: _ABSOLUTE.sub(f"{self.root}/", value) for name, value in self.env.items()}
        found["PATH"] = found["PATH"].replace("$PATH", "/usr/bin:/bin")
        Path(found["HOME"]).mkdir(parents=True, exist_ok=True)
        return found

    def _end_stage(self, name: str) -> None:
        """Sets a stage aside under its name: scripts in an environment know its absolute path."""
        if self.root.exists():
            self.stages[name] = self.root.rename(self.root.with_name(f"stage-{name}"))
        self.root.mkdir(parents=True)
        self.workdir, self.env = "/", {}

    def _inside(self, path: str) -> Path:
        return self.root / path.removeprefix("/")

    def _run(self, line: str) -> None:
        told = _ABSOLUTE.sub(f"{self.root}/", line).replace(" --no-cache-dir", "")
        passed = {name: value for name, value in os.environ.items() if _OF_PIP.fullmatch(name)}
        done = subprocess.run(
            ["/bin/sh", "-ec", f'python() {{ "{self.python}" "$@"; }}\n{told}'],
            cwd=self._inside(self.workdir),
            env={**passed, "PATH": "/usr/bin:/bin", "PIP_NO_COMPILE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"RUN {line}\n{done.stdout}{done.stderr}"

    def _copy(self, words: list[str]) -> None:
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
        *sources, last = words
        target = self._inside(last if last.startswith("/") else f"{self.workdir}/{last}")
        for source in sources:
            there = (self.stages[stage] if stage else self.context) / source.removeprefix("/")
            assert stage or self._is_sent(source), f"{source} is left out of what is sent"
            into = target / there.name if last.endswith("/") else target
            into.parent.mkdir(parents=True, exist_ok=True)
            if there.is_dir():
                shutil.copytree(there, into, symlinks=True, ignore=None if stage else self._left)
            else:
                shutil.copy(there, into)

    def _left(self, folder: str, names: list[str]) -> set[str]:
        here = Path(folder).relative_to(self.context)
        return {name for name in names if not self._is_sent(str(here / name))}

    def _is_sent(self, path: str) -> bool:
        """Whether an engine would be sent the path: the last pattern that matches it decides."""
        parts = path.split("/")
        ancestors = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        sent = True
        for pattern in self.ignored:
            plain = pattern.removeprefix("!").removeprefix("**/")
            if any(
                fnmatch(ancestor, plain) or fnmatch(ancestor, f"*/{plain}")
                for ancestor in ancestors
            ):
                sent = pattern.startswith("!")
        return sent


def python_like(image: str) -> str:
    """An interpreter of the version in the name of a Python image, or else the one that runs."""
    version = image.removeprefix("python:").partition("-")[0]
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [os.environ.get("FAIRWAY_PYTHON", ""), shutil.which(f"python{version}") or ""]
    kept = sorted(str(path) for path in folder.glob(f"{version}*/bin/python{version}"))
    return next((item for item in (*named, *kept) if item and _runs(item)), sys.executable)


def _runs(python: str) -> bool:
    """A shim of pyenv is there for every version, and works for the chosen ones alone."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
