import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchHeads } from "./heads";

let asked: string[] = [];
let codes: Record<string, number> = {};
let stop = () => {};

beforeEach(() => {
  vi.useFakeTimers();
  [asked, codes] = [[], {}];
  vi.stubGlobal("document", { visibilityState: "visible" });
  vi.stubGlobal("fetch", (address: string) => {
    const name = /workloads\/([^/]+)/.exec(address)?.[1] ?? "";
    asked.push(name);
    if (codes[name] === 0) return Promise.reject(new TypeError("network error"));
    return Promise.resolve(
      new Response(JSON.stringify({ workload: name, message: "no" }), {
        status: codes[name] ?? 200,
      }),
    );
  });
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("who waits is asked for again, who is refused is not, and nobody once it is left", async () => {
  codes = { hidden: 404, broken: 0 };
  const found: Record<string, string | null> = {};
  stop = watchHeads(
    ["team/next", "a workload of another team", "team/hidden", "team/broken"],
    (key, one) => (found[key] = one?.workload ?? null),
  );
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toEqual(["next", "hidden", "broken"]);
  expect(found).toEqual({ "team/next": "next", "team/hidden": null });
  codes = { hidden: 404 };
  await vi.advanceTimersByTimeAsync(16_000);
  expect(asked.slice(3)).toEqual(["next", "broken"]);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(5);
});
