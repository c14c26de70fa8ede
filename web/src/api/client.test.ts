import { afterEach, expect, test, vi } from "vitest";
import { open, Refused, waitOf } from "./client";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const busy = (after?: string) =>
  new Response("{}", { status: 429, headers: after ? { "Retry-After": after } : {} });

/** A hub that gives these answers, one after the other. */
function hub(...answers: Response[]) {
  const asked = vi.fn(() => Promise.resolve(answers.shift() ?? busy("1")));
  vi.stubGlobal("fetch", asked);
  return asked;
}

test("a busy hub is asked again after the time that it names", async () => {
  vi.useFakeTimers();
  const asked = hub(busy("3"), new Response("{}"));
  const opened = open("/version");
  await vi.advanceTimersByTimeAsync(2_900);
  expect(asked).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(200);
  expect((await opened).status).toBe(200);
  expect(asked).toHaveBeenCalledTimes(2);
});

test("a hub that stays busy is given up", async () => {
  vi.useFakeTimers();
  const asked = hub();
  const refused = expect(open("/version")).rejects.toBeInstanceOf(Refused);
  await vi.advanceTimersByTimeAsync(60_000);
  await refused;
  expect(asked).toHaveBeenCalledTimes(5);
});

test.each([
  ["2", 2_000],
  ["3600", 30_000],
  ["soon", 1_000],
  [undefined, 1_000],
])("Retry-After %s is a wait of %d ms", (after, milliseconds) => {
  expect(waitOf(busy(after))).toBe(milliseconds);
});
