"""What is on the page, and what the hub itself says of it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from fairway.api.errors import NotFound
from fairway.client import Client
from tests.page.signing import look
from tests.waiting import seen_at_last

WORKLOADS = "workloads.fairway.dev"
# The heading of each view.
VIEWS = {
    "fleet": "Fleet",
    "queues": "Queues",
    "workloads": "Workloads",
    "timeline": "Timeline",
    "services": "Services",
    "whatif": "What if",
    "cost": "Cost",
}


def field(client: Client, name: str, *path: str, namespace: str = "team-research") -> Any:
    found: Any = client.get(WORKLOADS, name, namespace=namespace)
    for key in path:
        found = found.get(key, {})
    return found


def is_in(client: Client, name: str, phase: str, namespace: str = "team-research") -> None:
    """Waits until a workload is in a phase."""
    seen_at_last(
        lambda: field(client, name, "status", "phase", namespace=namespace),
        lambda found: found == phase,
        f"{name} to be {phase}",
    )


def leave(page: Page) -> None:
    """Looks elsewhere, so that the end of a workload is no fault of its page."""
    look(page, "fleet")
    expect(page.get_by_role("heading", name="Clusters")).to_be_visible()


def remove(client: Client, name: str, namespace: str = "team-research") -> None:
    """Deletes a workload, and waits until nothing of it is left."""

    def is_there() -> bool:
        try:
            client.get(WORKLOADS, name, namespace=namespace)
        except NotFound:
            return False
        return True

    client.delete(WORKLOADS, name, namespace=namespace)
    seen_at_last(is_there, lambda found: not found, f"the end of {name}")


def line(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def make_read_only(page: Page) -> None:
    """Presses the button, which gives way to a badge with the same words."""
    button = page.get_by_role("button", name="Read-only")
    button.click()
    expect(button).to_have_count(0)
    expect(page.get_by_text("Read-only", exact=True)).to_be_visible()


def open_workload(page: Page, name: str, namespace: str = "team-research", part: str = "") -> None:
    look(page, f"workloads/{namespace}/{name}{part}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def show(page: Page, view: str, heading: str = "") -> None:
    """Goes there from the fleet, so that nothing is of the last view; waits until it is drawn."""
    for place, name in (("fleet", "Fleet"), (view, heading or VIEWS[view])):
        look(page, place)
        shown = page.get_by_role("heading", level=1, name=name, exact=True)
        expect(shown.first).to_be_attached()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)
