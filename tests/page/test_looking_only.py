"""A page for looking only: a tab that is told so, or a hub that has no other page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub, SignInOptions
from fairway.client import Client
from tests.openid import real
from tests.page.hubs import demo_hub
from tests.page.looking import field, make_read_only, open_workload
from tests.page.signing import keep, look, opened, sign_in
from tests.page.workloads import WORKLOADS
from tests.ports import own_ports

pytestmark = pytest.mark.xdist_group("page, looking only")
TOKEN = "sessionStorage.getItem('fairway.token')"
# What somebody would try who opens the browser's tools: the page's own token, sent by hand.
BY_HAND = """async () => (await fetch(
    "/apis/fairway.dev/v1alpha1/namespaces/team-research/workloads/pretrain",
    {
        method: "PATCH",
        body: JSON.stringify({ spec: { priority: 77 } }),
        headers: {
            Authorization: `Bearer ${sessionStorage.getItem("fairway.token")}`,
            "Content-Type": "application/merge-patch+json",
        },
    },
)).status"""
ACTIONS = ("Suspend", "Priority…", "Queue…", "Cancel…", "Resubmit…")


def nothing_can_be_pressed(page: Page) -> None:
    open_workload(page, "pretrain")
    for name in ACTIONS:
        expect(page.get_by_role("button", name=name)).to_be_disabled()


def test_a_tab_that_is_told_to_look_only_changes_nothing_until_somebody_signs_in_again(
    browser: Browser, hub: Hub, client: Client
) -> None:
    watched = opened(browser, hub.url)
    page = watched.page
    sign_in(page, hub.token)
    open_workload(page, "pretrain")
    expect(page.get_by_role("button", name="Suspend")).to_be_enabled()
    make_read_only(page)
    nothing_can_be_pressed(page)
    expect(page.get_by_text("You may look, and not change it.")).to_be_visible()
    keep(page, "looking-only")
    page.reload()
    expect(page.get_by_text("Read-only", exact=True)).to_be_visible()
    nothing_can_be_pressed(page)
    assert hub.token not in page.evaluate("JSON.stringify(sessionStorage)")
    assert page.evaluate(BY_HAND) == 403
    assert field(client, "pretrain", "spec").get("priority", 0) != 77
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, hub.token)
    open_workload(page, "pretrain")
    expect(page.get_by_role("button", name="Suspend")).to_be_enabled()
    watched.close()
    assert [complaint for complaint in watched.complaints if "403" not in complaint] == []


def test_a_service_cannot_be_changed_either(browser: Browser, hub: Hub, client: Client) -> None:
    watched = opened(browser, hub.url)
    page = watched.page
    sign_in(page, hub.token)
    look(page, "services/team-serving/assistant")
    expect(page.get_by_role("button", name="Scale…")).to_be_enabled()
    make_read_only(page)
    expect(page.get_by_role("button", name="Scale…")).to_be_disabled()
    watched.close()
    assert watched.complaints == []


def test_who_only_looks_may_still_ask_what_if(browser: Browser, hub: Hub, client: Client) -> None:
    watched = opened(browser, hub.url)
    page = watched.page
    sign_in(page, hub.token)
    make_read_only(page)
    look(page, "whatif")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("region", name="What would be different")).to_be_visible()
    watched.close()
    assert watched.complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_says_that_one_only_looks_without_scrolling_sideways(
    browser: Browser, hub: Hub, client: Client, theme: str
) -> None:
    watched = opened(browser, hub.url, size=(390, 844), theme=theme)
    page = watched.page
    sign_in(page, hub.token)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    keep(page, f"phone-before-looking-only-{theme}")
    make_read_only(page)
    keep(page, f"phone-looking-only-{theme}")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    watched.close()
    assert watched.complaints == []


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub whose page is for looking only, with a real provider."""
    real.demand()
    port = own_ports(1)[0]
    pages = [f"https://127.0.0.1:{port}/page/"]
    with real.running(tmp_path_factory.mktemp("provider"), pages) as provider:
        options = SignInOptions(openid=provider.settings(), is_page_read_only=True)
        for hub in demo_hub(tmp_path_factory.mktemp("read-only"), port=port, sign_in=options):
            with Client.connect(str(hub.kubeconfig)) as client:
                client.create(
                    next(
                        workload
                        for workload in WORKLOADS
                        if workload["metadata"]["name"] == "pretrain"
                    )
                )
                client.create(EVERYBODY)
            yield hub


EVERYBODY = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "everybody"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "company:everybody"}
    ],
}  # fmt: skip


@pytest.mark.parametrize("way", ["token", "provider"])
def test_a_hub_with_a_page_for_looking_only_lets_nobody_change_anything_there(
    browser: Browser, read_only: Hub, way: str
) -> None:
    watched = opened(browser, read_only.url)
    page = watched.page
    page.context.route(
        lambda url: not url.startswith("https://127.0.0.1:"), lambda route: route.fulfill(body="")
    )
    expect(page.get_by_text("This page is for looking only.")).to_be_visible()
    keep(page, "sign-in-read-only")
    if way == "token":
        page.get_by_label("Token").fill(read_only.token)
        page.get_by_role("button", name="Sign in with the token").click()
    else:
        real.sign_in(page, "bob")
    expect(page.get_by_text("Read-only", exact=True)).to_be_visible()
    nothing_can_be_pressed(page)
    assert page.get_by_role("button", name="Read-only").count() == 0
    assert read_only.token not in page.evaluate("JSON.stringify(sessionStorage)")
    assert page.evaluate(TOKEN).startswith("look-only.")
    assert page.evaluate(BY_HAND) == 403
    with Client.connect(str(read_only.kubeconfig)) as client:
        assert field(client, "pretrain", "spec").get("priority", 0) != 77
    watched.close()
    assert [complaint for complaint in watched.complaints if "403" not in complaint] == []
