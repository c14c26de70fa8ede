"""What keeps somebody from using a page, as axe finds it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.page.required import skip_or_fail

_AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def serious_barriers(page: Page) -> list[str]:
    """Each serious one, with the first element that has it."""
    if not _AXE.exists():
        skip_or_fail("axe-core is not installed: make ui")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    # What is well needs no description: most elements are.
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{violation['id']}: {violation['nodes'][0]['html'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
