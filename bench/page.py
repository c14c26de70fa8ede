"""The page in a real browser: how large it is, and how long a person waits for it.

A hub without controllers opens a fleet that was put on its disk. Chromium signs in, and what it
measures of itself is told: the time from the token to the first line of the list and to the last,
frames of scrolls, keys of a search, memory and bytes; the same while a hundred workloads change a
second. The frames of an empty page say what this machine can do at all.
"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from bench import large
from bench.figures import Report
from bench.looking import Looking
from fairway.app import Hub, HubOptions, open_hub
from fairway.page import built_files
from fairway.store.interface import Patch, ResourceKey, Write

_WORKLOADS = ResourceKey("fairway.dev", "v1alpha1", "workloads")
_WRITE = Write(user="bench", manager="bench")
_CHANGES_PER_SECOND = 100
_PATIENCE = 120_000
_SIZES = ((20, 1_000), (500, 50_000))
_SEARCH = "input[type=search]"
_LIST = ".box"
_BOARD = ".all"


def run(report: Report, *, scale: float = 1.0) -> None:
    files = built_files()
    packed = sum(len(gzip.compress(file)) for file in files.values())
    report.add("page, all files", sum(map(len, files.values())) / 1024, "KiB")
    report.add("page, all files, packed", packed / 1024, "KiB")
    if shutil.which("chromium") is None:
        print("  no Chromium on this machine: load times are left out")
        return
    for clusters, workloads in _SIZES:
        with tempfile.TemporaryDirectory() as folder:
            sizes = max(2, int(clusters * scale)), max(100, int(workloads * scale))
            asyncio.run(_measure(report, Path(folder), sizes))


async def _measure(report: Report, data: Path, sizes: tuple[int, int]) -> None:
    await large.fill(data, clusters=sizes[0], workloads=sizes[1])
    options = HubOptions(data=data, port=0, has_controllers=False)
    async with open_hub(options) as hub, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        what = f"{sizes[0]:,} clusters, {sizes[1]:,} workloads"
        print(what)
        await _floor(report, browser)
        await _fleet(report, browser, hub, sizes[0])
        await _workloads(report, browser, hub, sizes[1])
        await browser.close()


@asynccontextmanager
async def _tab(browser: Browser) -> AsyncIterator[Looking]:
    context = await browser.new_context(
        ignore_https_errors=True, viewport={"width": 1280, "height": 800}
    )
    yield await Looking.at(await context.new_page())
    await context.close()


async def _floor(report: Report, browser: Browser) -> None:
    async with _tab(browser) as tab:
        typical, slow = await tab.frames()
        report.add("an empty page, a frame", typical, "ms", slow=slow)


async def _opened(tab: Looking, hub: Hub, view: str, first: str) -> tuple[float, float]:
    """Signs in; seconds to the first thing that is shown, and when the signing in began."""
    loop = asyncio.get_running_loop()
    await tab.page.goto(f"{hub.url}/page/#/{view}")
    await tab.page.get_by_label("Token").fill(hub.token)
    began = loop.time()
    await tab.page.get_by_role("button", name="Sign in").click()
    await tab.page.locator(first).first.wait_for(timeout=_PATIENCE)
    return loop.time() - began, began


async def _fleet(report: Report, browser: Browser, hub: Hub, count: int) -> None:
    what = f"board of {count:,}"
    async with _tab(browser) as tab:
        seconds, began = await _opened(tab, hub, "fleet", "[data-cluster]")
        report.add(f"{what}, sign in to the first cluster", seconds * 1000, "ms", aim=1000)
        await _settled(report, tab, what, began)
        await _scrolled(report, tab, what, _BOARD)


async def _workloads(report: Report, browser: Browser, hub: Hub, count: int) -> None:
    what = f"list of {count:,}"
    async with _tab(browser) as tab:
        seconds, began = await _opened(tab, hub, "workloads", ".line")
        report.add(f"{what}, sign in to the first line", seconds * 1000, "ms", aim=1000)
        await _settled(report, tab, what, began)
        await _scrolled(report, tab, what, _LIST)
        typical, most = await tab.keys(_SEARCH, large.workload_name(count - 1))
        report.add(f"{what}, a key in the search", typical, "ms", aim=50, most=most)
        await tab.keys(_SEARCH, "")
        await tab.page.locator(_SEARCH).fill("")
        await tab.long_tasks()
        changing = asyncio.ensure_future(_change(hub, count))
        await asyncio.sleep(1)
        await _scrolled(report, tab, f"{what}, changing", _LIST)
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)


async def _settled(report: Report, tab: Looking, what: str, began: float) -> None:
    """Waits until everything is there, and tells what that took."""
    await tab.page.get_by_text("Live", exact=True).wait_for(timeout=_PATIENCE)
    seconds = asyncio.get_running_loop().time() - began
    report.add(f"{what}, sign in to everything", seconds * 1000, "ms")
    report.add(f"{what}, received", tab.received["bytes"] / (1 << 20), "MiB")
    tasks, busy = await tab.long_tasks()
    report.add(f"{what}, long tasks until then", busy, "ms", number=tasks)
    report.add(f"{what}, memory of scripts", await tab.memory_mib(), "MiB")
    report.add(f"{what}, elements", await tab.elements(), "")


async def _scrolled(report: Report, tab: Looking, what: str, selector: str) -> None:
    await tab.long_tasks()
    for how, step in (("scrolled", 90), ("leapt through", 0)):
        typical, slow = await tab.frames(selector, step)
        report.add(f"{what}, {how}, a frame", typical, "ms", slow=slow)
    tasks, busy = await tab.long_tasks()
    report.add(f"{what}, long tasks of that", busy, "ms", number=tasks)


async def _change(hub: Hub, count: int) -> None:
    """Some workload gets another priority, a hundred times a second."""
    loop = asyncio.get_running_loop()
    began, number = loop.time(), 0
    while True:
        at = number * 7919 % count
        patch = Patch(type="merge", body={"spec": {"priority": number % 1000}})
        await hub.store.patch(
            _WORKLOADS,
            large.workload_name(at),
            patch,
            namespace=f"team-{at % large.TEAMS:02d}",
            write=_WRITE,
        )
        number += 1
        await asyncio.sleep(max(0.0, began + number / _CHANGES_PER_SECOND - loop.time()))
