"""A hub that has nothing yet, on a small phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.hubs import hub_process
from tests.page.signing import keep, look, signed_in
from tests.ports import own_ports

WIDTH = 360
SAID = {
    "fleet": "No clusters yet.",
    "queues": "No queues yet.",
    "workloads": "No workloads yet.",
    "timeline": "Nothing ran in this time.",
    "services": "No services yet",
    "whatif": "Try changes on a copy of the fleet",
    "cost": "No accounts from",
}
pytestmark = pytest.mark.xdist_group("page, empty")


def is_narrow(page: Page) -> bool:
    widths = page.evaluate(
        "['html', 'header', 'main'].map((one) => document.querySelector(one).scrollWidth)"
    )
    return bool(max(widths) <= WIDTH)


def test_a_hub_without_anything_says_so_in_every_view_and_a_lost_one_fits_as_well(
    browser: Browser, tmp_path: Path
) -> None:
    (port,) = own_ports(1)
    with hub_process(tmp_path, port=port) as access:
        watched = signed_in(browser, access.server, access.token, size=(WIDTH, 740))
        page = watched.page
        for view, said in SAID.items():
            look(page, view)
            expect(page.get_by_text(said).first).to_be_visible()
            expect(page.get_by_text("Loading…")).to_have_count(0)
            keep(page, f"empty-{view}")
            assert is_narrow(page), view
        assert watched.complaints == []
    expect(page.get_by_text("Connection lost")).to_be_visible()
    keep(page, "empty-lost")
    assert is_narrow(page)
    watched.close()
