import { expect, test } from "vitest";
import { changeOf, wordsOf, type Edit, type WorkloadEdit } from "./edits";

const JOB: WorkloadEdit = {
  kind: "workload",
  sort: "Job",
  name: "try",
  namespace: "team",
  queue: "research",
  flavor: "h100",
  resource: "nvidia.com/gpu",
  pods: 2,
  gpus: 8,
  priority: 5,
  minutes: 10,
};
const QUOTA: Edit = {
  kind: "quota",
  queue: "research",
  flavor: "h100",
  resource: "nvidia.com/gpu",
  nominal: "8",
  before: "16",
};

test("several edits are one document, without what is not used", () => {
  const change = changeOf([QUOTA, { kind: "lost", cluster: "east" }]);
  expect(change).toEqual({
    quota: [{ queue: "research", flavor: "h100", resource: "nvidia.com/gpu", nominal: "8" }],
    lose: ["east"],
  });
});

test.each([
  ["Job", undefined, undefined],
  ["Deployment", "Divided", 2],
  ["Sweep", "Independent", undefined],
] as const)("a %s is a workload of its mode", (sort, mode, replicas) => {
  const change = changeOf([{ ...JOB, sort }]) as { apply: { spec: Record<string, unknown> }[] };
  expect(change.apply[0]!.spec.mode).toBe(mode);
  expect(change.apply[0]!.spec.replicas).toBe(replicas);
});

test("texts are put one after the other", () => {
  const change = changeOf([
    { kind: "manifests", text: "a: 1" },
    { kind: "manifests", text: "b: 2\n" },
  ]);
  expect(change).toEqual({ manifests: "a: 1\n---\nb: 2\n" });
});

test.each<[Edit, string]>([
  [JOB, "team/try: a job of 2 pods with 8 GPUs h100 each, in queue research, priority 5"],
  [QUOTA, "research owns 8 h100 instead of 16"],
  [
    {
      kind: "copy",
      name: "new",
      of: "east",
      labels: { "topology.kubernetes.io/region": "north" },
      priceFactor: "0.5",
    },
    "a new cluster new with the nodes of east, in north, at 0.5 × the price",
  ],
])("an edit is said in words", (edit, words) => {
  expect(wordsOf(edit)).toBe(words);
});
