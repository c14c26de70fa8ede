import { expect, test } from "vitest";
import { sentenceOf, verdictOf, type Fate, type Touched } from "./outcomes";

const touched = (before: Fate, after: Fate): Touched => ({
  workload: "a/b",
  queue: "q",
  gpus: 8,
  before,
  after,
});
const at = (cluster: string, state: Fate["state"] = "Runs"): Fate => ({
  state,
  places: [{ cluster, gpus: 8 }],
});
const waits = (expected?: number): Fate => ({
  state: "Waits",
  ...(expected === undefined ? {} : { expected }),
});

test.each<[string, Fate, Fate]>([
  ["starts", waits(), at("east", "Starts")],
  ["starts", { state: "Absent" }, at("east", "Starts")],
  ["preempted", at("east"), { state: "Preempted", for: "x/y" }],
  ["displaced", at("east"), waits(5)],
  ["moves", at("east"), at("west", "Starts")],
  ["waits", at("east", "Starts"), waits()],
  ["waits", { state: "Absent" }, waits()],
  ["later", waits(5), waits(9)],
  ["sooner", waits(9), waits(5)],
  ["sooner", waits(), waits(5)],
])("%s", (verdict, before, after) => {
  expect(verdictOf(touched(before, after))).toBe(verdict);
});

test("everything is said in one sentence", () => {
  const many = [
    touched(waits(), at("east", "Starts")),
    touched(at("east"), { state: "Preempted" }),
    touched(waits(1), waits(2)),
  ];
  expect(sentenceOf(many)).toBe(
    "1 workload would start, 1 would be preempted, 1 would be expected later.",
  );
  expect(sentenceOf([])).toBe("Nothing would be different: the same would be decided.");
});
