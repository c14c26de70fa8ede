"""The list of workloads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.looking import WORKLOADS, line
from tests.page.signing import look
from tests.page.workloads import job

pytestmark = pytest.mark.xdist_group("page, workloads")


def test_workloads_are_found_by_state_queue_and_text(page: Page) -> None:
    look(page, "workloads")
    expect(line(page, "too-large")).to_contain_text("Waiting")
    page.get_by_label("Filter by state").get_by_role("button", name="Running").click()
    expect(line(page, "too-large")).to_be_hidden()
    page.get_by_label("Filter by queue").select_option("product")
    expect(line(page, "finetune")).to_be_visible()
    expect(line(page, "pretrain")).to_be_hidden()
    look(page, "workloads")
    page.keyboard.press("/")
    page.keyboard.type("serving")
    expect(line(page, "assistant")).to_be_visible()
    expect(line(page, "pretrain")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?text=serving$"))


def test_what_happens_in_the_fleet_comes_by_itself(page: Page, client: Client) -> None:
    look(page, "workloads")
    expect(line(page, "pretrain")).to_be_visible()
    client.create(job("arrived", team="product", pods=1, gpus=1, flavor="a100"))
    expect(line(page, "arrived")).to_contain_text("Running")
    client.delete(WORKLOADS, "arrived", namespace="team-product")
    expect(line(page, "arrived")).to_be_hidden()


def test_keys_alone_lead_to_a_workload_and_back(page: Page) -> None:
    page.keyboard.press("3")
    expect(line(page, "pretrain")).to_be_visible()
    page.get_by_label("Workloads, rows").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="manifest")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="manifest")).to_be_hidden()


def test_every_filter_says_how_many_it_would_leave_and_stands_in_the_address(page: Page) -> None:
    look(page, "workloads?state=Running")
    by_queue = page.get_by_label("Filter by queue")
    expect(by_queue.locator("option", has_text="research")).to_have_text("research (2)")
    by_queue.select_option("research")
    page.get_by_label("Filter by namespace").select_option("team-research")
    page.get_by_label("Filter by user").select_option("admin")
    page.get_by_label("Filter by kind").select_option("Job")
    page.get_by_label("Filter by cluster").select_option("onprem-hangzhou")
    expect(line(page, "pretrain")).to_be_visible()
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "3")
    address = page.url
    for part in ("state=Running", "queue=research", "namespace=team-research", "kind=Job"):
        assert part in address
    page.reload()
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "3")
    expect(page.get_by_label("Filter by cluster")).to_have_value("onprem-hangzhou")


def test_columns_sort_one_way_then_the_other(page: Page) -> None:
    look(page, "workloads")
    gpus = page.get_by_role("columnheader", name="GPUs")
    expect(page.get_by_role("columnheader", name="Time")).to_have_attribute(
        "aria-sort", "descending"
    )
    gpus.get_by_role("button").click()
    expect(gpus).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".line").first).to_contain_text(re.compile("too-large|queued-last"))
    gpus.get_by_role("button").click()
    expect(gpus).to_have_attribute("aria-sort", "ascending")
    expect(page.locator(".line").first).to_contain_text("hello")
    expect(page).to_have_url(re.compile(r"\?sort=-gpus$"))
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(page.locator(".line").first).to_contain_text("assistant")


def test_nothing_that_matches_is_said_and_led_out_of(page: Page) -> None:
    look(page, "workloads?queue=product&text=no-such-name")
    expect(page.get_by_text("Nothing matches")).to_contain_text("queue product")
    page.get_by_role("button", name=re.compile("^Show all")).click()
    expect(line(page, "pretrain")).to_be_visible()


def test_who_comes_back_from_a_workload_finds_the_list_as_it_was(page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 280})
    look(page, "workloads?sort=name&namespace=team-research")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", "5")
    grid.focus()
    page.keyboard.press("End")
    expect(line(page, "too-large")).to_be_in_viewport()
    where = grid.evaluate("box => box.scrollTop")
    page.keyboard.press("Enter")
    expect(grid).to_be_hidden()
    expect(page).to_have_url(re.compile(r"too-large\?sort=name&namespace=team-research$"))
    page.keyboard.press("Escape")
    expect(grid).to_be_visible()
    expect(grid).to_have_js_property("scrollTop", where)
    assert where > 0
    expect(page.get_by_label("Filter by namespace")).to_have_value("team-research")
