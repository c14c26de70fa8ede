import { expect, test } from "vitest";
import { alone, inWords, momentsOf, sampled, stacked } from "./charting";

test("lines are stacked, and a gap of all is a gap", () => {
  expect(
    stacked([
      [1, null, 2],
      [3, null, null],
    ]),
  ).toEqual([
    [1, null, 2],
    [4, null, 2],
  ]);
});

test("a number between two gaps stands alone", () => {
  expect(alone([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(alone([null, null])).toEqual([]);
});

test("moments are as exact as their distance", () => {
  const noon = Date.parse("2026-11-15T12:00:00") / 1000;
  expect(momentsOf([noon, noon + 600])).toEqual(["12:00", "12:10"]);
  expect(momentsOf([noon, noon + 10])).toEqual(["12:00:00", "12:00:10"]);
  expect(momentsOf([noon, noon + 86_400])).toEqual(["15 Nov", "16 Nov"]);
  expect(momentsOf([noon, noon + 43_200, noon + 86_400])).toEqual([
    "15 Nov 12:00",
    "16 Nov 00:00",
    "12:00",
  ]);
});

test("a chart in words tells the end and the range of each line", () => {
  const noon = Date.parse("2026-11-15T12:00:00") / 1000;
  const words = inWords(
    [noon, noon + 60],
    ["research", "product", "none"],
    [
      [1, 4],
      [2, 2],
      [null, null],
    ],
    String,
  );
  expect(words).toContain(
    "12:01:00. research: 4 at the end, from 1 to 4. product: 2 all the time. none: nothing known.",
  );
  expect(inWords([], [], [], String)).toBe("Nothing is known yet.");
});

test("a table has the last moment, and not too many", () => {
  expect(sampled(10, 4)).toEqual([0, 3, 6, 9]);
  expect(sampled(3, 24)).toEqual([0, 1, 2]);
});
