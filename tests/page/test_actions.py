"""What can be done to a workload."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.looking import WORKLOADS, field, open_workload
from tests.page.signing import look
from tests.page.workloads import job

pytestmark = pytest.mark.xdist_group("page")


def test_suspend_and_resume(page: Page, client: Client) -> None:
    open_workload(page, "evaluate")
    page.get_by_role("button", name="Suspend").click()
    expect(page.get_by_text("It is suspended.")).to_be_visible()
    assert field(client, "evaluate", "spec", "hold") == "HoldAndDrain"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It goes on.")).to_be_visible()
    assert field(client, "evaluate", "spec", "hold") == "None"


def test_another_priority(page: Page, client: Client) -> None:
    open_workload(page, "queued-last")
    page.get_by_role("button", name="Priority…").click()
    page.get_by_label("Higher goes first").fill("7")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("Its priority is 7.")).to_be_visible()
    assert field(client, "queued-last", "spec", "priority") == 7


def test_another_queue(page: Page, client: Client) -> None:
    client.create(job("wanders", team="research", pods=4))
    open_workload(page, "wanders")
    page.get_by_role("button", name="Queue…").click()
    page.get_by_label("Queue to wait in").select_option("product")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("It waits in queue product.")).to_be_visible()
    assert field(client, "wanders", "spec", "queue") == "product"
    client.delete(WORKLOADS, "wanders", namespace="team-research")


def test_cancel_and_resubmit(page: Page, client: Client) -> None:
    client.create(job("again", team="research", pods=4))
    open_workload(page, "again")
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_text("It is cancelled.")).to_be_visible()
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    assert field(client, "again", "spec", "cancelled") is True
    page.get_by_role("button", name="Resubmit…").click()
    page.get_by_role("button", name="Submit again").click()
    expect(page.get_by_role("heading", name=re.compile("^again-again-"))).to_be_visible()
    name = page.get_by_role("heading", level=1).filter(has_text="again-again-").inner_text()
    assert field(client, name, "spec", "cancelled") == {}
    look(page, "fleet")
    expect(page.get_by_role("heading", name="Clusters")).to_be_visible()
    for one in ("again", name):
        client.delete(WORKLOADS, one, namespace="team-research")
