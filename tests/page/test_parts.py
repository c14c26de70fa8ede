"""Views are fetched when they are needed, ahead of time where that costs nobody anything."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from fairway.app import Hub
from tests.page.signing import look, opened, sign_in

pytestmark = pytest.mark.xdist_group("page")


def test_a_view_that_is_gone_after_an_upgrade_loads_the_new_page_once(
    browser: Browser, hub: Hub
) -> None:
    watched = opened(browser, hub.url)
    page = watched.page
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))

    def renewed(route: Route) -> None:
        """The document of the next version, for whoever asks whether there is one."""
        if route.request.resource_type == "fetch":
            route.fulfill(body='<script type="module" src="/page/assets/index-next.js"></script>')
        else:
            route.continue_()

    page.route("**/assets/Queues-*.js", lambda route: route.fulfill(status=404))
    page.route("**/page/", renewed)
    sign_in(page, hub.token)
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    look(page, "queues")
    expect(page.get_by_role("alert")).to_have_text("Queues could not be loaded from the hub.")
    assert len(loads) == 1

    page.unroute_all()
    page.get_by_role("button", name="Load the page again").click()
    expect(page.get_by_role("heading", level=1, name="Queues")).to_be_visible()
    watched.close()


def test_a_page_that_has_been_open_for_a_moment_has_all_its_views(
    browser: Browser, hub: Hub
) -> None:
    watched = opened(browser, hub.url)
    page = watched.page
    with page.expect_response("**/assets/Cost-*.js"):  # the last that is fetched ahead
        sign_in(page, hub.token)
    page.route("**/assets/*", lambda route: route.abort())
    for view, title in (("queues", "Queues"), ("whatif", "What if"), ("cost", "Cost")):
        look(page, view)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    watched.close()
