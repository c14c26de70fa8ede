"""Plants each bug in a copy of the package and runs the tests of the core there.

    python -m tests.core.planted.run [WORD ...]

Words choose bugs by their file or sentence. The exit status is 1 if a bug goes unnoticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.core.planted.patches import PATCHES, Patch

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 300
# The quick tests, the most telling first.
TESTS = ("tests/properties", "tests/core")
AS_IT_IS = Patch("nothing", "__init__.py", "The core decides", "The core decides")


def planted(patch: Patch, folder: Path) -> None:
    """Copies package and tests into a folder, with the bug."""
    for name in ("fairway", "tests", "examples", "web/src/words"):
        skipped = shutil.ignore_patterns("__pycache__", "planted", "test_planted.py")
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", folder)
    path = folder / "fairway" / "core" / patch.file
    text = path.read_text()
    assert text.count(patch.old) == 1, f"{patch.file} has the text {text.count(patch.old)} times"
    path.write_text(text.replace(patch.old, patch.new))


def noticed(patch: Patch) -> str:
    """The first test that fails with the bug; empty where none does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planted(patch, folder)
        first = (folder / "tests" / "core" / patch.first).resolve()
        chosen = [str(first)] if patch.first and first.exists() else []
        for tests in (chosen, list(TESTS)):
            if not tests:
                continue
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
            environment = {**os.environ, "PYTHONPATH": name}
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS_MAX,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return "(the tests do not end)"
            if done.returncode:
                return _failure(done.stdout)
    return ""


def _failure(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0] if lines else output.strip().splitlines()[-1]


def main(words: list[str]) -> int:
    chosen = [
        patch
        for patch in PATCHES
        if not words or any(word in f"{patch.file} {patch.sentence}" for word in words)
    ]
    missed = 0
    with ThreadPoolExecutor(2) as pool:
        untouched = pool.submit(noticed, AS_IT_IS)
        for patch, by in zip(chosen, pool.map(noticed, chosen), strict=True):
            missed += not by
            print(f"{'noticed' if by else 'MISSED '}  {patch.file}: {patch.sentence}", flush=True)
            print(f"         {by[:150]}", flush=True)
        if by := untouched.result():
            print(f"the tests fail without any bug planted: {by}")
            return 1
    print(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
