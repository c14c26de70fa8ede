"""The fleet at a glance."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.signing import keep

pytestmark = pytest.mark.xdist_group("page")


def test_the_fleet_shows_models_clusters_and_nodes(page: Page) -> None:
    models = page.get_by_label("Capacity by GPU model")
    expect(models.get_by_role("row").filter(has_text="h100")).to_contain_text("32")
    card = page.get_by_role("article").filter(has_text="onprem-hangzhou")
    expect(card).to_contain_text("Ready")
    expect(card.get_by_role("img", name=re.compile("^h100: h100-0000: 0 of 8"))).to_be_visible()
    page.get_by_label("Grouped by").select_option("provider")
    expect(page.get_by_role("region", name="on-premises")).to_be_visible()
    keep(page, "fleet")
