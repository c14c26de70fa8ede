"""The page is for everybody: by keys, by ear, in the dark, on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.required import skip_or_fail
from tests.page.signing import keep, look, signed_in

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ["fleet", "queues", "workloads", "timeline", "services", "whatif", "cost"]
DETAILS = [
    "workloads/team-research/too-large",
    *(f"workloads/team-serving/assistant{part}" for part in ("", "/pods", "/logs", "/manifest")),
    "services/team-serving/assistant",
]
pytestmark = pytest.mark.xdist_group("page")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, *DETAILS])
def test_a_view_has_no_serious_barrier(
    browser: Browser, hub: Hub, client: Client, view: str, theme: str
) -> None:
    if not AXE.exists():
        skip_or_fail("axe-core is not installed: make ui")
    watched = signed_in(browser, hub.url, hub.token, theme=theme)
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(watched.page.get_by_role("heading", level=1).first).to_be_attached()
    watched.page.evaluate(AXE.read_text())
    found = watched.page.evaluate("axe.run()")
    keep(watched.page, f"{view.replace('/', '-')}-{theme}")
    watched.close()
    serious = [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("view", [*VIEWS, *DETAILS])
def test_a_phone_shows_every_view_without_scrolling_sideways(
    browser: Browser, hub: Hub, client: Client, view: str
) -> None:
    watched = signed_in(browser, hub.url, hub.token, size=(390, 844))
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(watched.page.get_by_role("heading", level=1).first).to_be_attached()
    width = watched.page.evaluate("document.documentElement.scrollWidth")
    keep(watched.page, f"phone-{view.replace('/', '-')}")
    watched.close()
    assert (width, watched.complaints) == (390, [])
