"""A real browser on a real hub with the demo fleet.

Without a Chromium on the machine these tests are skipped by name; `FAIRWAY_REQUIRE_BROWSER=1` makes
that a failure. `FAIRWAY_SCREENSHOTS=FOLDER` keeps what the browser shows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from fairway.app import Hub
from fairway.client import Client
from tests.page.hubs import demo_hub
from tests.page.required import ARGUMENTS, skip_or_fail
from tests.page.signing import Tab, Watched
from tests.page.workloads import WORKLOADS
from tests.waiting import seen_at_last

WORKLOADS_KIND = "workloads.fairway.dev"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a browser are tests of real parts."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with its module: while it is there its thread has an event loop, and so no test of ours
    could have another."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        skip_or_fail("no Chromium on this machine: tools/chromium installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    yield from demo_hub(tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="session")
def client(hub: Hub) -> Iterator[Client]:
    with Client.connect(str(hub.kubeconfig)) as client:
        for workload in WORKLOADS:
            client.create(workload)
        yield client
        # A real process outlives its hub; this one is ended with the tests.
        client.patch(WORKLOADS_KIND, "hello", {"spec": {"cancelled": True}}, namespace="default")
        seen_at_last(
            lambda: client.get(WORKLOADS_KIND, "hello", namespace="default").get("status", {}),
            lambda status: status.get("phase") == "Cancelled",
            "the end of the process",
        )


@pytest.fixture(scope="module")
def tab(browser: Browser, hub: Hub, client: Client) -> Iterator[Tab]:
    tab = Tab(browser, hub.url, hub.token)
    yield tab
    tab.close()


@pytest.fixture
def watched(tab: Tab) -> Iterator[Watched]:
    """A page with somebody signed in; whatever the console complains of fails the test."""
    yield from tab.watched()


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page
