import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { follow, type State } from "./live";

interface Thing {
  metadata: { name: string; resourceVersion?: string };
}

const thing = (name: string, resourceVersion = "9"): Thing => ({
  metadata: { name, resourceVersion },
});
const page = (names: string[], more = "", version = "5") =>
  new Response(
    JSON.stringify({
      metadata: { resourceVersion: version, continue: more },
      items: names.map((one) => thing(one)),
    }),
  );
const refused = (code: number) =>
  new Response(JSON.stringify({ message: `code ${code}` }), { status: code });
const event = (type: string, name: string, version = "9") =>
  `${JSON.stringify({ type, object: thing(name, version) })}\n`;

/** A watch that says these lines; it ends, breaks or, like most, stays open. */
function watch(
  lines: string[],
  how: "ends" | "breaks" | "stays" = "stays",
  signal?: AbortSignal,
): Response {
  const left = [...lines];
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => signal?.addEventListener("abort", () => stream.error(signal.reason)),
    pull(stream) {
      const next = left.shift();
      if (next) stream.enqueue(new TextEncoder().encode(next));
      else if (how === "ends") stream.close();
      else if (how === "breaks") stream.error(new TypeError("network error"));
      else return new Promise(() => undefined);
      return undefined;
    },
  });
  return new Response(body);
}

interface Tab extends EventTarget {
  visibilityState: string;
}
let tab: Tab;
let asked: string[] = [];
let states: State[] = [];
let known = new Set<string>();
let isListed = false;
let stop = () => {};

/** Follows with these answers in their order; what is asked beyond them stays open. */
async function followed(answers: (() => Response)[], milliseconds = 3000): Promise<void> {
  vi.stubGlobal("fetch", (address: string, { signal }: { signal: AbortSignal }) => {
    asked.push(new URL(address, "http://hub").search);
    return Promise.resolve((answers.shift() ?? (() => watch([], "stays", signal)))());
  });
  stop = follow<Thing>({
    path: "/apis/things",
    began: () => (isListed = false),
    put: (some) => {
      for (const one of some) known.add(one.metadata.name);
    },
    removed: (some) => {
      for (const one of some) known.delete(one.metadata.name);
    },
    listed: () => (isListed = true),
    state: (state) => states.push(state),
  });
  await vi.advanceTimersByTimeAsync(milliseconds);
}
const lists = () => asked.filter((one) => !one.includes("watch="));
const watches = () => asked.filter((one) => one.includes("watch="));

beforeEach(() => {
  vi.useFakeTimers();
  tab = Object.assign(new EventTarget(), { visibilityState: "visible" });
  vi.stubGlobal("document", tab);
  vi.stubGlobal("window", new EventTarget());
  [asked, states, known, isListed] = [[], [], new Set(), false];
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("it lists page by page, and watches from where the list was taken", async () => {
  await followed([
    () => page(["a"], "more"),
    () => page(["b"]),
    () => watch([event("ADDED", "c")]),
  ]);
  expect([...known]).toEqual(["a", "b", "c"]);
  expect([isListed, states]).toEqual([true, ["loading", "live"]]);
  expect(watches()[0]).toContain("resourceVersion=5");
});

test("a list that breaks off between two pages is begun again, not taken for whole", async () => {
  await followed([
    () => page(["a"], "more"),
    () => refused(503),
    () => page(["a"], "more"),
    () => page(["b"]),
  ]);
  expect([...known]).toEqual(["a", "b"]);
  expect(isListed).toBe(true);
  expect(lists()).toHaveLength(4);
});

test("what is deleted and made anew in one breath stays", async () => {
  await followed([
    () => page(["a"]),
    () => watch([event("DELETED", "a") + event("ADDED", "a", "10")]),
  ]);
  expect([...known]).toEqual(["a"]);
});

test("a watch that breaks goes on at the last version it saw", async () => {
  await followed([() => page(["a"]), () => watch([event("MODIFIED", "a", "12")], "breaks")]);
  expect(watches().map((one) => /resourceVersion=(\d+)/.exec(one)?.[1])).toEqual(["5", "12"]);
  expect(states).toEqual(["loading", "live", "lost", "live"]);
});

test("a watch that is too old is listed again", async () => {
  const gone = `${JSON.stringify({ type: "ERROR", object: { code: 410, message: "too old" } })}\n`;
  await followed([() => page(["a"]), () => watch([gone]), () => page(["b"], "", "20")]);
  expect(watches().at(-1)).toContain("resourceVersion=20");
  expect(isListed).toBe(true);
});

test("a hub that says again and again that a list is too old is not asked without a pause", async () => {
  await followed(Array.from({ length: 50 }, () => () => refused(410)));
  expect(asked.length).toBeLessThan(8);
});

test("watches that end at once are not opened without a pause", async () => {
  await followed([() => page(["a"]), ...Array.from({ length: 50 }, () => () => watch([], "ends"))]);
  expect(asked.length).toBeLessThan(12);
});

test("a token that could not be renewed in time is tried again: who is still signed in goes on", async () => {
  await followed([() => page(["a"]), () => refused(401), () => watch([event("ADDED", "b")])]);
  expect([...known]).toEqual(["a", "b"]);
  expect(states.at(-1)).toBe("live");
});

test("what one may not see is asked for once", async () => {
  await followed([() => refused(403)], 60_000);
  expect([asked.length, states.at(-1)]).toEqual([1, "refused"]);
});

test("a tab in the background closes its watch, and goes on where it was", async () => {
  await followed([() => page(["a"])]);
  tab.visibilityState = "hidden";
  tab.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(watches()).toHaveLength(1);
  tab.visibilityState = "visible";
  tab.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(10);
  expect([watches().length, lists().length]).toEqual([2, 1]);
});

test("who is left asks nothing more", async () => {
  await followed([() => page(["a"]), () => watch([], "breaks")], 1);
  stop();
  const count = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(count);
});
