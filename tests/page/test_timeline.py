"""Who had which GPUs when."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.signing import look

pytestmark = pytest.mark.xdist_group("page")


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
