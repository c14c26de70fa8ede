"""A hub that goes and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fairway.client import Client
from tests.page.hubs import hub_process
from tests.page.looking import line
from tests.page.signing import look, signed_in
from tests.page.workloads import job
from tests.ports import own_ports

MISSED = {"name": "missed", "namespace": "default"}
pytestmark = pytest.mark.xdist_group("page, connection")


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
