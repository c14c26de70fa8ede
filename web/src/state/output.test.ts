import { expect, test } from "vitest";
import { after, Output } from "./output";

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => `line ${from + at}`);

test("the last lines are kept, and those that went are counted", () => {
  const output = new Output(1000);
  for (let at = 0; at < 5; at += 1) output.add(numbers(at * 500, at * 500 + 500));
  expect(output.count).toBe(2500);
  expect(output.kept).toBeLessThanOrEqual(1000);
  expect(output.last(2)).toEqual(["line 2498", "line 2499"]);
  expect(output.text().split("\n")).toHaveLength(output.kept);
});

test("only the last block is another one when lines come", () => {
  const output = new Output();
  output.add(numbers(0, 450));
  const before = [...output.blocks];
  output.add(["more"]);
  expect(output.blocks.map((one, at) => one === before[at])).toEqual([true, true, false]);
});

test.each([
  ["nothing new", ["a", "b", "c"], ["a", "b", "c"], 3],
  ["the rest of it", ["a", "b", "c"], ["b", "c", "d"], 2],
  ["all from the begin", ["b", "c"], ["a", "b", "c", "d"], 3],
  ["nothing that is known", ["a", "b"], ["x", "y"], 0],
  ["lines that repeat", ["a", "a", "a"], ["a", "a", "a", "b"], 3],
  ["one line that looks alike", ["a", "b", "c"], ["x", "c", "d"], 0],
])("after a lost connection, %s", (_, known, fresh, from) => {
  expect(after(known, fresh)).toBe(from);
});

test("where lines may be missing it says so", () => {
  const output = new Output();
  output.add(["a"]);
  output.join(["a", "b"]);
  output.join(["y", "z"]);
  expect(output.text()).toBe(
    "a\nb\n… the connection was lost here, and lines may be missing …\ny\nz",
  );
});
