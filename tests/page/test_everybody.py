"""The page is for everybody: by keys, by ear, in the dark, on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.barriers import serious_barriers
from tests.page.looking import VIEWS, show
from tests.page.signing import Watched, keep, signed_in

# What is shown, and the heading that it has.
SHOWN = {
    **VIEWS,
    "workloads/team-research/too-large": "too-large",
    **{
        f"workloads/team-serving/assistant{part}": "assistant"
        for part in ("", "/pods", "/logs", "/manifest")
    },
    "services/team-serving/assistant": "assistant",
}
pytestmark = pytest.mark.xdist_group("page, everybody")


@pytest.fixture(scope="module", params=["light", "dark"])
def themed(
    request: pytest.FixtureRequest, browser: Browser, hub: Hub, client: Client
) -> Iterator[Watched]:
    """A page on a machine that says so, opened once: its views come and go as for a person."""
    watched = signed_in(browser, hub.url, hub.token, theme=request.param)
    yield watched
    watched.close()


@pytest.fixture(scope="module")
def phone(browser: Browser, hub: Hub, client: Client) -> Iterator[Watched]:
    watched = signed_in(browser, hub.url, hub.token, size=(360, 740))
    yield watched
    watched.close()


@pytest.mark.parametrize("view", SHOWN)
def test_a_view_has_no_serious_barrier(
    themed: Watched, view: str, request: pytest.FixtureRequest
) -> None:
    theme = request.node.callspec.params["themed"]
    expect(themed.page.locator("html")).to_have_attribute("data-theme", theme)
    show(themed.page, view, SHOWN[view])
    keep(themed.page, f"{view.replace('/', '-')}-{theme}")
    assert serious_barriers(themed.page) == []


@pytest.mark.parametrize("view", SHOWN)
def test_a_phone_shows_every_view_without_scrolling_sideways(phone: Watched, view: str) -> None:
    show(phone.page, view, SHOWN[view])
    widths = phone.page.evaluate(
        "['html', 'header', 'main'].map((one) => document.querySelector(one).scrollWidth)"
    )
    keep(phone.page, f"phone-{view.replace('/', '-')}")
    assert (widths, phone.complaints) == ([360, 360, 360], [])


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
