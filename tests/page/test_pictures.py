"""What a person sees of a living fleet: each view while the demo plays its story, light and dark.

`make pictures` keeps it for the README and the guide, once the story has been told for longer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from fairway.client.access import Access
from tests.page.hubs import told_hub
from tests.page.looking import line
from tests.page.signing import Watched, keep, look, signed_in
from tests.page.trying import copied, lost
from tests.ports import own_ports

pytestmark = pytest.mark.xdist_group("page, pictures")

_EARLY = ("train-large-1 in onprem-hangzhou",)
_ROUNDS = 4
_LATE = (
    *(f"succeeded  {name}-{at}" for at in range(1, _ROUNDS) for name in ("train-large", "analyze")),
    f"waits      evaluate-{_ROUNDS}",
)
_SIZE = (1280, 1000)
_IS_KEPT = bool(os.environ.get("FAIRWAY_SCREENSHOTS"))
_WAITS = f"evaluate-{_ROUNDS}" if _IS_KEPT else "sweep-1"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    (port,) = own_ports(1)
    until = _LATE if _IS_KEPT else _EARLY
    with told_hub(tmp_path_factory.mktemp("told"), port=port, until=until) as access:
        yield access


def _why(page: Page) -> None:
    expect(page.get_by_role("heading", name=re.compile("^Why"))).to_be_visible()


def _whatif(page: Page) -> None:
    lost(page)
    copied(page)
    expect(page.get_by_role("heading", name="2 changes together")).to_be_visible()
    expect(page.get_by_role("region", name="What would be different")).to_be_visible()


def _workloads(page: Page) -> None:
    expect(line(page, "assistant")).to_be_visible()


def _queues(page: Page) -> None:
    expect(page.get_by_role("treegrid", name="Queues")).to_be_visible()
    expect(page.get_by_role("region", name=re.compile("^Fairness in"))).to_be_visible()


def _timeline(page: Page) -> None:
    expect(page.get_by_role("region", name="Workloads by cluster")).to_be_visible()
    expect(page.get_by_role("heading", name="onprem-hangzhou")).to_be_visible()


def _fleet(page: Page) -> None:
    expect(page.get_by_text("onprem-hangzhou").first).to_be_visible()


def _service(page: Page) -> None:
    expect(page.get_by_label("Replicas by cluster over time")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Share of the load"))).to_be_visible()


def _cost(page: Page) -> None:
    expect(page.get_by_role("figure", name=re.compile("by day and queue$"))).to_be_visible()
    expect(page.get_by_role("region", name="Elastic nodes now")).to_be_visible()


# Those that wait do not do so for long: they are looked at first.
VIEWS: list[tuple[str, str, Any]] = [
    ("why", f"workloads/team-research/{_WAITS}", _why),
    ("workloads", "workloads", _workloads),
    ("queues", "queues", _queues),
    ("whatif", "whatif", _whatif),
    ("timeline", "timeline?for=15 min", _timeline),
    ("fleet", "fleet", _fleet),
    ("service", "services/team-serving/assistant", _service),
    ("cost", "cost", _cost),
]


@pytest.fixture(scope="module")
def tab(browser: Browser, told: Access) -> Iterator[Watched]:
    """One for all views: whoever looks at a living fleet goes from one to another."""
    watched = signed_in(browser, told.server, told.token, size=_SIZE)
    yield watched
    watched.close()


@pytest.mark.parametrize(("name", "view", "ready"), VIEWS, ids=[other[0] for other in VIEWS])
def test_a_view_of_a_living_fleet(tab: Watched, name: str, view: str, ready: Any) -> None:
    page = tab.page
    look(page, view)
    ready(page)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        keep(page, f"{name}-{theme}")
    assert tab.complaints == []
