"""Services."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.signing import look

pytestmark = pytest.mark.xdist_group("page")


def test_services_show_where_their_replicas_are_and_were(page: Page) -> None:
    look(page, "services")
    expect(page.get_by_role("row").filter(has_text="assistant")).to_contain_text(
        "onprem-hangzhou (6)"
    )
    expect(page.get_by_label("Replicas by cluster over time")).to_be_visible()
