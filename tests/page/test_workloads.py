"""The list of workloads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.looking import WORKLOADS, line
from tests.page.signing import look
from tests.page.workloads import job

pytestmark = pytest.mark.xdist_group("page")


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
