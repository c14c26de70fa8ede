import { expect, test } from "vitest";
import { bandsOf, ticksOf, usedAt, usedOver, type Group, type Span, type Timeline } from "./spans";

const span = (workload: string, gpus: number, from: number, to: number, flavor = "h100"): Span => ({
  workload,
  cluster: "east",
  queue: "team",
  flavor,
  gpus,
  from,
  to,
  sort: "ran",
});
const group: Group = {
  name: "east",
  room: { h100: 16 },
  spans: [span("a/one", 8, 0, 60), span("a/two", 8, 60, 120), span("a/tiny", 0, 0, 120, "")],
  more: [{ flavor: "h100", count: 3, gpus: [2, 2, 0, 0] }],
};
const told: Timeline = {
  now: 120,
  by: "cluster",
  from: 0,
  to: 120,
  since: 0,
  groups: [group],
  groupsLeft: 0,
};

test("a group has a band for each flavor, and what needs no GPU comes last", () => {
  const bands = bandsOf(group, told, new Map());
  expect(bands.map((one) => [one.flavor, one.room, one.spans.length, one.others])).toEqual([
    ["h100", 16, 2, 3],
    ["", 0, 1, 0],
  ]);
});

test("what is in use counts those that are not drawn one by one", () => {
  const [band] = bandsOf(group, told, new Map());
  expect(usedAt(band!, 30)).toBe(10);
  expect(usedAt(band!, 90)).toBe(8);
  expect(usedOver(band!, 0, 120)).toBe(9);
});

test("ticks stand at round moments", () => {
  const ticks = ticksOf(1_800_000_010, 1_800_003_610, 8);
  expect(ticks.every((one) => one % 600 === 0)).toBe(true);
  expect(ticks.length).toBe(6);
});
