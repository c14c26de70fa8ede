"""The page in a real browser, as a person uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.hubs import VISITOR_TOKEN, hub_process
from tests.page.signing import Watched, keep, look, opened, sign_in, signed_in
from tests.page.workloads import job
from tests.ports import own_ports

WORKLOADS = "workloads.fairway.dev"
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
MISSED = {"name": "missed", "namespace": "default"}
VIEWS = ["fleet", "queues", "workloads", "timeline", "services", "whatif"]
pytestmark = pytest.mark.xdist_group("page")


def field(client: Client, name: str, *path: str, namespace: str = "team-research") -> Any:
    found: Any = client.get(WORKLOADS, name, namespace=namespace)
    for key in path:
        found = found.get(key, {})
    return found


def line(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def open_workload(page: Page, name: str, namespace: str = "team-research", part: str = "") -> None:
    look(page, f"workloads/{namespace}/{name}{part}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


# Signing in.


def test_a_browser_that_asks_for_the_hub_gets_the_page_and_nothing_of_the_fleet(
    browser: Browser, hub: Hub
) -> None:
    watched = opened(browser, hub.url)
    expect(watched.page.get_by_label("Token")).to_be_visible()
    assert watched.page.url == f"{hub.url}/page/"
    keep(watched.page, "sign-in")
    watched.close()
    assert watched.complaints == []


def test_a_token_that_the_hub_does_not_know_is_refused_in_words(browser: Browser, hub: Hub) -> None:
    watched = opened(browser, hub.url)
    sign_in(watched.page, "not-a-token")
    expect(watched.page.get_by_role("alert")).to_have_text("The hub does not know this token.")
    assert watched.page.evaluate("sessionStorage.length") == 0
    watched.close()


def test_the_token_stays_in_the_tab_and_out_of_every_address(hub: Hub, watched: Watched) -> None:
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    look(page, "workloads")
    expect(line(page, "pretrain")).to_be_visible()
    page.reload()
    expect(line(page, "pretrain")).to_be_visible()
    assert [one for one in [*asked, page.url] if hub.token in one] == []
    assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_signing_out_forgets_everything(page: Page) -> None:
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('fairway.token')") is None


# Views.


def test_the_fleet_shows_models_clusters_and_nodes(page: Page) -> None:
    models = page.get_by_label("Capacity by GPU model")
    expect(models.get_by_role("row").filter(has_text="h100")).to_contain_text("32")
    card = page.get_by_role("article").filter(has_text="onprem-hangzhou")
    expect(card).to_contain_text("Ready")
    expect(card.get_by_role("img", name=re.compile("^h100: h100-0000: 0 of 8"))).to_be_visible()
    page.get_by_label("Grouped by").select_option("provider")
    expect(page.get_by_role("region", name="on-premises")).to_be_visible()
    keep(page, "fleet")


def test_queues_show_quota_shares_and_who_is_next(page: Page) -> None:
    look(page, "queues")
    expect(page.get_by_role("img", name=re.compile("^h100: owns 16, uses 16"))).to_have_count(2)
    page.get_by_role("button", name="research").click()
    expect(page.get_by_role("listitem").filter(has_text="too-large")).to_contain_text("h100")
    expect(page.get_by_label("Share of each queue over time")).to_be_visible()
    keep(page, "queues")


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


def test_what_happens_in_the_fleet_comes_by_itself(page: Page, client: Client) -> None:
    look(page, "workloads")
    expect(line(page, "pretrain")).to_be_visible()
    client.create(job("arrived", team="product", pods=1, gpus=1, flavor="a100"))
    expect(line(page, "arrived")).to_contain_text("Running")
    client.delete(WORKLOADS, "arrived", namespace="team-product")
    expect(line(page, "arrived")).to_be_hidden()


def test_the_timeline_draws_who_runs_and_who_is_expected(page: Page) -> None:
    look(page, "timeline")
    chart = page.get_by_label("Workloads by cluster")
    expect(chart.get_by_role("link", name=re.compile("^pretrain · 16"))).to_be_visible()
    expect(chart.get_by_role("link", name="too-large", exact=False).first).to_be_visible()
    page.get_by_label("Group by").select_option("queue")
    expect(page.get_by_label("Workloads by queue").get_by_role("heading")).to_contain_text(
        ["playground", "product", "research", "serving"]
    )
    expect(page.get_by_label("GPUs in use by queue")).to_be_visible()


def test_services_show_where_their_replicas_are_and_were(page: Page) -> None:
    look(page, "services")
    expect(page.get_by_role("row").filter(has_text="assistant")).to_contain_text(
        "onprem-hangzhou (6)"
    )
    expect(page.get_by_label("Replicas by cluster over time")).to_be_visible()


def test_what_if_says_what_a_lost_cluster_and_a_new_workload_would_change(page: Page) -> None:
    look(page, "whatif")
    page.get_by_label("A lost cluster").check()
    page.get_by_label("Cluster", exact=True).select_option("onprem-hangzhou")
    page.get_by_role("button", name="Try it").click()
    outcome = page.get_by_label("What would be different")
    expect(outcome.get_by_role("listitem").filter(has_text="pretrain")).to_contain_text("waits")
    page.get_by_label("A workload").check()
    small = job("tried", team="product", pods=1, gpus=1, flavor="a100")
    page.get_by_label("Manifests").fill(json.dumps(small))
    page.get_by_role("button", name="Try it").click()
    expect(outcome.get_by_role("listitem").filter(has_text="team-product/tried")).to_contain_text(
        "starts: 1 pod on a100 in onprem-hangzhou"
    )
    page.get_by_label("Another quota").check()
    page.get_by_label("Queue", exact=True).select_option("research")
    page.get_by_label("Owns").fill("8")
    page.get_by_role("button", name="Try it").click()
    expect(outcome).to_contain_text("With the change")


# Actions.


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


# Rights, and what goes wrong.


def test_who_may_look_at_one_namespace_sees_that_one_alone(
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
    expect(page.get_by_role("alert").first).to_contain_text("You may not see")
    look(page, "workloads")
    page.get_by_label("Look in one namespace instead").fill("team-product")
    page.get_by_role("button", name="Look").click()
    expect(line(page, "finetune")).to_be_visible()
    assert page.get_by_text("pretrain").count() == 0
    open_workload(page, "finetune", "team-product")
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    watched.close()
    assert [one for one in watched.complaints if "403" not in one] == []


def test_a_lost_connection_is_told_and_what_was_missed_comes_with_its_return(
    browser: Browser, tmp_path: Path
) -> None:
    (port,) = own_ports(1)
    with hub_process(tmp_path, port=port) as access:
        watched = signed_in(browser, access.server, access.token)
        page = watched.page
        look(page, "workloads")
        expect(page.get_by_text("No workloads yet")).to_be_visible()
        assert watched.complaints == []
    expect(page.get_by_text("Connection lost, trying again")).to_be_visible()
    with hub_process(tmp_path, port=port):
        with Client(access) as client:
            client.create(job("missed", team="research", pods=1) | {"metadata": MISSED})
        expect(line(page, "missed")).to_be_visible()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        # What the browser said of the outage itself is to be expected.
        watched.complaints.clear()
        look(page, "queues")
        expect(page.get_by_role("heading", name="Queues")).to_be_visible()
        watched.close()
    assert watched.complaints == []


# Everybody.


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, "workloads/team-research/too-large"])
def test_a_view_has_no_serious_barrier(
    browser: Browser, hub: Hub, client: Client, view: str, theme: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in web/")
    watched = signed_in(browser, hub.url, hub.token, theme=theme)
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    expect(watched.page.get_by_role("heading", level=1).first).to_be_attached()
    watched.page.evaluate(AXE.read_text())
    found = watched.page.evaluate("axe.run()")
    keep(watched.page, f"{view.replace('/', '-')}-{theme}")
    watched.close()
    serious = [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_every_view_without_scrolling_sideways(
    browser: Browser, hub: Hub, client: Client, view: str
) -> None:
    watched = signed_in(browser, hub.url, hub.token, size=(390, 844))
    look(watched.page, view)
    expect(watched.page.get_by_text("Live", exact=True)).to_be_visible()
    width = watched.page.evaluate("document.documentElement.scrollWidth")
    keep(watched.page, f"phone-{view}")
    watched.close()
    assert (width, watched.complaints) == (390, [])


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
