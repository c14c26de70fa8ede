"""Signing in with a company's provider: its own pages, its groups, and no token in any address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.app import Hub, SignInOptions
from fairway.client import Client
from tests.openid import real
from tests.page.barriers import serious_barriers
from tests.page.hubs import demo_hub
from tests.page.looking import line, make_read_only, open_workload
from tests.page.signing import Watched, keep, look, opened
from tests.page.workloads import WORKLOADS
from tests.ports import own_ports
from tests.waiting import seen_at_last

pytestmark = pytest.mark.xdist_group("page, signing in by provider")
TOKEN = "sessionStorage.getItem('fairway.token')"
LASTING = "sessionStorage.getItem('fairway.lasting')"
RBAC = "rbac.authorization.k8s.io"
# What the page may load is the same however people sign in.
POLICY = "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'"


@dataclass(slots=True)
class Visit:
    """A browser at the page, and every address that it asked for."""

    watched: Watched
    asked: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.watched.page

    def holds_no_secret(self) -> bool:
        """Whether neither token nor anything else that signs in was ever part of an address."""
        token = self.page.evaluate(TOKEN)
        assert token
        whole = "\n".join([*self.asked, self.page.url])
        return token not in whole and "id_token" not in whole and "refresh" not in whole


@pytest.fixture(scope="module")
def provided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that knows a real provider, which knows where the hub's page is."""
    real.demand()
    port = own_ports(1)[0]
    pages = [f"https://127.0.0.1:{port}/page/"]
    with real.running(tmp_path_factory.mktemp("provider"), pages) as provider:
        options = SignInOptions(openid=provider.settings())
        for hub in demo_hub(tmp_path_factory.mktemp("provided"), port=port, sign_in=options):
            with Client.connect(str(hub.kubeconfig)) as client:
                client.create(binding("research", "edit"))
                client.create(
                    next(workload for workload in WORKLOADS if named(workload) == "pretrain")
                )
            yield hub


def named(one: dict[str, Any]) -> str:
    return str(one["metadata"]["name"])


def binding(group: str, role: str) -> dict[str, object]:
    """Rights for a group of the provider, everywhere."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": group},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": f"company:{group}"}],
    }


@pytest.fixture
def visit(browser: Browser, provided: Hub) -> Iterator[Visit]:
    watched = opened(browser, provided.url)
    visit = Visit(watched)
    # The provider's pages want letters from elsewhere, which a test does without.
    watched.page.context.route(
        lambda url: not url.startswith("https://127.0.0.1:"), lambda route: route.fulfill(body="")
    )
    watched.page.context.on("request", lambda request: visit.asked.append(request.url))
    yield visit
    watched.close()
    # Who has no rights is told so by the hub, and browsers write that down as an error.
    assert [
        complaint
        for complaint in watched.complaints
        if "403" not in complaint and "401" not in complaint
    ] == []


def signed_in_as(visit: Visit, name: str) -> Page:
    real.sign_in(visit.page, name)
    expect(visit.page.get_by_text(f"{name}@example.com", exact=True)).to_be_visible()
    return visit.page


def renewed(page: Page) -> None:
    """Lets an hour of the browser pass, but for a moment, and waits for the renewal in it.

    The token itself may be the same, letter by letter, if the provider signs twice in a second.
    """
    before = page.evaluate(LASTING)
    page.clock.fast_forward("59:30")
    seen_at_last(
        lambda: page.evaluate(LASTING), lambda item: bool(item) and item != before, "a renewal"
    )


def test_the_provider_is_offered_beside_the_token(visit: Visit) -> None:
    expect(visit.page.get_by_role("button", name="Sign in with Example")).to_be_visible()
    expect(visit.page.get_by_label("Token")).to_be_visible()
    keep(visit.page, "sign-in-provider")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_signing_in_has_no_serious_barrier(browser: Browser, provided: Hub, theme: str) -> None:
    watched = opened(browser, provided.url, theme=theme, size=(390, 844))
    page = watched.page
    expect(page.get_by_role("button", name="Sign in with Example")).to_be_visible()
    keep(page, f"phone-sign-in-{theme}")
    found = serious_barriers(page)
    watched.close()
    assert found == []


def test_who_signs_in_there_has_the_rights_of_their_groups_here(visit: Visit) -> None:
    look(visit.page, "workloads")
    page = signed_in_as(visit, "ann")
    expect(line(page, "pretrain")).to_be_visible()  # where one was before the way to the provider
    assert page.url.endswith("/page/#/workloads")
    open_workload(page, "pretrain")
    expect(page.get_by_role("button", name="Suspend")).to_be_enabled()
    assert visit.holds_no_secret()
    kept = page.evaluate("JSON.stringify(localStorage) + document.cookie")
    assert page.evaluate(TOKEN) not in kept
    page.reload()
    expect(page.get_by_text("ann@example.com")).to_be_visible()
    assert [item for item in visit.asked if "code=" in item and "/page/?" not in item] == []
    keep(page, "signed-in-by-provider")


def test_who_has_no_rights_here_is_shown_nothing(visit: Visit) -> None:
    page = signed_in_as(visit, "bob")
    expect(page.get_by_text("You may not see the clusters.")).to_be_visible()
    look(page, "workloads")
    expect(page.get_by_text("You may not see workloads of all namespaces.")).to_be_visible()
    assert page.get_by_text("pretrain").count() == 0


def test_who_is_refused_by_the_hub_learns_why(visit: Visit) -> None:
    real.sign_in(visit.page, "eve")
    expect(visit.page.get_by_role("alert")).to_have_text(
        "You are not signed in: the claim department is required to be 'models' and is not"
    )
    assert visit.page.url.endswith("/page/")
    assert visit.page.evaluate(TOKEN) is None
    keep(visit.page, "sign-in-refused")


def test_who_turns_back_at_the_provider_is_told_so(visit: Visit) -> None:
    visit.page.get_by_role("button", name="Sign in with Example").click()
    visit.page.get_by_role("link", name="Cancel").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("Example says: You were not let in")
    assert visit.page.url.endswith("/page/")


def test_a_sign_in_that_began_elsewhere_is_not_finished_here(visit: Visit, provided: Hub) -> None:
    visit.page.goto(f"{provided.url}/page/?code=of-somebody-else&state=unknown")
    expect(visit.page.get_by_role("alert")).to_have_text(
        "This sign-in was not begun in this tab; sign in again."
    )
    assert visit.page.url == f"{provided.url}/page/"
    assert [item for item in visit.asked if item.endswith("/exchange")] == []


def test_a_sign_in_is_renewed_before_it_expires(visit: Visit) -> None:
    visit.page.clock.install()
    page = signed_in_as(visit, "ann")
    page.clock.fast_forward("58:00")
    assert [item for item in visit.asked if item.endswith("/renew")] == []
    for _ in range(2):  # what renews it was used up, and replaced, the first time
        renewed(page)
    assert len([item for item in visit.asked if item.endswith("/renew")]) == 2
    page.reload()
    expect(page.get_by_text("ann@example.com")).to_be_visible()
    assert visit.holds_no_secret()


def test_a_sign_in_that_cannot_be_renewed_ends_in_words(visit: Visit) -> None:
    page = signed_in_as(visit, "ann")
    renewing = [
        cooky["name"] for cooky in page.context.cookies() if "fairway" in cooky.get("name", "")
    ]
    for name in renewing:
        page.context.clear_cookies(name=name)
    page.clock.install()
    page.reload()
    expect(page.get_by_text("ann@example.com")).to_be_visible()
    page.clock.fast_forward("59:30")
    expect(page.get_by_role("alert")).to_contain_text("Your sign-in has ended")
    assert (len(renewing), page.evaluate(TOKEN)) == (1, None)


def test_signing_out_ends_at_the_provider_as_well(visit: Visit) -> None:
    page = signed_in_as(visit, "ann")
    assert visit.holds_no_secret()
    token = page.evaluate(TOKEN)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.get_by_role("button", name="Sign in with Example")).to_be_visible()
    assert [item for item in visit.asked if token in item] == []
    assert page.evaluate("sessionStorage.length") == 0
    assert [cooky for cooky in page.context.cookies() if "fairway" in cooky.get("name", "")] == []
    page.get_by_role("button", name="Sign in with Example").click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()


def test_who_looks_only_goes_on_looking_when_it_is_renewed(visit: Visit) -> None:
    visit.page.clock.install()
    page = signed_in_as(visit, "ann")
    make_read_only(page)
    assert page.evaluate(TOKEN).startswith("look-only.")
    renewed(page)
    assert page.evaluate(TOKEN).startswith("look-only.")
    open_workload(page, "pretrain")
    expect(page.get_by_role("button", name="Suspend")).to_be_disabled()
    assert visit.holds_no_secret()


def test_the_policy_is_the_same_as_without_a_provider(visit: Visit, provided: Hub) -> None:
    response = visit.page.goto(provided.url)
    assert response is not None
    assert POLICY in response.headers["content-security-policy"]
    signed_in_as(visit, "ann")


def test_a_token_still_signs_in(visit: Visit, provided: Hub) -> None:
    visit.page.get_by_label("Token").fill(provided.token)
    visit.page.get_by_role("button", name="Sign in with the token").click()
    expect(visit.page.get_by_role("heading", name="Fleet")).to_be_visible()
    visit.page.get_by_role("button", name="Sign out").click()
    expect(visit.page.get_by_label("Token")).to_be_visible()
