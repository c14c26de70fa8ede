"""Pages of a hub as a person has them open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

_PATIENCE_MILLISECONDS = 60_000  # a slow machine draws slowly
expect.set_options(timeout=_PATIENCE_MILLISECONDS)
_WIDE = (1280, 800)


@dataclass(slots=True)
class Watched:
    """A page, and what its console complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def close(self) -> None:
        self.page.context.close()


def opened(
    browser: Browser, url: str, *, size: tuple[int, int] = _WIDE, theme: Any = "light"
) -> Watched:
    """A page that nobody is signed in to."""
    width, height = size
    context = browser.new_context(
        ignore_https_errors=True,
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce",
    )
    context.set_default_timeout(_PATIENCE_MILLISECONDS)
    watched = Watched(context.new_page())
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on(
        "console",
        lambda said: watched.complaints.append(said.text) if said.type == "error" else None,
    )
    watched.page.goto(url)
    return watched


def signed_in(
    browser: Browser,
    url: str,
    token: str,
    *,
    size: tuple[int, int] = _WIDE,
    theme: Any = "light",
) -> Watched:
    watched = opened(browser, url, size=size, theme=theme)
    sign_in(watched.page, token)
    expect(watched.page.get_by_role("heading", name="Fleet")).to_be_visible()
    return watched


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def look(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = view }", f"#/{view}")


def keep(page: Page, name: str) -> None:
    """Keeps what the browser shows, if anybody wants it."""
    folder = os.environ.get("FAIRWAY_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")


_KEPT = "() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"


class Tab:
    """One in which somebody is signed in, for several tests: to load the page is most of its cost.

    It is closed after a test that leaves something open or remembered.
    """

    def __init__(self, browser: Browser, url: str, token: str) -> None:
        self._browser = browser
        self._url = url
        self._token = token
        self._watched: Watched | None = None
        self._kept = ""

    def watched(self) -> Iterator[Watched]:
        """The tab for one test, which fails by whatever the console complains of."""
        watched = self._open()
        yield watched
        self._leave()
        assert watched.complaints == []

    def close(self) -> None:
        if self._watched is not None:
            self._watched.close()
            self._watched = None

    def _open(self) -> Watched:
        if self._watched is None:
            self._watched = signed_in(self._browser, self._url, self._token)
            self._kept = self._watched.page.evaluate(_KEPT)
        self._watched.complaints.clear()
        return self._watched

    def _leave(self) -> None:
        """Goes back to where one is after signing in."""
        if self._watched is None or not self._is_as_it_was(self._watched.page):
            self.close()
            return
        look(self._watched.page, "fleet")
        expect(self._watched.page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()

    def _is_as_it_was(self, page: Page) -> bool:
        if page.is_closed() or page.viewport_size != {"width": _WIDE[0], "height": _WIDE[1]}:
            return False
        is_there = page.url.startswith(self._url) and page.evaluate(_KEPT) == self._kept
        return is_there and page.locator("dialog[open], [role=dialog]:visible").count() == 0
