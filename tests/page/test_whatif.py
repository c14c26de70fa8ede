"""What if: changes tried on a copy, with the plan that `fairway plan` makes of the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub
from fairway.client import Client
from tests.page.hubs import VISITOR_TOKEN
from tests.page.looking import WORKLOADS, field
from tests.page.signing import keep, look, signed_in
from tests.page.trying import chosen, copied, lost, manifests, new, quota, service, workload
from tests.waiting import seen_at_last

pytestmark = pytest.mark.xdist_group("page, whatif")
KINDS = ("queues", "flavors", "clusters", "placementpolicies")
FAIRWAY = f'fairway() {{ "{sys.executable}" -m fairway.cli.main "$@"; }}\n'


def answered(page: Page, act: Callable[[Page], None]) -> dict[str, Any]:
    """What the hub says of a change that is made by hand."""
    with page.expect_response("**/fleets/fleet/whatif") as told:
        act(page)
    answer: dict[str, Any] = told.value.json()
    return answer


def at_a_terminal(page: Page, hub: Hub, folder: Path) -> dict[str, Any]:
    """The plan that the commands make which the page shows."""
    commands = page.get_by_label("Commands", exact=True).text_content()
    done = subprocess.run(
        ["bash", "-euc", f"{FAIRWAY}{commands} -o json"],
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(hub.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plan: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return plan


def versions(client: Client) -> dict[str, Any]:
    """Everything that a change could have touched."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for item in client.list(f"{kind}.fairway.dev").items:
            found[f"{kind} {item['metadata']['name']}"] = item["metadata"]["generation"]
    for entry in client.list(WORKLOADS).items:
        claim = entry.get("status", {}).get("claim")
        found[entry["metadata"]["name"]] = (entry["metadata"]["generation"], claim)
    return found


@pytest.fixture
def settled(client: Client) -> None:
    """All that can start has started, so that nothing is decided while one looks."""
    names = {
        "pretrain": "team-research",
        "finetune": "team-product",
        "evaluate": "team-research",
        "assistant": "team-serving",
        "hello": "default",
    }
    seen_at_last(
        lambda: [field(client, name, "status", "phase", namespace=names[name]) for name in names],
        lambda phases: all(phase == "Running" for phase in phases),
        "that all run",
    )


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    ("act", "said"),
    [
        pytest.param(workload, "team-product/try-me", id="a workload"),
        pytest.param(service, "starts in cloud-west", id="a service"),
        pytest.param(manifests, "team-product/tried", id="a workload as manifests"),
        pytest.param(quota, "research owns 64 h100 instead of 16", id="another quota"),
        pytest.param(lost, "loses its place", id="a lost cluster"),
        pytest.param(copied, "would be expected sooner", id="a copy of a cluster"),
        pytest.param(new, "with 3 nodes of h100, in hangzhou", id="a new cluster"),
    ],
)
def test_the_plan_with_a_change_is_that_of_the_commands_shown(
    page: Page, hub: Hub, client: Client, tmp_path: Path, act: Callable[[Page], None], said: str
) -> None:
    before = versions(client)
    look(page, "whatif")
    answer = answered(page, act)
    outcome = page.get_by_label("What would be different")
    expect(page.locator("main")).to_contain_text(said)
    expect(outcome).to_contain_text(f"{len(answer['after']['waiting'])} waiting.")
    for item in answer["touched"]:
        expect(outcome.get_by_role("row").filter(has_text=item["workload"])).to_be_visible()
    assert at_a_terminal(page, hub, tmp_path) == answer["after"]
    assert versions(client) == before


@pytest.mark.usefixtures("settled")
def test_several_changes_are_tried_together_and_taken_back_one_by_one(
    page: Page, hub: Hub, tmp_path: Path
) -> None:
    look(page, "whatif")
    answered(page, lost)
    answered(page, copied)
    answer = answered(page, workload)
    changes = page.get_by_label("Changes", exact=True)
    expect(changes.get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_label("What would be different")).to_contain_text("would run elsewhere")
    expect(page.get_by_label("GPUs by cluster")).to_contain_text("new-cluster-2")
    assert at_a_terminal(page, hub, tmp_path) == answer["after"]
    keep(page, "whatif-changed")
    page.get_by_role("button", name="Remove: onprem-hangzhou is lost").click()
    expect(changes.get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_label("Commands", exact=True)).not_to_contain_text("lose:")
    page.get_by_role("button", name="Remove all").click()
    expect(changes).to_have_count(0)
    expect(page.get_by_label("Commands", exact=True)).to_have_count(0)


def test_a_change_that_cannot_be_made_is_told_with_its_field(
    browser: Browser, hub: Hub, client: Client
) -> None:
    watched = signed_in(browser, hub.url, hub.token)
    page = watched.page
    look(page, "whatif")
    chosen(page, "A new cluster")
    page.get_by_label("Name", exact=True).fill("cloud-east")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "clusters[0].name: there is a cluster cloud-east already"
    )
    watched.close()
    assert [complaint for complaint in watched.complaints if "400" not in complaint] == []


def test_who_lacks_the_right_reads_a_sentence(browser: Browser, hub: Hub, client: Client) -> None:
    watched = signed_in(browser, hub.url, VISITOR_TOKEN)
    look(watched.page, "whatif")
    expect(watched.page.get_by_role("note")).to_contain_text("You may not try changes")
    expect(watched.page.get_by_role("button", name="Try it")).to_be_disabled()
    watched.close()
    assert [complaint for complaint in watched.complaints if "403" not in complaint] == []
