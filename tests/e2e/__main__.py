"""Runs the frameworks as workloads, and tells what came of it in docs/peers.md."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.e2e.environment import python
from tests.peers import report

PROGRAMS = ("jax", "torch", "flwr")
_VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


def main() -> int:
    versions = {
        name: subprocess.run(
            [python(), "-c", _VERSION, name], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in PROGRAMS
    }
    paths = ("tests/e2e/gangs.py", "tests/e2e/federation.py")
    is_good = report.run_tests("e2e", paths, versions, os.environ)
    report.write()
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
