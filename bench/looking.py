"""What a browser measures of itself: frames of a scroll, keys, long tasks, memory, bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import CDPSession, Page

# Told before anything of the page runs: tasks that kept the page from answering.
OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.longTasks.push(one.duration);
}).observe({ type: 'longtask', buffered: true });
"""
# Frames while something scrolls: by `step` pixels a frame, or in 120 leaps through everything.
_FRAMES = """
async ([selector, step]) => {
  const box = selector ? document.querySelector(selector) : null;
  const frames = [];
  await new Promise(requestAnimationFrame);
  let last = performance.now();
  for (let at = 0; at < 180; at += 1) {
    if (box && step) box.scrollTop += step;
    else if (box) box.scrollTop = (box.scrollHeight * (at % 120)) / 120;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  if (box) box.scrollTop = 0;
  frames.sort((one, other) => one - other);
  return [frames[90], frames[171]];
}
"""
# From a key in the search to the frame that shows its outcome.
_KEY = """
async ([selector, text]) => {
  const input = document.querySelector(selector);
  const taken = [];
  for (let at = 1; at <= text.length; at += 1) {
    const began = performance.now();
    input.value = text.slice(0, at);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    await Promise.resolve();
    await new Promise((done) => setTimeout(done));
    taken.push(performance.now() - began);
    await new Promise(requestAnimationFrame);
  }
  taken.sort((one, other) => one - other);
  return [taken[Math.floor(taken.length / 2)], taken.at(-1)];
}
"""


@dataclass(slots=True)
class Looking:
    """A page and what the browser knows of it."""

    page: Page
    session: CDPSession
    received: dict[str, int] = field(default_factory=lambda: {"bytes": 0})

    @classmethod
    async def at(cls, page: Page) -> Looking:
        await page.add_init_script(OBSERVE)
        found = cls(page, await page.context.new_cdp_session(page))
        await found.session.send("Network.enable")

        def took(event: dict[str, Any]) -> None:
            found.received["bytes"] += event["encodedDataLength"]

        # What came over the wire for every answer that is over; a watch is not, and has told little.
        found.session.on("Network.loadingFinished", took)
        return found

    async def frames(self, selector: str = "", step: int = 0) -> tuple[float, float]:
        typical, slow = await self.page.evaluate(_FRAMES, [selector, step])
        return typical, slow

    async def keys(self, selector: str, text: str) -> tuple[float, float]:
        typical, most = await self.page.evaluate(_KEY, [selector, text])
        return typical, most

    async def long_tasks(self) -> tuple[int, float]:
        found = await self.page.evaluate("window.longTasks.splice(0)")
        return len(found), sum(found)

    async def memory_mib(self) -> float:
        """What scripts hold once nothing that is left lies about."""
        await self.session.send("HeapProfiler.collectGarbage")
        found = await self.session.send("Runtime.getHeapUsage")
        return float(found["usedSize"]) / (1 << 20)

    async def elements(self) -> int:
        return int(await self.page.evaluate("document.querySelectorAll('*').length"))
