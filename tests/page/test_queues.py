"""Queues: who owns, uses and waits."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.signing import keep, look

pytestmark = pytest.mark.xdist_group("page")


def test_queues_show_quota_shares_and_who_is_next(page: Page) -> None:
    look(page, "queues")
    expect(page.get_by_role("img", name=re.compile("^h100: owns 16, uses 16"))).to_have_count(2)
    page.get_by_role("button", name="research").click()
    expect(page.get_by_role("listitem").filter(has_text="too-large")).to_contain_text("h100")
    expect(page.get_by_label("Share of each queue over time")).to_be_visible()
    keep(page, "queues")
