import { expect, test } from "vitest";
import { packed, type Item } from "./packing";

const item = (key: string, gpus: number, from: number, to: number): Item => ({
  key,
  gpus,
  from,
  to,
});
const lanes = (items: Item[], room: number) =>
  packed(items, room).pieces.map((all) => all.map((one) => [one.low, one.high]));

test("spans at the same time are stacked, and one that follows takes the lanes that are free", () => {
  expect(lanes([item("a", 8, 0, 10), item("b", 4, 5, 20), item("c", 8, 10, 20)], 16)).toEqual([
    [[0, 8]],
    [[8, 12]],
    [[0, 8]],
  ]);
});

test("one that finds no gap large enough takes pieces and stays within the room", () => {
  const items = [
    item("a", 4, 0, 10),
    item("b", 4, 0, 30),
    item("c", 4, 0, 10),
    item("d", 4, 0, 30),
    item("e", 8, 10, 20),
  ];
  expect(lanes(items, 16)[4]).toEqual([
    [0, 4],
    [8, 12],
  ]);
});

test("what does not fit goes above the room", () => {
  const found = packed([item("a", 8, 0, 10), item("b", 6, 5, 10)], 12);
  expect(found.pieces[1]).toEqual([{ low: 8, high: 14 }]);
  expect(found.peak).toBe(14);
});

test("lanes that were had before are had again", () => {
  const before = new Map([["b", [{ low: 8, high: 12 }]]]);
  expect(packed([item("b", 4, 0, 10)], 16, before).pieces).toEqual([[{ low: 8, high: 12 }]]);
});

test("no lane is ever held by two at once, and what is held is what was asked for", () => {
  let seed = 7;
  const chance = (most: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % most;
  };
  const items = Array.from({ length: 400 }, (_, at) => {
    const from = 10 * chance(1000);
    return item(String(at), 1 + chance(16), from, from + 10 + 10 * chance(200));
  });
  const { pieces } = packed(items, 64);
  items.forEach((one, at) => {
    expect(pieces[at]!.reduce((sum, piece) => sum + piece.high - piece.low, 0)).toBeCloseTo(
      one.gpus,
    );
    items.slice(at + 1).forEach((other, next) => {
      if (one.to <= other.from || other.to <= one.from) return;
      for (const mine of pieces[at]!)
        for (const theirs of pieces[at + 1 + next]!)
          expect(Math.min(mine.high, theirs.high) - Math.max(mine.low, theirs.low)).toBeLessThan(
            1e-6,
          );
    });
  });
});
