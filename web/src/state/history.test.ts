import { expect, test } from "vitest";
import {
  entryOf,
  type Entry,
  type History,
  isEmpty,
  less,
  lineOf,
  rangeOf,
  spanOf,
  summed,
} from "./history";

const entry: Entry = {
  name: "research",
  values: { waiting: [1, null, 3] },
  parts: [
    { name: "h100", resource: "nvidia.com/gpu", values: { used: [8, null, 8] } },
    { name: "a100", resource: "nvidia.com/gpu", values: { used: [null, null, 4] } },
  ],
};
const history: History = {
  now: 30,
  series: "queues",
  step: 10,
  times: [10, 20, 30],
  found: [entry],
};

test("a line is as long as the times, and of who is not known all gaps", () => {
  expect(lineOf(history, "research", "waiting")).toEqual([1, null, 3]);
  expect(lineOf(history, "nobody", "waiting")).toEqual([null, null, null]);
  expect(entryOf(null, "research")).toBeUndefined();
});

test("parts are summed where any is known, and a gap stays one", () => {
  expect(summed(entry, "used")).toEqual([8, null, 12]);
  expect(summed(entry, "used", (part) => part.name === "a100")).toEqual([null, null, 4]);
  expect(summed(undefined, "used")).toEqual([]);
});

test("a difference is never below nothing, and a gap where either has one", () => {
  expect(less([8, 4, null, 2], [2, null, 1, 5])).toEqual([6, null, null, 0]);
});

test("what has gaps alone is empty", () => {
  expect([isEmpty([null, null]), isEmpty([null, 0])]).toEqual([true, false]);
});

test("the axis of time begins where something is known, and is never too short", () => {
  const long = (known: number[]): History => ({
    ...history,
    times: Array.from({ length: 12 }, (_, at) => at * 10),
    found: [
      {
        ...entry,
        values: { used: Array.from({ length: 12 }, (_, at) => (known.includes(at) ? 1 : null)) },
      },
    ],
  });
  expect(spanOf(long([0]), 120)).toEqual([0, 120]);
  expect(spanOf(long([6, 7]), 120)).toEqual([60, 120]);
  expect(spanOf(long([11]), 1200)).toEqual([20, 120]);
  expect(spanOf(long([]), 120)).toEqual([0, 120]);
});

test.each([
  ["", "1 h"],
  ["last=7 d", "7 d"],
  ["last=forever", "1 h"],
  ["last=toString", "1 h"],
])("the address ?%s asks for %s", (query, word) => {
  expect(rangeOf(new URLSearchParams(query)).word).toBe(word);
});
