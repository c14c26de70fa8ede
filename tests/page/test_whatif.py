"""What if."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.page.signing import look
from tests.page.workloads import job

pytestmark = pytest.mark.xdist_group("page")


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
