"""Queues: who owns, uses and waits, whether that is fair, and how it came to that."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.signing import keep, look, signed_in

pytestmark = pytest.mark.xdist_group("page, queues")

QUEUES = "queues.fairway.dev"


def row(page: Page, queue: str) -> object:
    return (
        page.get_by_role("treegrid")
        .get_by_role("row")
        .filter(has=page.get_by_role("link", name=queue, exact=True))
    )


def test_the_tree_shows_quota_of_inner_queues_and_leaves(page: Page) -> None:
    look(page, "queues")
    expect(page.get_by_role("img", name=re.compile("^h100: owns 16, uses 16"))).to_have_count(2)
    expect(page.get_by_role("img", name=re.compile("^h100: owns 48, uses 32"))).to_have_count(1)
    keep(page, "queues")
    page.get_by_role("button", name="Close company").click()
    expect(page.get_by_role("row").filter(has_text="research")).to_have_count(0)


def test_fairness_tells_who_is_owed_and_who_is_next(page: Page) -> None:
    look(page, "queues")
    fairness = page.get_by_role("region", name="Fairness in company")
    bar = fairness.get_by_role("img", name=re.compile("^research: uses 20, fair share 20"))
    expect(bar).to_be_visible()
    research = fairness.get_by_role("listitem").filter(has_text=re.compile("^research"))
    expect(research).to_contain_text(re.compile("next: [a-z-]+, "))
    bar.scroll_into_view_if_needed()
    keep(page, "queues-fairness")


def test_shares_over_time_come_from_the_hub_for_as_long_as_one_asks(page: Page) -> None:
    look(page, "queues")
    chart = page.get_by_role("figure", name="Share of each queue over time")
    expect(chart.get_by_role("img", name=re.compile("research: 20 "))).to_be_visible()
    chart.get_by_role("button", name="As a table").click()
    expect(chart.get_by_role("row").last).to_contain_text("20")
    page.get_by_label("Last", exact=True).select_option("7 d")
    week = re.compile(r"^From \d+ \w+ .*research: \d")  # it began on another day
    expect(chart.get_by_role("img", name=week)).to_be_visible()
    page.get_by_label("Of", exact=True).select_option("weighted share")
    expect(chart.get_by_role("img", name=re.compile("research: 0.0 %"))).to_be_visible()
    assert "last=7+d" in page.url or "last=7%20d" in page.url


def test_a_queue_opens_with_its_quota_its_past_and_who_is_next(page: Page) -> None:
    look(page, "queues")
    page.get_by_role("treegrid").get_by_role("link", name="research").click()
    expect(page.get_by_role("heading", name="research", exact=True)).to_be_visible()
    quota = page.get_by_role("region", name="Quota").get_by_role("row").filter(has_text="h100")
    expect(quota).to_contain_text("no limit")
    line = page.get_by_role("region", name="Next in line")
    expect(line.get_by_role("listitem").filter(has_text="too-large")).to_contain_text("h100")
    lately = page.get_by_role("region", name="Lately").get_by_role("listitem")
    expect(lately.first).to_contain_text("Admitted")
    use = page.get_by_role("figure", name="Use of research over time")
    expect(use.get_by_role("img", name=re.compile("used of its own: 20 "))).to_be_visible()
    keep(page, "queue")
    page.get_by_role("link", name="Its workloads").click()
    expect(page.get_by_label("Filter by queue")).to_have_value("research")


def test_the_tree_is_walked_by_keys(page: Page) -> None:
    look(page, "queues")
    company = page.get_by_role("treegrid").get_by_role("row").nth(1)
    company.focus()
    page.keyboard.press("ArrowLeft")
    expect(company).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(company).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Where it is")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Queues", exact=True)).to_be_visible()


def test_a_thousand_queues_are_closed_at_first_and_found_by_search(
    page: Page, client: Client
) -> None:
    names = [f"team-{number:03}" for number in range(300)]
    client.create(_queue("large", "company"))
    try:
        for name in names:
            client.create(_queue(name, "large"))
        look(page, "queues")
        expect(page.get_by_text("306 queues, 6 shown")).to_be_visible()
        page.get_by_role("searchbox", name="Search queues").fill("team-17")
        expect(page.get_by_role("treegrid").get_by_role("row")).to_have_count(1 + 2 + 10)
        page.get_by_role("searchbox", name="Search queues").fill("")
        page.get_by_role("button", name="Open all").click()
        expect(page.get_by_role("treegrid").get_by_role("row")).to_have_count(1 + 306)
        keep(page, "queues-many")
    finally:
        for name in [*names, "large"]:
            client.delete(QUEUES, name)


def _queue(name: str, parent: str) -> dict[str, object]:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent},
    }


@pytest.mark.parametrize("look_of", ["dark", "phone"])
def test_queues_can_be_read_in_the_dark_and_on_a_phone(
    browser: Browser, hub: Hub, client: Client, look_of: str
) -> None:
    size = (390, 844) if look_of == "phone" else (1280, 800)
    watched = signed_in(
        browser, hub.url, hub.token, size=size, theme="dark" if look_of == "dark" else "light"
    )
    page = watched.page
    for view, said in (("queues", "Queues"), ("queues/research", "research")):
        look(page, view)
        expect(page.get_by_role("heading", name=said, exact=True)).to_be_visible()
        expect(page.get_by_role("figure").first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide, f"{view} is wider than the screen"
        keep(page, f"{view.replace('/', '-')}-{look_of}")
    watched.close()
    assert watched.complaints == []
