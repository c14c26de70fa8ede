"""A fleet of 500 clusters with 50,000 workloads, in one tab."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from bench import large
from fairway.app import Hub, HubOptions, open_hub
from fairway.client import Client
from fairway.client.synchronous import LoopThread
from tests.page.barriers import serious_barriers
from tests.page.looking import line
from tests.page.signing import Watched, keep, look, signed_in

CLUSTERS, WORKLOADS = 500, 50_000
LINES_MAX = 60  # of a list, whatever its length
pytestmark = pytest.mark.xdist_group("page, size")


async def _running(data: Path) -> AsyncGenerator[Hub, None]:
    await large.fill(data, clusters=CLUSTERS, workloads=WORKLOADS)
    async with open_hub(HubOptions(data=data, port=0, has_controllers=False)) as hub:
        yield hub


@pytest.fixture(scope="module")
def large_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that decides nothing, on a fleet that was put on its disk."""
    loop = LoopThread()
    yield from loop.iterate(_running(tmp_path_factory.mktemp("large")))
    loop.stop()


@pytest.fixture(scope="module")
def tab(browser: Browser, large_hub: Hub) -> Iterator[Watched]:
    """Where everything is read once: each test goes to an address of its own in it."""
    watched = signed_in(browser, large_hub.url, large_hub.token)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    yield watched
    watched.close()


@pytest.fixture
def page(tab: Watched) -> Iterator[Page]:
    """The tab as it is when somebody has just come."""
    tab.page.emulate_media(color_scheme="light", reduced_motion="reduce")
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    look(tab.page, "fleet")
    expect(tab.page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()
    yield tab.page
    assert _unexpected(tab) == []


def _unexpected(watched: Watched) -> list[str]:
    """Nobody answers questions here, and the browser says so of its own accord."""
    return [complaint for complaint in watched.complaints if "503" not in complaint]


def phases() -> Counter[str]:
    return Counter(map(large.phase_of, range(WORKLOADS)))


def counted(page: Page, state: str) -> str:
    states = page.get_by_label("Filter by state")
    return states.get_by_role("button").filter(has_text=state).inner_text().split()[-1]


def test_the_list_reaches_its_last_line_with_few_elements(page: Page) -> None:
    look(page, "workloads?sort=name")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(WORKLOADS + 1))
    names = sorted((large.workload_name(index), index) for index in range(WORKLOADS))
    expect(line(page, names[0][0])).to_be_visible()
    grid.focus()
    page.keyboard.press("End")
    last = line(page, names[-1][0])
    expect(last).to_be_in_viewport()
    expect(last).to_have_attribute("aria-rowindex", str(WORKLOADS + 1))
    expect(grid).to_have_attribute("aria-activedescendant", last.get_attribute("id") or "")
    assert page.locator(".line").count() <= LINES_MAX
    keep(page, "large-list")
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    expect(line(page, names[0][0])).to_be_in_viewport()
    assert page.locator(".line").count() <= LINES_MAX


def test_counts_are_true_and_a_search_finds_the_one(page: Page) -> None:
    look(page, "workloads")
    # They come in pages; counts are those of what has come.
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(WORKLOADS + 1))
    expected = phases()
    # Some found no room in their cluster and wait again.
    assert counted(page, "All") == f"{WORKLOADS:,}"
    for state in ("Succeeded", "Failed", "Cancelled", "Held"):
        assert counted(page, state) == f"{expected[state]:,}"
    name = large.workload_name(WORKLOADS - 7)
    page.get_by_label("Search workloads").fill(name)
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "2")
    expect(line(page, name)).to_be_visible()
    assert counted(page, "All") == "1"
    page.get_by_label("Search workloads").fill("nobody has this name")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Show all 50,000").click()
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(WORKLOADS + 1))


def test_what_changes_comes_by_itself_and_what_is_read_stays(page: Page, large_hub: Hub) -> None:
    look(page, "workloads?sort=name&queue=queue-07")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(WORKLOADS // large.TEAMS + 1))
    grid.evaluate("box => { box.scrollTop = 6000 }")
    expect(page.locator(".line").first).not_to_have_attribute("aria-rowindex", "2")
    read = page.locator(".line").nth(10).get_by_role("link").inner_text()
    where = line(page, read).bounding_box()
    with Client.connect(str(large_hub.kubeconfig)) as client:
        made = {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "aaa-first", "namespace": "default"},
            "spec": {"queue": "queue-07", "podSets": [{"name": "main", "count": 1}]},
        }
        client.create(made)
        expect(grid).to_have_attribute("aria-rowcount", str(WORKLOADS // large.TEAMS + 2))
        assert line(page, read).bounding_box() == where
        client.delete("workloads.fairway.dev", "aaa-first", namespace="default")
        expect(grid).to_have_attribute("aria-rowcount", str(WORKLOADS // large.TEAMS + 1))
        assert line(page, read).bounding_box() == where


def test_a_board_of_many_clusters_is_dense_and_each_can_be_found(page: Page) -> None:
    tiles = page.locator("[data-cluster]")
    expect(tiles).to_have_count(CLUSTERS)
    gpus = 8 * sum(map(large.nodes_of, range(CLUSTERS)))
    expect(page.get_by_text(f"of {gpus:,} GPUs in use")).to_be_visible()
    keep(page, "large-board")
    page.get_by_label("Find a cluster").fill(large.cluster_name(321))
    expect(tiles).to_have_count(1)
    tiles.click()
    detail = page.get_by_role("complementary", name="Cluster")
    expect(detail.get_by_role("heading", name=large.cluster_name(321))).to_be_visible()
    expect(detail).to_contain_text(f"of {large.nodes_of(321)} take pods")
    keep(page, "large-cluster")
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()


def test_many_clusters_as_cards_are_drawn_when_they_come_near(page: Page) -> None:
    page.get_by_role("group", name="Shown as").get_by_role("button", name="Cards").click()
    expect(page.get_by_role("article").first).to_be_visible()
    assert page.get_by_role("article").count() < CLUSTERS // 4
    region = page.get_by_role("region", name="Fleet at a glance")
    region.evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(page.locator("[data-cluster]").last).to_be_in_viewport()
    assert page.get_by_role("article").count() < CLUSTERS // 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_dense_board_has_no_serious_barrier(page: Page, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    expect(page.locator("[data-cluster]")).to_have_count(CLUSTERS)
    keep(page, f"large-board-{theme}")
    assert serious_barriers(page) == []


def test_a_dense_board_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("[data-cluster]")).to_have_count(CLUSTERS)
    keep(page, "phone-large-board")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    look(page, "workloads")
    expect(page.locator(".line").first).to_be_visible()
    keep(page, "phone-large-list")
