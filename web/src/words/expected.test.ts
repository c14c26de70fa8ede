import { expect, test } from "vitest";
import type { Explanation } from "../api/kinds";
import { expectedIn } from "./expected";

const NOW = Date.parse("2026-11-15T12:00:00");
const why = (state: Explanation["state"], start?: number, isGuess?: boolean) =>
  ({ state, expected: start ? { start, isGuess } : undefined }) as Explanation;

test.each([
  [undefined, ""],
  [why("Starts"), ", starts now"],
  [why("Impossible"), ", can never start as it is"],
  [why("Waits"), ", start not known"],
  [why("Waits", NOW / 1000 - 5), ", expected any moment"],
  [why("Waits", NOW / 1000 + 180), ", expected 12:03:00 (in 3 min)"],
  [why("Waits", NOW / 1000 + 180, true), ", expected 12:03:00 (a guess: in 3 min)"],
])("when it starts, in words: %#", (one, words) => {
  expect(expectedIn(one, NOW)).toBe(words);
});
