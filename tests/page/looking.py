"""What is on the page, and what the hub itself says of it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from fairway.client import Client
from tests.page.signing import look

WORKLOADS = "workloads.fairway.dev"


def field(client: Client, name: str, *path: str, namespace: str = "team-research") -> Any:
    found: Any = client.get(WORKLOADS, name, namespace=namespace)
    for key in path:
        found = found.get(key, {})
    return found


def line(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def open_workload(page: Page, name: str, namespace: str = "team-research", part: str = "") -> None:
    look(page, f"workloads/{namespace}/{name}{part}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
