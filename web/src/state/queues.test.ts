import { expect, test } from "vitest";
import type { Standing } from "../api/kinds";
import {
  byFairness,
  fairnessOf,
  happeningsOf,
  headOf,
  isOpenAtFirst,
  linesOf,
  pathOf,
  totalOf,
  amountsOf,
  treeOf,
} from "./queues";
import type { Row } from "./rows";

function standing(queue: string, parent = "", more: Partial<Standing> = {}): Standing {
  return {
    queue,
    parent,
    weight: "1",
    waiting: 0,
    claimed: 0,
    running: 0,
    share: 0,
    holdings: [],
    heads: [],
    ...more,
  };
}

function gpus(nominal: number, used: number, flavor = "h100"): Standing["holdings"][number] {
  return {
    flavor,
    resource: "nvidia.com/gpu",
    nominal: `${nominal}`,
    used: `${used}`,
    borrowed: `${Math.max(0, used - nominal)}`,
    lent: "0",
  };
}

const COMPANY = [
  standing("company"),
  standing("research", "company"),
  standing("vision", "research", { heads: ["a/one"] }),
  standing("product", "company"),
];

test("a tree knows depths, ways and who is next below", () => {
  const tree = treeOf(COMPANY);
  expect(tree.roots).toEqual(["company"]);
  expect(pathOf(tree, "vision").map((one) => one.queue)).toEqual(["company", "research", "vision"]);
  expect(tree.branches.get("vision")?.depth).toBe(2);
  expect(headOf(tree, "company")).toBe("a/one");
});

test("a queue whose parent is not known is a root", () => {
  expect(treeOf([standing("lost", "nowhere")]).roots).toEqual(["lost"]);
});

test("lines are those that are open, or what a search finds with the way to it", () => {
  const tree = treeOf(COMPANY);
  const names = (found: { queue: string }[]) => found.map((one) => one.queue);
  expect(names(linesOf(tree, (one) => one.depth < 1, ""))).toEqual([
    "company",
    "research",
    "product",
  ]);
  expect(names(linesOf(tree, () => false, "VIS"))).toEqual(["company", "research", "vision"]);
});

test("of a large tree only the first level is open at first", () => {
  const many = treeOf([
    standing("root"),
    ...Array.from({ length: 1000 }, (_, at) => standing(`q${at}`, "root")),
  ]);
  expect(isOpenAtFirst(many, many.branches.get("q1")!)).toBe(false);
  expect(isOpenAtFirst(many, many.branches.get("root")!)).toBe(true);
});

test.each([
  [
    standing("a", "all", { holdings: [gpus(8, 16)], fair: 8 }),
    "over",
    "8 GPUs over its fair share",
  ],
  [
    standing("a", "all", { holdings: [gpus(8, 7)], fair: 8, waiting: 1 }),
    "owed",
    "1 GPU below its fair share",
  ],
  [
    standing("a", "all", { holdings: [gpus(8, 8)], fair: 8, waiting: 1 }),
    "fair",
    "has its fair share",
  ],
  [standing("a", "all", { holdings: [gpus(8, 4)], fair: 4 }), "fair", "has all it asks for"],
  [standing("a", "all", { holdings: [gpus(8, 0)], fair: 0 }), "idle", "asks for nothing"],
  [standing("a", "", { holdings: [gpus(8, 4)], fair: 4, waiting: 3 }), "alone", ""],
] as const)("a queue stands against its fair share: %#", (one, stand, words) => {
  expect(fairnessOf(one)).toMatchObject({ stand, words });
});

test("who is owed most comes first", () => {
  const over = standing("over", "all", { holdings: [gpus(8, 16)], fair: 8 });
  const owed = standing("owed", "all", { holdings: [gpus(8, 0)], fair: 8, waiting: 1 });
  const idle = standing("idle", "all", { holdings: [gpus(8, 0)], fair: 0 });
  expect([idle, over, owed].sort(byFairness).map((one) => one.queue)).toEqual([
    "owed",
    "over",
    "idle",
  ]);
});

test("memory is not added to processors", () => {
  const cpu = { ...gpus(4, 2, "cpu"), resource: "cpu" };
  const memory = { ...gpus(1e9, 1e9, "cpu"), resource: "memory" };
  expect(totalOf(amountsOf([memory, cpu]))).toMatchObject({ resource: "cpu", nominal: 4, used: 2 });
});

test("what happened lately is told of the queues that are looked at, the latest first", () => {
  const row = (name: string, queue: string, more: Partial<Row>) =>
    ({
      key: `team/${name}`,
      queue,
      decided: null,
      finished: null,
      clusters: "",
      past: [],
      ...more,
    }) as unknown as Row;
  const rows = [
    row("one", "vision", {
      decided: 30,
      clusters: "hangzhou",
      past: [{ clusters: ["tokyo"], from: 1, to: 20, reason: "PreemptedToReclaim" }],
    }),
    row("two", "vision", {
      finished: 40,
      past: [{ clusters: ["tokyo"], from: 1, to: 40, reason: "Succeeded" }],
    }),
    row("three", "product", { decided: 50 }),
  ];
  expect(
    happeningsOf(rows, new Set(["vision"]), 9).map((one) => [one.word, one.key, one.said]),
  ).toEqual([
    ["Finished", "team/two", "succeeded"],
    ["Admitted", "team/one", "hangzhou"],
    ["Preempted", "team/one", "tokyo"],
  ]);
});
