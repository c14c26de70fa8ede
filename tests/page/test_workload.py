"""One workload: why it waits, what it does, where it is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.looking import is_in, leave, open_workload, remove
from tests.page.signing import keep, look, signed_in
from tests.page.workloads import job, many_pods, talkers

pytestmark = pytest.mark.xdist_group("page, workload")


def section(page: Page, heading: str) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", name=heading, exact=True))


def test_a_workload_that_waits_says_why_in_words_and_numbers(page: Page, client: Client) -> None:
    is_in(client, "pretrain", "Running")
    open_workload(page, "too-large")
    why = section(page, "Why it waits")
    expect(why).to_contain_text("24 h100")
    expect(why).to_contain_text(re.compile("needs 24 . h100 in one cluster"))
    row = why.get_by_role("row").filter(has=page.get_by_role("rowheader", name="onprem-hangzhou"))
    expect(row).to_contain_text("24 GPUs short")
    expect(row).to_contain_text("nothing to preempt")
    outside = why.get_by_role("row").filter(has_text="Not chosen by its policy (3)")
    outside.locator("summary").click()
    expect(outside).to_contain_text("cloud-west is not selected by its policy")
    keep(page, "why-alone")


def test_every_cluster_is_told_with_what_it_lacks_and_a_smaller_gang_is_tried_and_made(
    page: Page, client: Client
) -> None:
    is_in(client, "evaluate", "Running")
    wide = job("wide", team="product", pods=3, gpus=4, flavor="a100")
    client.create(wide | {"spec": wide["spec"] | {"policy": "home-first"}})
    open_workload(page, "wide", "team-product")
    why = section(page, "Why it waits")
    expect(why.get_by_role("rowheader").first).to_contain_text("cloud-east")
    head = page.get_by_role("rowheader", name="cloud-east")
    nearest = why.get_by_role("row").filter(has=head)
    expect(nearest).to_contain_text("4 GPUs short")
    expect(nearest).to_contain_text("no elastic pool")
    expect(why.get_by_role("button", name="Accept h100…")).to_be_enabled()
    why.scroll_into_view_if_needed()
    keep(page, "why")
    why.get_by_role("button", name="Run 2 pods…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Try it first").click()
    expect(dialog.get_by_text("It would start now in cloud-east.")).to_be_visible()
    dialog.get_by_role("button", name="Change it").click()
    is_in(client, "wide", "Running", "team-product")
    expect(section(page, "Why here")).to_contain_text("cloud-east")
    leave(page)
    remove(client, "wide", "team-product")


def test_a_step_of_the_ladder_tells_more_when_it_is_pressed(page: Page, client: Client) -> None:
    is_in(client, "pretrain", "Running")
    open_workload(page, "too-large")
    cell = page.get_by_role("button", name="nothing to preempt")
    expect(cell).to_have_attribute("aria-expanded", "false")
    cell.press("Enter")
    expect(cell).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_text("onprem-hangzhou: preemption cannot free enough")).to_be_visible()


def test_a_template_that_a_cluster_refuses_is_told_with_what_the_cluster_said(
    page: Page, client: Client
) -> None:
    faults = {"faults": {"refusedImages": ["unsigned"]}}
    client.patch("clusters.fairway.dev", "onprem-hangzhou", {"spec": {"simulated": faults}})
    unsigned = job("unsigned", team="product", pods=1, gpus=1, flavor="a100")
    (manifest,) = unsigned["spec"]["template"]["manifests"]
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "unsigned"
    client.create(unsigned)
    open_workload(page, "unsigned", "team-product")
    why = section(page, "Why it waits")
    expect(why).to_contain_text(re.compile("onprem-hangzhou.*[Rr]efused its template", re.DOTALL))
    expect(section(page, "Timeline")).to_contain_text("denied the request: unsigned")
    keep(page, "workload-refused")
    leave(page)
    remove(client, "unsigned", "team-product")
    none: dict[str, object] = {"faults": {"refusedImages": []}}
    client.patch("clusters.fairway.dev", "onprem-hangzhou", {"spec": {"simulated": none}})


def test_a_running_workload_shows_its_story_its_place_and_its_manifest(page: Page) -> None:
    open_workload(page, "pretrain")
    story = section(page, "Timeline")
    for word in ("Submitted", "Starting", "Running"):
        expect(story.get_by_text(word, exact=True)).to_be_visible()
    expect(section(page, "Why here")).to_contain_text("there was idle room")
    place = section(page, "Placement and pods")
    expect(place.get_by_role("row").filter(has_text="onprem-hangzhou")).to_contain_text("16")
    keep(page, "workload-running")
    page.get_by_role("link", name="manifest").click()
    expect(page.get_by_label("Manifest", exact=True)).to_contain_text("kind: Job")
    page.get_by_label("Which manifest").select_option(label="as dispatched to onprem-hangzhou")
    expect(page.get_by_label("Manifest", exact=True)).to_contain_text("accelerator: h100")
    keep(page, "workload-manifest")
    page.get_by_role("link", name="events").click()
    expect(page.get_by_role("row").filter(has_text="Admit").first).to_be_visible()


def test_one_that_was_preempted_and_moved_keeps_its_whole_story(page: Page, client: Client) -> None:
    team = "team-product"
    moves = job("moves", team="product", pods=2, gpus=2, flavor="a100")
    moves["spec"] |= {"policy": "home-first"}
    urgent = job("urgent", team="product", pods=3, gpus=2, flavor="a100")
    urgent["spec"] |= {"priority": 100}
    client.create(moves)
    is_in(client, "moves", "Running", team)
    client.create(urgent)
    is_in(client, "urgent", "Running", team)
    is_in(client, "moves", "Running", team)
    open_workload(page, "moves", team)
    story = section(page, "Timeline")
    expect(story.get_by_text("Preempted", exact=True)).to_be_visible()
    expect(story.get_by_role("link", name=re.compile("for urgent"))).to_be_visible()
    expect(story.get_by_text("Moved", exact=True)).to_be_visible()
    for lane in ("queue product", "onprem-hangzhou", "cloud-east"):
        expect(story.locator(".lane", has_text=lane)).to_be_visible()
    keep(page, "workload-moved")
    look(page, f"workloads/{team}/urgent")
    expect(section(page, "Why here")).to_contain_text("moves was preempted for it")
    leave(page)
    for name in ("urgent", "moves"):
        remove(client, name, team)


def test_a_gang_of_many_pods_lists_them_by_name(page: Page, client: Client) -> None:
    client.create(many_pods("crowd", 64))
    is_in(client, "crowd", "Running")
    open_workload(page, "crowd", part="/pods")
    pods = page.get_by_role("region", name="Pods")
    expect(pods.get_by_role("button", name="Ready 64")).to_be_visible()
    expect(pods.get_by_role("row").filter(has_text="crowd-0")).to_contain_text("100-000")
    keep(page, "workload-pods")
    pods.get_by_label("Search pods").fill("crowd-63")
    expect(pods.get_by_text("1 pod of 64")).to_be_visible()
    pods.get_by_role("link", name="crowd-63").click()
    expect(page.get_by_label("Pod", exact=True)).to_have_value("crowd-63")
    expect(page.get_by_label("Output", exact=True)).to_contain_text("crowd-63 started on")
    leave(page)
    remove(client, "crowd")


def test_the_output_of_a_program_comes_as_it_is_written(page: Page) -> None:
    open_workload(page, "hello", "default", "/logs")
    expect(page.get_by_label("Output", exact=True)).to_contain_text("the first line")
    expect(page.get_by_text("Following", exact=True)).to_be_visible()


def test_the_output_of_any_pod_and_container_is_followed_stopped_and_searched(
    page: Page, client: Client
) -> None:
    client.create(talkers("talkers", 2))
    is_in(client, "talkers", "Running", "default")
    look(page, "workloads/default/talkers/logs?pod=talkers-1")
    output = page.get_by_label("Output", exact=True)
    expect(output).to_contain_text("I am 1")
    expect(output).to_contain_text("count 5")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped", exact=True)).to_be_visible()
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.get_by_text("Following", exact=True)).to_be_visible()
    expect(output).to_contain_text("count 20")
    page.get_by_label("Search in the output").fill("I am")
    expect(page.get_by_text("1 line", exact=True)).to_be_visible()  # nothing came twice
    page.get_by_label("Only these").check()
    expect(output.locator("mark")).to_have_text("I am")
    keep(page, "workload-logs")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.path().read_text().startswith("I am 1\ncount 1\n")
    page.get_by_label("Search in the output").fill("")
    page.get_by_label("Pod", exact=True).select_option("talkers-0")
    expect(output).to_contain_text("I am 0")
    page.get_by_label("Container").select_option("aside")
    expect(output).to_have_text("an aside")
    expect(page).to_have_url(re.compile(r"pod=talkers-0.*container=aside"))
    leave(page)
    remove(client, "talkers", "default")


def test_a_phone_shows_why_without_scrolling_sideways(
    browser: Browser, hub: Hub, client: Client
) -> None:
    watched = signed_in(browser, hub.url, hub.token, size=(390, 844), theme="dark")
    page = watched.page
    for part in ("", "/pods", "/logs", "/events", "/manifest"):
        look(page, f"workloads/team-research/pretrain{part}")
        expect(page.get_by_role("link", name=part[1:] or "overview", exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    open_workload(page, "too-large")
    expect(section(page, "Why it waits")).to_contain_text("Not chosen by its policy")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    keep(page, "phone-why")
    watched.close()
    assert watched.complaints == []
