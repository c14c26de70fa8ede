"""Who had which GPUs when."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.hubs import VISITOR_TOKEN
from tests.page.looking import WORKLOADS, field
from tests.page.signing import keep, look, signed_in
from tests.page.workloads import job
from tests.waiting import seen_at_last

pytestmark = pytest.mark.xdist_group("page, timeline")
RBAC = "rbac.authorization.k8s.io"


def test_the_timeline_draws_who_runs_and_who_is_expected(page: Page) -> None:
    look(page, "timeline?for=15+min")
    chart = page.get_by_label("Workloads by cluster")
    expect(chart.get_by_role("heading", name="onprem-hangzhou")).to_be_visible()
    expect(chart).to_contain_text("h100 32 of 32 GPUs")
    runs = re.compile("^team-[a-z]+.[a-z]+ runs: 16 GPUs h100 in onprem-hangzhou")
    expect(page.get_by_role("link", name=runs)).to_be_visible()
    page.get_by_role("button", name="24 h").click()
    page.get_by_role("button", name="Later").click()  # those who run do so for ten hours
    page.get_by_text("The same as a table").click()
    waits = page.get_by_role("row").filter(has_text=re.compile("too-large|queued-last"))
    expect(waits.first).to_contain_text("from about")
    keep(page, "timeline-ahead")
    page.get_by_role("button", name="Now").click()
    page.get_by_role("button", name="15 min").click()
    expect(page.get_by_label("Summary").get_by_role("listitem").first).to_contain_text(
        "onprem-hangzhou, h100: 32 of 32 GPUs in use"
    )
    page.get_by_text("The same as a table").click()
    keep(page, "timeline-cluster")
    page.get_by_role("button", name="By queue").click()
    by_queue = page.get_by_label("Workloads by queue")
    expect(by_queue.get_by_role("heading", name="research")).to_be_visible()
    expect(by_queue).to_contain_text("h100 16 GPUs, owns 16")
    keep(page, "timeline-queue")


def test_keys_go_from_span_to_span_and_open_the_workload(page: Page) -> None:
    look(page, "timeline?for=15+min")
    first = page.locator('[data-band="onprem-hangzhou h100"]')
    first.focus()
    expect(page.get_by_text("When", exact=True)).to_be_visible()  # the card of the span
    first.press("Home")
    before = first.get_attribute("aria-label")
    first.press("ArrowRight")
    expect(first).not_to_have_attribute("aria-label", before or "")
    first.press("ArrowDown")
    expect(page.locator('[data-band="onprem-hangzhou a100"]')).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    first.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("^(pretrain|finetune)$"))).to_be_visible()


def test_the_window_is_zoomed_and_moved(page: Page) -> None:
    look(page, "timeline?for=1+h")
    expect(page.get_by_label("Workloads by cluster")).to_be_visible()
    page.get_by_role("button", name="6 h").click()
    expect(page.get_by_role("button", name="6 h")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Earlier").click()
    now = page.get_by_role("button", name="Now")
    expect(now).to_have_attribute("aria-pressed", "false")
    now.click()
    expect(now).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("now", exact=True)).to_be_visible()
    box = page.get_by_role("link", name=re.compile("onprem-hangzhou, queue")).first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 200, box["y"] + 5, steps=5)
    page.mouse.up()
    expect(now).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()  # dragging opens nothing


def test_a_workload_that_is_deleted_stays_on_the_timeline(page: Page, client: Client) -> None:
    client.create(job("passing", team="product", pods=1, gpus=1, flavor="a100"))
    seen_at_last(
        lambda: field(client, "passing", "status", "phase", namespace="team-product"),
        lambda phase: phase == "Running",
        "that it runs",
    )
    client.delete(WORKLOADS, "passing", namespace="team-product")
    look(page, "timeline?for=15+min")
    page.get_by_text("The same as a table").click()
    passed = page.get_by_role("row").filter(has_text="team-product/passing")
    expect(passed).to_contain_text("was cancelled")


def test_names_of_other_namespaces_are_not_told(browser: Browser, hub: Hub, client: Client) -> None:
    """Who may look at the fleet and one namespace sees areas of all, and names of that one."""
    everywhere = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "looks-at-the-timeline"},
        "rules": [
            {"apiGroups": ["fairway.dev"], "resources": ["fleets/timeline"], "verbs": ["get"]}
        ],
    }
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": "visitor"}]
    bound = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "looks-at-the-timeline"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "looks-at-the-timeline"},
        "subjects": subjects,
    }
    within = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "looks-at-the-timeline", "namespace": "team-product"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": subjects,
    }
    for item in (everywhere, bound, within):
        client.create(item)
    try:
        watched = signed_in(browser, hub.url, VISITOR_TOKEN)
        page = watched.page
        look(page, "timeline?for=15+min")
        page.get_by_text("The same as a table").click()
        rows = page.get_by_role("row")
        expect(rows.filter(has_text="team-product/finetune")).to_contain_text("runs")
        expect(rows.filter(has_text="a workload of another namespace").first).to_be_visible()
        assert page.get_by_text("pretrain").count() == 0
        expect(page.get_by_label("Summary")).to_contain_text("32 of 32 GPUs in use")
        watched.close()
    finally:
        client.delete("clusterrolebindings.rbac.authorization.k8s.io", "looks-at-the-timeline")
        client.delete("clusterroles.rbac.authorization.k8s.io", "looks-at-the-timeline")
        client.delete(
            "rolebindings.rbac.authorization.k8s.io",
            "looks-at-the-timeline",
            namespace="team-product",
        )
