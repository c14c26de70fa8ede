import { expect, test } from "vitest";
import type { Explanation } from "../api/kinds";
import { ladderOf } from "./ladder";

const LADDER = ["Idle", "Preempt", "Provision"].map((rung) => ({ rung }));
function waits(given: Partial<Explanation>): Explanation {
  return {
    now: 0,
    workload: "a/w",
    state: "Waits",
    queue: "research",
    message: "",
    needs: { amount: "16", of: "h100" },
    ladder: LADDER,
    ...given,
  };
}

test("a cluster that lacks room says how much on each step", () => {
  const found = ladderOf(
    waits({
      places: [{ cluster: "east", free: "12", short: "4", flavor: "h100" }],
      reasons: [
        {
          code: "DoesNotFit",
          cluster: "east",
          rung: "Idle",
          flavor: "h100",
          short: { "nvidia.com/gpu": "4" },
          message: "4 pods too many",
        },
        { code: "NoVictims", cluster: "east", rung: "Preempt", message: "nobody" },
        { code: "OutOfStock", cluster: "east", rung: "Provision", count: 1, message: "one left" },
      ],
    }),
  );
  expect(found.columns.map((one) => one.title)).toEqual([
    "Allowed",
    "Quota",
    "Free now",
    "Preemption",
    "New nodes",
  ]);
  expect(found.rows[0]!.cells.map((one) => [one.mark, one.text])).toEqual([
    ["yes", ""],
    ["yes", "enough"],
    ["no", "4 GPUs short"],
    ["no", "nothing to preempt"],
    ["no", "1 node left, too few"],
  ]);
  expect(found.rows[0]!.cells[2]!.more).toEqual(["4 pods too many"]);
});

test("where the queue is short, room is told all the same, and later steps were not tried", () => {
  const found = ladderOf(
    waits({
      places: [
        { cluster: "west", free: "16", short: "0", fits: true, flavor: "h100" },
        { cluster: "east", free: "8", short: "8", flavor: "h100" },
      ],
      reasons: [
        {
          code: "QuotaExceeded",
          queue: "research",
          flavor: "h100",
          short: { "nvidia.com/gpu": "16" },
          message: "queue research is short",
        },
      ],
    }),
  );
  expect(found.rows.map((one) => one.cells.map((cell) => cell.text))).toEqual([
    ["", "16 GPUs short", "fits", "not tried", "not tried"],
    ["", "16 GPUs short", "8 GPUs short", "not tried", "not tried"],
  ]);
  expect(found.standing).toEqual([]);
});

test("clusters that may not be used are told together, by what keeps them out", () => {
  const found = ladderOf(
    waits({
      reasons: [
        { code: "NotSelected", cluster: "a", message: "a is not chosen" },
        { code: "NotSelected", cluster: "b", message: "b is not chosen" },
        { code: "Tainted", cluster: "c", message: "c has a taint" },
        { code: "BehindHead", other: "team/first", message: "first is before it" },
      ],
    }),
  );
  expect(found.outside.map((one) => [one.words, one.clusters.map((each) => each.cluster)])).toEqual(
    [
      ["Not chosen by its policy", ["a", "b"]],
      ["Tainted, and not tolerated", ["c"]],
    ],
  );
  expect(found.rows).toEqual([]);
  expect(found.standing.map((one) => one.code)).toEqual(["BehindHead"]);
});

test("a cluster that only a reason names is not the nearest", () => {
  const none = {
    code: "DoesNotFit",
    cluster: "west",
    rung: "Idle",
    flavor: "h100",
    level: "flavor",
    message: "west has no h100 nodes",
  };
  expect(ladderOf(waits({ places: [], reasons: [none] })).nearest).toBe("");
  const east = { cluster: "east", free: "0", short: "16", flavor: "h100" };
  expect(ladderOf(waits({ places: [east], reasons: [none] })).nearest).toBe("east");
});

test("the nearest node or domain is named by what it lacks", () => {
  const told = (reason: object) =>
    ladderOf(
      waits({
        places: [{ cluster: "east", free: "8", short: "0" }],
        reasons: [
          {
            code: "DoesNotFit",
            cluster: "east",
            rung: "Idle",
            message: "m",
            short: { "nvidia.com/gpu": "4" },
            ...reason,
          },
        ],
      }),
    ).rows[0]!.cells[2]!.text;
  expect(told({ level: "node", other: "n-1" })).toBe("best node is 4 GPUs short");
  expect(told({ level: "rack", other: "r1" })).toBe("best rack is 4 GPUs short");
  expect(told({})).toBe("free, but not together");
  expect(told({ level: "flavor", flavor: "h100" })).toBe("no h100 nodes");
});

test("a hub that tells no places still has rows for the clusters of its reasons", () => {
  const found = ladderOf(
    waits({
      ladder: undefined,
      reasons: [{ code: "NoPool", cluster: "east", rung: "Provision", message: "none" }],
    }),
  );
  expect(found.rows.map((one) => one.cluster)).toEqual(["east"]);
  expect(found.columns.at(-1)!.key).toBe("Provision");
});
