"""One workload: why it waits, what it does, where it is."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.looking import open_workload
from tests.page.signing import keep

pytestmark = pytest.mark.xdist_group("page")


def test_a_workload_that_waits_says_why_in_words_and_numbers(page: Page) -> None:
    open_workload(page, "too-large")
    why = page.locator("section", has=page.get_by_role("heading", name="Why it waits"))
    expect(why).to_contain_text("24 h100")
    expect(why).to_contain_text("onprem-hangzhou")
    why.get_by_text("What was tried, place by place").click()
    expect(why.get_by_role("rowheader", name="onprem-hangzhou")).to_be_visible()
    keep(page, "why")


def test_a_running_workload_shows_its_story_its_place_and_its_manifest(page: Page) -> None:
    open_workload(page, "pretrain")
    story = page.locator("section", has=page.get_by_role("heading", name="Timeline"))
    for word in ("Submitted", "Claimed", "Running"):
        expect(story.get_by_text(word, exact=True)).to_be_visible()
    place = page.locator("section", has=page.get_by_role("heading", name="Placement and pods"))
    expect(place.get_by_role("row").filter(has_text="onprem-hangzhou")).to_contain_text("16")
    page.get_by_role("link", name="manifest").click()
    expect(page.get_by_label("Manifest")).to_contain_text("kind: Job")
    page.get_by_role("link", name="events").click()
    expect(page.get_by_role("row").filter(has_text="Admit").first).to_be_visible()


def test_the_output_of_a_program_comes_as_it_is_written(page: Page) -> None:
    open_workload(page, "hello", "default", "/logs")
    expect(page.get_by_label("Output")).to_contain_text("the first line")
    expect(page.get_by_text("Following", exact=True)).to_be_visible()
