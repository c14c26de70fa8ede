"""Style as a test: sizes, names and words that the linters do not know.

Prints each finding as `path:line: what is wrong` and exits with 1 if there is any. An exception
carries its reason here, so that it is looked at again.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
HIDING_NAMES = {"utils", "util", "helpers", "common", "misc", "manager", "base", "info"}
# Marks of unfinished work, and of places that exist on one machine only.
BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|/root/|/home/\w+/")
# Longer modules that are one thing, each with why.
LONG_MODULES = {"fairway/api/cluster.py": "one kind with all its parts"}
# Variables that say nothing of what they hold.
EMPTY_WORDS = {"one", "found", "told"}


def findings() -> Iterator[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split():
        path = ROOT / name
        if path.exists():
            yield from _of_file(name, path.read_text())
    yield from _not_pinned()
    yield from _untrue_tables()
    yield from _missing_paths()


def _untrue_tables() -> Iterator[str]:
    """Rows of a package's table that name no module, and modules that its table leaves out."""
    for path in sorted((ROOT / "fairway").rglob("__init__.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        rows = re.findall(r"^ *((?:[a-z_]+/?, )*[a-z_]+/?)  +\S", docstring, re.MULTILINE)
        named = {name.rstrip("/") for row in rows for name in row.split(", ")}
        folder = path.parent
        there = {item.stem for item in folder.glob("*.py")} - {"__init__", "__main__"}
        there |= {item.parent.name for item in folder.glob("*/__init__.py")}
        if 2 * len(named & there) <= len(named):
            continue  # no table of modules
        where = path.relative_to(ROOT)
        for name in sorted(named - there):
            yield f"{where}:1: its table names {name}, which is not there"
        for name in sorted(there - named):
            yield f"{where}:1: its table leaves out {name}"


def _missing_paths() -> Iterator[str]:
    """Paths of code that a document names and that are not there; decisions are history."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for path in documents:
        if "decisions" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", line):
                if not any((root / name).exists() for root in (ROOT, ROOT / "fairway")):
                    yield f"{path.relative_to(ROOT)}:{number}: there is no {name}"


def _not_pinned() -> Iterator[str]:
    """What the project needs and a new environment would lack."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = project["dependencies"]
    needed = {"run": run, "dev": run + project["optional-dependencies"]["dev"]}
    for lock, wanted in needed.items():
        path = ROOT / "requirements" / f"{lock}.lock"
        pinned = set(re.findall(r"^([\w.-]+)==", path.read_text(), re.MULTILINE))
        for item in wanted:
            name = re.split(r"[^\w.-]", item)[0].lower()
            if name not in pinned:
                yield f"requirements/{lock}.lock:1: {name} is not pinned: make lock"


def _of_file(name: str, text: str) -> Iterator[str]:
    if Path(name).stem in HIDING_NAMES:
        yield f"{name}:1: the name hides what is inside"
    lines = text.splitlines()
    if name.startswith("fairway/"):
        if len(lines) > MODULE_LINES_MAX and name not in LONG_MODULES:
            yield (
                f"{name}:1: {len(lines)} lines, more than {MODULE_LINES_MAX}: split it, or say in "
                "LONG_MODULES why it is one thing"
            )
        tree = ast.parse(text)
        yield from _long_functions(name, tree)
        yield from _empty_words(name, tree)
    for number, line in enumerate(lines, 1):
        if name != "tools/tidy.py" and BANNED.search(line):
            yield f"{name}:{number}: a mark of unfinished work or a path of one machine"


def _empty_words(name: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            word = node.id
        elif isinstance(node, ast.arg):
            word = node.arg
        else:
            continue
        if word in EMPTY_WORDS:
            yield f"{name}:{node.lineno}: a variable called {word}: name what it holds"


def _long_functions(name: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines: split it"


def main() -> None:
    faults = list(findings())
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
