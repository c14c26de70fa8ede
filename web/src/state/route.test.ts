import { beforeEach, expect, test, vi } from "vitest";

/** Where one is at an address. */
async function at(hash: string): Promise<{ parts: string[]; text: string | null }> {
  vi.stubGlobal("location", { hash });
  vi.stubGlobal("window", new EventTarget());
  vi.resetModules();
  const { route } = await import("./route.svelte");
  return { parts: route.parts, text: route.query.get("text") };
}

beforeEach(() => vi.unstubAllGlobals());

test.each([
  ["#/workloads/team/job?text=a%20b", ["workloads", "team", "job"], "a b"],
  ["#/fleet/a%2Fb", ["fleet", "a/b"], null],
  ["#/workloads?text=why?", ["workloads"], "why?"],
  ["#/fleet/100%", ["fleet", "100%"], null],
  ["", [], null],
])("%s leads somewhere", async (hash, parts, text) => {
  expect(await at(hash)).toEqual({ parts, text });
});
