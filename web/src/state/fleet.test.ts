import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fleet } from "./fleet.svelte";
import { Ordered } from "./picking";

type Answer = { body?: unknown; after?: number; date?: string };
let answers: (path: string) => Answer;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", Object.assign(new EventTarget(), { visibilityState: "visible" }));
  vi.stubGlobal("window", new EventTarget());
  vi.stubGlobal("fetch", (address: string, { signal }: { signal?: AbortSignal }) => {
    const { body, after = 0, date } = answers(address);
    return new Promise<Response>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
      if (body !== undefined)
        setTimeout(
          () =>
            resolve(new Response(JSON.stringify(body), { headers: date ? { Date: date } : {} })),
          after,
        );
    });
  });
});
afterEach(() => {
  fleet.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const NOTHING: Answer = { body: { metadata: { resourceVersion: "1" }, items: [], rows: [] } };
const rows = (...names: string[]): Answer => ({
  body: { metadata: { resourceVersion: "1" }, rows: names.map((one) => ["team", one, "1"]) },
});
const standing = (queue: string, after = 0): Answer => ({
  body: { queues: [{ queue, parent: "", holdings: [], heads: [] }] },
  after,
});

/** What the hub says of one path; of everything else there is nothing, and watches stay open. */
function says(part: string, what: () => Answer): void {
  answers = (address) =>
    address.includes("watch=")
      ? {}
      : address.includes(part)
        ? what()
        : address.includes("standing")
          ? standing("a")
          : NOTHING;
}

test("workloads of the namespace before are gone at once when another is chosen", async () => {
  says("workloads", () => rows("one", "two"));
  const ordered = new Ordered();
  const listed = () =>
    ordered.take(fleet.rows, fleet.revision, fleet.changes, "time").map((one) => one.name);
  fleet.start("team");
  await vi.advanceTimersByTimeAsync(500);
  expect(listed()).toEqual(["one", "two"]);
  says("workloads", () => ({}));
  fleet.start("other");
  expect(listed()).toEqual([]);
});

test("how queues stood for whoever was signed in before does not come late to the next", async () => {
  says("standing", () => standing("secret", 1000));
  fleet.start("");
  await vi.advanceTimersByTimeAsync(500);
  fleet.stop();
  await vi.advanceTimersByTimeAsync(2000);
  expect([fleet.standings, fleet.isStandingKnown]).toEqual([[], false]);
});

test("a slow answer is waited for, and what changed meanwhile is asked for after it", async () => {
  let count = 0;
  says("standing", () => {
    count += 1;
    return standing(`answer-${count}`, 5000);
  });
  fleet.start("");
  for (let at = 0; at < 9; at += 1) {
    fleet.askLater();
    await vi.advanceTimersByTimeAsync(500);
  }
  expect(count).toBe(1);
  await vi.advanceTimersByTimeAsync(600);
  expect([fleet.standings[0]?.queue, count]).toEqual(["answer-1", 2]);
});

test("moments are told by the hub's clock, however wrong that of the browser is", async () => {
  const date = new Date(Date.now() + 600_000).toUTCString();
  says("standing", () => ({ ...standing("a"), date }));
  fleet.start("");
  await vi.advanceTimersByTimeAsync(1500);
  expect(Math.abs(fleet.now - Date.now() - 600_000)).toBeLessThan(3000);
});
