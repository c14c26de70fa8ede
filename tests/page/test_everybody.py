"""The page is for everybody: by keys, by ear, in the dark, on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.barriers import serious_barriers
from tests.page.signing import keep, look, signed_in

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
    watched = signed_in(browser, hub.url, hub.token, theme=theme)
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(watched.page.get_by_role("heading", level=1).first).to_be_attached()
    expect(watched.page.get_by_text("Loading…")).to_have_count(0)
    found = serious_barriers(watched.page)
    keep(watched.page, f"{view.replace('/', '-')}-{theme}")
    watched.close()
    assert found == []


@pytest.mark.parametrize("view", [*VIEWS, *DETAILS])
def test_a_phone_shows_every_view_without_scrolling_sideways(
    browser: Browser, hub: Hub, client: Client, view: str
) -> None:
    watched = signed_in(browser, hub.url, hub.token, size=(360, 740))
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(watched.page.get_by_role("heading", level=1).first).to_be_attached()
    expect(watched.page.get_by_text("Loading…")).to_have_count(0)
    widths = watched.page.evaluate(
        "['html', 'header', 'main'].map((one) => document.querySelector(one).scrollWidth)"
    )
    keep(watched.page, f"phone-{view.replace('/', '-')}")
    watched.close()
    assert (widths, watched.complaints) == ([360, 360, 360], [])


def test_single_keys_are_told_and_can_be_turned_off(browser: Browser, hub: Hub) -> None:
    watched = signed_in(browser, hub.url, hub.token)
    page = watched.page
    page.keyboard.press("3")
    expect(page.get_by_label("Search workloads")).to_be_visible()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Fleet, Queues, Workloads, Timeline, Services, What if, Cost")
    assert serious_barriers(page) == []
    keep(page, "keys")
    keys.get_by_label("Single characters are commands").uncheck()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.reload()
    expect(page.get_by_label("Search workloads")).to_be_visible()
    page.keyboard.press("1")
    page.keyboard.press("?")
    expect(page.get_by_label("Search workloads")).to_be_visible()
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    keys.get_by_label("Single characters are commands").check()
    keys.get_by_role("button", name="Close").click()
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    watched.close()
    assert watched.complaints == []
