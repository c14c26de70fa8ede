"""The fleet at a glance."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.looking import field
from tests.page.signing import keep, look, signed_in
from tests.page.workloads import job

CLUSTERS = "clusters.fairway.dev"
WORKLOADS = "workloads.fairway.dev"
pytestmark = pytest.mark.xdist_group("page, fleet")


def test_the_fleet_shows_models_clusters_and_nodes(page: Page) -> None:
    models = page.get_by_label("Capacity by GPU model")
    expect(models.get_by_role("row").filter(has_text="h100")).to_contain_text("32")
    expect(models.get_by_role("row").filter(has_text="h100")).to_contain_text("$4.10")
    card = page.get_by_role("article").filter(has_text="onprem-hangzhou")
    expect(card).to_contain_text("Ready")
    expect(card.get_by_role("img", name=re.compile("^h100: h100-0000: 0 of 8"))).to_be_visible()
    page.get_by_label("Grouped by").select_option("provider")
    expect(page.get_by_role("region", name="on-premises")).to_be_visible()
    keep(page, "fleet")


@pytest.mark.parametrize(
    ("way", "group", "member"),
    [
        pytest.param("region", "hangzhou", "onprem-hangzhou", id="by where they are"),
        pytest.param("health", "Ready", "onprem-hangzhou", id="by how they are"),
        pytest.param(
            "policy fairway-system/home-first",
            "home",
            "onprem-hangzhou",
            id="by the groups of a policy",
        ),
    ],
)
def test_clusters_stand_in_groups(page: Page, way: str, group: str, member: str) -> None:
    page.get_by_label("Grouped by").select_option(way)
    section = page.get_by_role("region", name=group, exact=True)
    expect(section.get_by_role("article").filter(has_text=member)).to_be_visible()


def test_fragments_tell_how_many_nodes_have_how_many_gpus_free(page: Page) -> None:
    table = page.get_by_label("Nodes by free GPUs")
    a100 = table.get_by_role("row").filter(has_text="a100")
    # A node of eight of which four are used has a piece of four.
    expect(a100).to_contain_text("GPUs")
    expect(a100.get_by_role("cell").nth(4)).not_to_have_text("·")


def test_a_cluster_is_found_and_looked_into(page: Page) -> None:
    page.get_by_label("Find a cluster").fill("hangzhou")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?find=hangzhou$"))
    page.get_by_role("link", name="onprem-hangzhou", exact=True).click()
    detail = page.get_by_role("complementary", name="Cluster")
    expect(detail.get_by_role("heading", name="onprem-hangzhou")).to_be_visible()
    expect(detail).to_contain_text("Last heard")
    expect(detail).to_contain_text("of 6 take pods")
    expect(detail.get_by_role("link", name="pretrain", exact=True)).to_be_visible()
    keep(page, "fleet-cluster")
    detail.get_by_role("link", name=re.compile(r"workloads? in the list")).click()
    expect(page).to_have_url(re.compile(r"#/workloads\?cluster=onprem-hangzhou$"))


def test_tiles_say_the_same_in_less_room(page: Page) -> None:
    shown = page.get_by_role("group", name="Shown as")
    shown.get_by_role("button", name="Tiles").click()
    tile = page.get_by_role("link", name=re.compile(r"^onprem-hangzhou"))
    expect(tile).to_contain_text("of 48 GPUs free")
    keep(page, "fleet-tiles")
    shown.get_by_role("button", name="Cards").click()
    expect(page.get_by_role("article").first).to_be_visible()


def test_what_starts_and_ends_is_seen_on_the_nodes(page: Page, client: Client) -> None:
    a100 = page.get_by_label("Capacity by GPU model").get_by_role("row").filter(has_text="a100")
    used = a100.get_by_role("cell").nth(1)
    before = int(used.inner_text())
    client.create(job("seen-on-nodes", team="product", pods=1, gpus=2, flavor="a100"))
    expect(used).to_have_text(str(before + 2))
    client.delete(WORKLOADS, "seen-on-nodes", namespace="team-product")
    expect(used).to_have_text(str(before))


def test_a_cluster_that_is_held_says_so(page: Page, client: Client) -> None:
    card = page.get_by_role("article").filter(has_text="onprem-hangzhou")
    try:
        client.patch(CLUSTERS, "onprem-hangzhou", {"spec": {"hold": "Hold"}})
        expect(card).to_contain_text("Held")
        expect(page.get_by_text("1 not ready")).to_be_visible()
    finally:
        client.patch(CLUSTERS, "onprem-hangzhou", {"spec": {"hold": "None"}})
    expect(card).to_contain_text("Ready")
    assert field(client, "pretrain", "status", "phase") == "Running"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_cluster_is_looked_into_on_a_phone(
    browser: Browser, hub: Hub, client: Client, theme: str
) -> None:
    watched = signed_in(browser, hub.url, hub.token, size=(390, 844), theme=theme)
    look(watched.page, "fleet/onprem-hangzhou")
    detail = watched.page.get_by_role("complementary", name="Cluster")
    expect(detail.get_by_role("link", name="pretrain", exact=True)).to_be_visible()
    keep(watched.page, f"phone-cluster-{theme}")
    width = watched.page.evaluate("document.documentElement.scrollWidth")
    detail.get_by_role("link", name="Close").click()
    expect(watched.page.get_by_role("heading", name="Fleet")).to_be_visible()
    watched.close()
    assert (width, watched.complaints) == (390, [])
