"""What one may not see is neither shown nor asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from fairway.api.discretion import ANOTHER
from fairway.app import Hub
from fairway.client import Client
from fairway.client.synchronous import LoopThread
from tests.page.hubs import VISITOR_TOKEN
from tests.page.looking import VIEWS, line, open_workload, show
from tests.page.signing import Tab, Watched, keep, look, signed_in
from tests.two_teams import MEMBER_TOKEN, OURS, WORD, fill, running

pytestmark = pytest.mark.xdist_group("page, rights")
PARTS = ["overview", "pods", "logs", "events", "manifest"]
# Of one that never ran nobody has any output, which is told as such.
OPENED = [
    (name, part)
    for name in ("mine-waits", "mine-urgent", "mine-runs")
    for part in PARTS
    if (name, part) != ("mine-urgent", "logs")
]

HREFS = "links => links.map((one) => one.getAttribute('href'))"


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A fleet that two teams share."""
    loop = LoopThread()
    for hub in loop.iterate(running(tmp_path_factory.mktemp("teams"))):
        fill(hub)
        yield hub
    loop.stop()


@pytest.fixture(scope="module")
def seat(browser: Browser, teams: Hub) -> Iterator[Tab]:
    tab = Tab(browser, teams.url, MEMBER_TOKEN)
    yield tab
    tab.close()


@pytest.fixture
def member(seat: Tab) -> Iterator[Watched]:
    """Somebody of our team; whatever the console complains of fails the test."""
    yield from seat.watched()


def test_who_may_look_at_one_namespace_lands_there_and_asks_for_nothing_else(
    browser: Browser, hub: Hub, client: Client
) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    client.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "visitor", "namespace": "team-product"},
            "roleRef": role,
            "subjects": [{"apiGroup": role["apiGroup"], "kind": "User", "name": "visitor"}],
        }
    )
    watched = signed_in(browser, hub.url, VISITOR_TOKEN)
    page = watched.page
    expect(page.get_by_text("You may not see the clusters.")).to_be_visible()
    expect(page.locator("header").get_by_text("team-product")).to_be_visible()
    keep(page, "rights-one-namespace")
    look(page, "workloads")
    expect(line(page, "finetune")).to_be_visible()
    assert page.get_by_text("pretrain").count() == 0
    look(page, "queues")
    expect(page.get_by_text("You may not see how queues stand.")).to_be_visible()
    open_workload(page, "finetune", "team-product")
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    client.delete("rolebindings", "visitor", namespace="team-product")
    watched.close()
    assert watched.complaints == []


def test_a_phone_shows_whose_namespace_it_is(browser: Browser, teams: Hub) -> None:
    watched = signed_in(browser, teams.url, MEMBER_TOKEN, size=(390, 844))
    show(watched.page, "workloads")
    expect(watched.page.locator("header").get_by_text(OURS, exact=True)).to_be_visible()
    keep(watched.page, "rights-phone")
    width = watched.page.evaluate("document.documentElement.scrollWidth")
    watched.close()
    assert (width, watched.complaints) == (390, [])


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_tells_of_others(member: Watched, view: str) -> None:
    show(member.page, view)
    assert WORD not in member.page.content()
    keep(member.page, f"rights-{view}")


@pytest.mark.parametrize(("name", "part"), OPENED)
def test_no_part_of_ones_own_workload_tells_of_others(
    member: Watched, name: str, part: str
) -> None:
    below = "" if part == "overview" else f"/{part}"
    show(member.page, f"workloads/{OURS}/{name}{below}", name)
    assert WORD not in member.page.content()
    keep(member.page, f"rights-{name}-{part}")


def test_every_view_and_every_part_is_looked_at(member: Watched) -> None:
    """A new one must be added above."""
    open_workload(member.page, "mine-waits", OURS)

    def linked(name: str) -> list[str]:
        links = member.page.get_by_role("navigation", name=name).get_by_role("link")
        return [str(result).removeprefix("#/") for result in links.evaluate_all(HREFS)]

    assert linked("Views") == list(VIEWS)
    parts = [item.partition("mine-waits")[2].strip("/") for item in linked("Parts of the workload")]
    assert [part or "overview" for part in parts] == PARTS


def test_the_fleet_is_drawn_with_what_is_taken_on_each_node(member: Watched) -> None:
    page = member.page
    show(page, "fleet")
    expect(page.get_by_text("16 of 16 GPUs in use")).to_be_visible()
    cells = page.locator(".cell")
    expect(cells.first).to_be_visible()
    titles = " ".join(cells.nth(at).get_attribute("title") or "" for at in range(cells.count()))
    assert f"{OURS}/mine-" in titles
    assert WORD not in titles


def test_a_queue_shows_ones_own_place_in_its_line(member: Watched) -> None:
    page = member.page
    show(page, "queues")
    page.get_by_role("link", name="shared", exact=True).first.click()
    expect(page.get_by_role("link", name="mine-waits")).to_be_visible()
    expect(page.get_by_text(ANOTHER, exact=True).first).to_be_visible()
    assert WORD not in page.content()
    keep(page, "rights-line")


def test_who_waits_sees_when_and_not_for_whom(member: Watched) -> None:
    open_workload(member.page, "mine-waits", OURS)
    expect(member.page.get_by_text(ANOTHER).first).to_be_visible()


def test_who_was_preempted_sees_by_how_urgent_a_workload(member: Watched) -> None:
    open_workload(member.page, "mine-runs", OURS)
    said = f"{ANOTHER} in queue shared, priority 10"
    expect(member.page.get_by_text(said).first).to_be_visible()


def test_what_one_may_not_try_cannot_be_pressed_and_says_why(member: Watched) -> None:
    show(member.page, "whatif")
    button = member.page.get_by_role("button", name="Try it")
    expect(button).to_be_disabled()
    assert "You may not try" in (button.get_attribute("title") or "")
