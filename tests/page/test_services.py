"""Services: where their replicas are, what sets their number, and how new versions go out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.serving import (
    AUTOSCALERS,
    NAMESPACE,
    ROLLOUTS,
    WORKLOADS,
    Serving,
    autoscaler,
    image_of,
    measured,
    rollout,
    serving,
)
from tests.page.signing import keep, look
from tests.page.workloads import Object
from tests.waiting import seen_at_last

pytestmark = pytest.mark.xdist_group("page, services")


@contextmanager
def service(
    page: Page, client: Client, name: str, *others: Object, replicas: int = 4
) -> Iterator[Serving]:
    """A service to look at; nobody looks at it any more when it goes."""
    with serving(client, name, *others, replicas=replicas) as found:
        yield found
        look(page, "fleet")
        expect(page.get_by_role("heading", name="Clusters")).to_be_visible()


def opened(page: Page, name: str) -> None:
    look(page, f"services/{NAMESPACE}/{name}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def test_services_are_listed_with_where_their_replicas_are(page: Page) -> None:
    look(page, "services")
    line = page.get_by_role("row").filter(has_text="assistant")
    expect(line).to_contain_text("6 / 6 / 6")
    expect(line).to_contain_text("onprem-hangzhou (6)")
    expect(line.get_by_role("img", name="onprem-hangzhou 6")).to_be_visible()


def test_services_are_found_by_text_cluster_and_what_is_wrong(page: Page, client: Client) -> None:
    with service(page, client, "found", replicas=3):
        look(page, "services")
        names = page.get_by_role("row").get_by_role("link")
        expect(names).to_have_text(["assistant", "found"])
        page.get_by_label("Search services").fill("found")
        expect(names).to_have_text(["found"])
        page.get_by_label("Search services").fill("")
        page.get_by_role("button", name=re.compile("Bursting")).click()
        expect(names).to_have_text(["found"])
        expect(page.get_by_role("row").filter(has_text="found")).to_contain_text("bursts 1")
        page.get_by_role("button", name=re.compile("Bursting")).click()
        page.get_by_label("Order").select_option("wanted")
        expect(names).to_have_text(["assistant", "found"])
        page.get_by_label("Cluster", exact=True).select_option("cloud-east")
        expect(names).to_have_text(["found"])


def test_a_service_says_where_it_is_where_it_may_be_and_why(page: Page, client: Client) -> None:
    with service(page, client, "told"):
        opened(page, "told")
        expect(page.get_by_label("Replicas by cluster over time")).to_be_visible()
        ladder = page.get_by_role("region", name="Where it may be, in order")
        home = ladder.get_by_role("row").filter(has_text="onprem-hangzhou")
        expect(home).to_contain_text("preferred, so it is filled first")
        away = ladder.get_by_role("row").filter(has_text="cloud-east")
        expect(away.get_by_role("cell").nth(1)).to_have_text("2")
        spare = ladder.get_by_role("row").filter(has_text="cloud-west")
        expect(spare).to_contain_text("not needed: every replica has a place")
        expect(spare).to_contain_text("8 + 24 elastic")
        share = page.get_by_role("img", name=re.compile("^Share of the load"))
        expect(share).to_have_attribute("aria-label", re.compile("onprem-hangzhou 50%"))
        keep(page, "service-divided")


def test_a_service_without_room_for_all_says_what_is_missing(page: Page, client: Client) -> None:
    with service(page, client, "wide", replicas=2):
        client.patch(WORKLOADS, "wide", {"spec": {"flavors": ["a100"], "replicas": 12}},
                     namespace=NAMESPACE)  # fmt: skip
        opened(page, "wide")
        expect(page.get_by_text("2 more replicas are pending.")).to_be_visible()
        page.get_by_text("Why 2 replicas have no place").click()
        reasons = page.get_by_label("Replicas now").get_by_role("listitem")
        expect(reasons.filter(has_text="cloud-east")).to_have_count(3)
        keep(page, "service-lacking")


def test_another_number_of_replicas(page: Page, client: Client) -> None:
    with service(page, client, "grows", replicas=2) as found:
        opened(page, "grows")
        page.get_by_role("button", name="Scale…").click()
        page.get_by_label("Replicas in all clusters").fill("5")
        page.get_by_role("button", name="Scale it").click()
        expect(page.get_by_text("It is to have 5 replicas.")).to_be_visible()
        assert found.workload()["spec"]["replicas"] == 5
        expect(page.get_by_label("Replicas now")).to_contain_text(re.compile("Placed *5 *Ready *5"))


def test_pause_and_resume(page: Page, client: Client) -> None:
    with service(page, client, "pauses", rollout("pauses")) as found:
        found.reaches("Completed")
        opened(page, "pauses")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("It is paused:")).to_be_visible()
        assert found.rollout()["spec"]["paused"] is True
        expect(page.get_by_role("region", name="Rollout pauses")).to_contain_text("Paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_text("It goes on.")).to_be_visible()
        assert found.rollout()["spec"]["paused"] is False


def test_a_new_version_waits_for_an_approval_and_gets_it(page: Page, client: Client) -> None:
    with service(page, client, "rolls", rollout("rolls", approval="AfterCanary")) as found:
        found.reaches("Completed")
        opened(page, "rolls")
        found.update("serving:2")
        card = page.get_by_role("region", name="Rollout rolls")
        expect(card).to_contain_text("Waiting for approval: revision 2, batch 1 of 3")
        batches = card.get_by_role("list", name="Batches").get_by_role("listitem")
        expect(batches.nth(0)).to_contain_text(re.compile("Canary.*under way.*2 of 2"))
        expect(batches.nth(1)).to_contain_text(re.compile("Batch 2.*later.*0 of 2"))
        keep(page, "service-approval")
        page.get_by_role("button", name="Approve…").click()
        page.get_by_role("button", name="Approve it").click()
        expect(page.get_by_text("Batch 1 is approved.")).to_be_visible()
        expect(card).to_contain_text("Rolled out: revision 2")
        assert found.phase() == "Completed"
        assert found.rollout()["metadata"]["annotations"]["serving.fairway.dev/approved"] == "2.0"
        look(page, "services")
        line = page.get_by_role("row").filter(has_text="rolls")
        expect(line).to_contain_text(re.compile("rolled out *revision 2"))


def test_an_undo_brings_back_the_template_of_an_earlier_revision(
    page: Page, client: Client
) -> None:
    with service(page, client, "undone", rollout("undone")) as found:
        found.reaches("Completed")
        found.update("serving:2")
        seen_at_last(
            lambda: found.rollout()["status"],
            lambda status: status["phase"] == "Completed" and status["revision"] == 2,
            "the second revision everywhere",
        )
        opened(page, "undone")
        revisions = page.get_by_role("region", name="Revisions")
        revisions.get_by_role("button", name="Template").first.click()
        template = page.get_by_label("Template of revision 2")
        expect(template).to_contain_text(re.compile(r"- +image: serving:1\s+\+ +image: serving:2"))
        page.get_by_role("button", name="Undo…").click()
        page.get_by_label("Revision to go back to").select_option("1")
        page.get_by_role("button", name="Undo it").click()
        expect(page.get_by_text("The template of revision 1 rolls out again.")).to_be_visible()
        assert image_of(found.workload()) == "serving:1"
        expect(page.get_by_role("region", name="Rollout undone")).to_contain_text(
            "Rolled out: revision 3"
        )


def test_a_failed_version_can_be_tried_again(page: Page, client: Client) -> None:
    late = rollout("fails")
    late["spec"] |= {"onFailure": "Pause", "progressDeadlineSeconds": 1}
    with service(page, client, "fails", late) as found:
        found.reaches("Completed")
        client.patch(WORKLOADS, "fails", {"spec": {"replicas": 4}}, namespace=NAMESPACE)
        found.update("serving:2")
        found.reaches("Paused")
        opened(page, "fails")
        expect(page.get_by_role("region", name="Rollout fails")).to_contain_text("Stopped")
        client.patch(ROLLOUTS, "fails", {"spec": {"progressDeadlineSeconds": 600}},
                     namespace=NAMESPACE)  # fmt: skip
        page.get_by_role("button", name="Resume…").click()
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("It goes on.")).to_be_visible()
        expect(page.get_by_role("region", name="Rollout fails")).to_contain_text("Rolled out")
        assert "serving.fairway.dev/resumed" in found.rollout()["metadata"]["annotations"]


def test_an_autoscaler_is_seen_at_work(page: Page, client: Client) -> None:
    with measured(client) as told, service(page, client, "scaled", replicas=1) as found:
        client.create(autoscaler("scaled", most=4))
        opened(page, "scaled")
        card = page.get_by_role("region", name="Autoscaler scaled")
        expect(card).to_contain_text("1 to 4 replicas")
        expect(page.get_by_role("button", name="Scale…")).to_be_disabled()
        told["value"] = 14.0
        # A change of it is looked at at once, and not at the next quarter of a minute.
        client.patch(AUTOSCALERS, "scaled", {"spec": {"maxReplicas": 5}}, namespace=NAMESPACE)
        expect(card).to_contain_text(re.compile(r"3 asked for|1 → 3 asked for"))
        expect(card).to_contain_text("external metric requests_waiting is above its target")
        expect(card.get_by_role("img")).to_have_attribute(
            "aria-label", re.compile(r"^requests_waiting: .* target 5 for each replica$")
        )
        found.has(3)
        expect(page.get_by_label("Replicas now")).to_contain_text(re.compile("Placed *3 *Ready *3"))
        keep(page, "service-autoscaled")
        look(page, "services")
        line = page.get_by_role("row").filter(has_text="scaled")
        expect(line).to_contain_text(re.compile("3 of 1.5"))
        client.delete(AUTOSCALERS, "scaled", namespace=NAMESPACE)
