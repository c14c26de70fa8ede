"""What can be done to a workload."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.looking import field, is_in, leave, open_workload, remove
from tests.page.signing import Watched, keep
from tests.page.workloads import job

pytestmark = pytest.mark.xdist_group("page, actions")


def test_suspend_says_what_is_lost_and_resume_goes_on(page: Page, client: Client) -> None:
    client.create(job("rests", team="research", pods=1, flavor="a100", gpus=2))
    is_in(client, "rests", "Running")
    open_workload(page, "rests")
    page.get_by_role("button", name="Suspend…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 GPUs in onprem-hangzhou are freed.")
    expect(dialog).to_contain_text("of work since it last started is lost")
    keep(page, "workload-suspend")
    dialog.get_by_role("button", name="Suspend it").click()
    expect(page.get_by_text("It is suspended.")).to_be_visible()
    assert field(client, "rests", "spec", "hold") == "HoldAndDrain"
    is_in(client, "rests", "Held")
    button = page.get_by_role("button", name="Resume")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("It goes on.")).to_be_visible()
    is_in(client, "rests", "Running")
    leave(page)
    remove(client, "rests")


def test_one_that_runs_may_be_let_run_and_kept_from_starting_again(
    page: Page, client: Client
) -> None:
    client.create(job("lasts", team="research", pods=1, flavor="a100", gpus=2))
    is_in(client, "lasts", "Running")
    open_workload(page, "lasts")
    page.get_by_role("button", name="Suspend…").click()
    page.get_by_label("Let it run on.").check()
    page.get_by_role("button", name="Suspend it").click()
    expect(page.get_by_text("It runs on, and does not start again.")).to_be_visible()
    assert field(client, "lasts", "spec", "hold") == "Hold"
    assert field(client, "lasts", "status", "phase") == "Running"
    leave(page)
    remove(client, "lasts")


def test_one_that_waits_is_suspended_at_once(page: Page, client: Client) -> None:
    client.create(job("idles", team="research", pods=4))
    open_workload(page, "idles")
    page.get_by_role("button", name="Suspend", exact=True).click()
    expect(page.get_by_text("It is suspended.")).to_be_visible()
    assert field(client, "idles", "spec", "hold") == "HoldAndDrain"
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It goes on.")).to_be_visible()
    assert field(client, "idles", "spec", "hold") == "None"
    leave(page)
    remove(client, "idles")


def test_another_priority(page: Page, client: Client) -> None:
    client.create(job("hurries", team="research", pods=4))
    open_workload(page, "hurries")
    button = page.get_by_role("button", name="Priority…", exact=True)
    button.click()
    page.get_by_label("Higher goes first").fill("7")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("Its priority is 7.")).to_be_visible()
    expect(button).to_be_focused()
    assert field(client, "hurries", "spec", "priority") == 7
    leave(page)
    remove(client, "hurries")


def test_another_priority_is_tried_on_a_copy_first(page: Page, client: Client) -> None:
    open_workload(page, "queued-last")
    before = field(client, "queued-last", "spec", "priority")
    page.get_by_role("button", name="Raise its priority…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Higher goes first").fill("50")
    dialog.get_by_role("button", name="Try it first").click()
    expect(dialog.get_by_text("It would", exact=False)).to_be_visible()
    keep(page, "workload-try")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert field(client, "queued-last", "spec", "priority") == before


def test_a_flavor_that_would_let_it_start_is_accepted(page: Page, client: Client) -> None:
    client.create(job("takes-any", team="product", pods=1, gpus=4))
    open_workload(page, "takes-any", "team-product")
    page.get_by_role("button", name="Accept a100…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Try it first").click()
    expect(dialog.get_by_text("It would start now in onprem-hangzhou.")).to_be_visible()
    dialog.get_by_role("button", name="Accept it").click()
    expect(page.get_by_text("It accepts a100 as well.")).to_be_visible()
    is_in(client, "takes-any", "Running", "team-product")
    assert field(client, "takes-any", "spec", "flavors", namespace="team-product") == [
        "h100",
        "a100",
    ]
    leave(page)
    remove(client, "takes-any", "team-product")


def test_another_queue(page: Page, client: Client) -> None:
    client.create(job("wanders", team="research", pods=4))
    open_workload(page, "wanders")
    page.get_by_role("button", name="Queue…", exact=True).click()
    page.get_by_label("Queue to wait in").select_option("product")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("It waits in queue product.")).to_be_visible()
    assert field(client, "wanders", "spec", "queue") == "product"
    leave(page)
    remove(client, "wanders")


def test_one_that_is_deleted_meanwhile_says_so(watched: Watched, client: Client) -> None:
    page = watched.page
    client.create(job("vanishes", team="research", pods=4))
    open_workload(page, "vanishes")
    page.get_by_role("button", name="Priority…", exact=True).click()
    remove(client, "vanishes")
    expect(page.get_by_text("It is gone: it was deleted")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    # What the browser says of an answer that there is no such thing is to be expected.
    watched.complaints.clear()


def test_cancel_and_resubmit(page: Page, client: Client) -> None:
    client.create(job("again", team="research", pods=4))
    open_workload(page, "again")
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_text("It is cancelled.")).to_be_visible()
    expect(page.get_by_role("button", name="Resubmit…")).to_be_focused()
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    assert field(client, "again", "spec", "cancelled") is True
    page.get_by_role("button", name="Resubmit…").click()
    page.get_by_role("button", name="Submit again").click()
    expect(page.get_by_role("heading", name=re.compile("^again-again-"))).to_be_visible()
    name = page.get_by_role("heading", level=1).filter(has_text="again-again-").inner_text()
    assert field(client, name, "spec", "cancelled") == {}
    leave(page)
    for item in ("again", name):
        remove(client, item)
