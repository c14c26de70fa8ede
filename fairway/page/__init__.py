"""The page, as it was built: plain files that travel with the package.

Its sources are in `web/`; `make ui` writes `built/`. Nothing here knows what the files say, and
nothing of ours but the server reads them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable


@cache
def built_files() -> dict[str, bytes]:
    """Every built file by its path, such as `index.html` or `assets/index-3f2a.js`."""
    root = resources.files(__name__) / "built"
    return dict(_walk(root, "")) if root.is_dir() else {}


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    result: list[tuple[str, bytes]] = []
    for other in sorted(folder.iterdir(), key=lambda child: child.name):
        path = f"{prefix}{other.name}"
        if other.is_dir():
            result += _walk(other, f"{path}/")
        else:
            result.append((path, other.read_bytes()))
    return result
