"""The page in a real browser: how large it is, and how long a person waits for it.

A hub without controllers is filled through its store; Chromium then signs in, and what it measures
of itself is told: the time from the token to the first line of the list, to the last page, and the
frames of a scroll through everything.
"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import Page, async_playwright

from bench.figures import Report
from bench.objects import workload
from fairway.app import Hub, HubOptions, open_hub
from fairway.page import built_files
from fairway.store.interface import ResourceKey, Write

_WORKLOADS = ResourceKey("fairway.dev", "v1alpha1", "workloads")
_WRITE = Write(user="bench", manager="bench")
_AT_ONCE = 500
_SCROLL = """
async () => {
  const box = document.querySelector('.box');
  const frames = [];
  let last = performance.now();
  for (let at = 0; at < 120; at += 1) {
    box.scrollTop = (box.scrollHeight * at) / 120;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  frames.sort((one, other) => one - other);
  return [frames[60], frames[114]];
}
"""


def run(report: Report, *, scale: float = 1.0) -> None:
    files = built_files()
    packed = sum(len(gzip.compress(one)) for one in files.values())
    report.add("page, all files", sum(map(len, files.values())) / 1024, "KiB")
    report.add("page, all files, packed", packed / 1024, "KiB")
    if shutil.which("chromium") is None:
        print("  no Chromium on this machine: load times are left out")
        return
    for count in (1_000, 50_000):
        asyncio.run(_measure(report, max(10, int(count * scale))))


async def _measure(report: Report, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = HubOptions(data=Path(folder), port=0, has_controllers=False)
        async with open_hub(options) as hub, async_playwright() as playwright:
            await _fill(hub, count)
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            context = await browser.new_context(ignore_https_errors=True)
            await _look(report, await context.new_page(), hub, count)
            await browser.close()


async def _fill(hub: Hub, count: int) -> None:
    for start in range(0, count, _AT_ONCE):
        await asyncio.gather(
            *(
                hub.store.create(_WORKLOADS, workload(at), namespace="default", write=_WRITE)
                for at in range(start, min(start + _AT_ONCE, count))
            )
        )


async def _look(report: Report, page: Page, hub: Hub, count: int) -> None:
    loop = asyncio.get_running_loop()
    what = f"{count:,} workloads"
    await page.goto(f"{hub.url}/page/#/workloads")
    await page.get_by_label("Token").fill(hub.token)
    began = loop.time()
    await page.get_by_role("button", name="Sign in").click()
    await page.locator(".line").first.wait_for()
    report.add(f"{what}, sign in to first line", (loop.time() - began) * 1000, "ms")
    await page.get_by_text("Live", exact=True).wait_for(timeout=120_000)
    report.add(f"{what}, sign in to the last page", (loop.time() - began) * 1000, "ms")
    typical, slow = await page.evaluate(_SCROLL)
    report.add(f"{what}, a frame of a scroll, typical", typical, "ms")
    report.add(f"{what}, a frame of a scroll, one in twenty slower than", slow, "ms")
