"""Signing in, and out."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from tests.page.looking import line
from tests.page.signing import Watched, keep, look, opened, sign_in

pytestmark = pytest.mark.xdist_group("page, signing in")


def test_a_browser_that_asks_for_the_hub_gets_the_page_and_nothing_of_the_fleet(
    browser: Browser, hub: Hub
) -> None:
    watched = opened(browser, hub.url)
    expect(watched.page.get_by_label("Token")).to_be_visible()
    assert watched.page.url == f"{hub.url}/page/"
    keep(watched.page, "sign-in")
    watched.close()
    assert watched.complaints == []


def test_a_token_that_the_hub_does_not_know_is_refused_in_words(browser: Browser, hub: Hub) -> None:
    watched = opened(browser, hub.url)
    sign_in(watched.page, "not-a-token")
    expect(watched.page.get_by_role("alert")).to_have_text("The hub does not know this token.")
    assert watched.page.evaluate("sessionStorage.length") == 0
    watched.close()


def test_the_token_stays_in_the_tab_and_out_of_every_address(hub: Hub, watched: Watched) -> None:
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    look(page, "workloads")
    expect(line(page, "pretrain")).to_be_visible()
    page.reload()
    expect(line(page, "pretrain")).to_be_visible()
    assert [item for item in [*asked, page.url] if hub.token in item] == []
    kept = page.evaluate("JSON.stringify(localStorage) + document.cookie")
    assert hub.token not in kept


def test_signing_out_forgets_everything(page: Page) -> None:
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("query", ["code=made-up&state=made-up", "error=made_up"])
def test_an_address_that_somebody_made_up_ends_no_sign_in(hub: Hub, page: Page, query: str) -> None:
    page.goto(f"{hub.url}/page/?{query}#/queues")
    expect(page.get_by_role("heading", level=1, name="Queues")).to_be_visible()
    assert page.url == f"{hub.url}/page/#/queues"


def test_an_address_that_was_cut_short_still_opens_the_page(hub: Hub, page: Page) -> None:
    page.goto(f"{hub.url}/page/?#/workloads/%E")
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
