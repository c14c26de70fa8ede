import { expect, test } from "vitest";
import type { ClusterReport } from "../api/kinds";
import { elasticPods } from "./elastic";

const whole = {
  spec: {
    cluster: "cloud",
    agentEpoch: 1,
    sequence: 1,
    nodes: { names: ["own-0", "own-1"], labels: [] },
    works: [{ work: "team.chat", bound: { nodes: [0, 1], counts: [4, 4] } }],
  },
} as unknown as ClusterReport;
const change = (more: object = {}) =>
  ({
    spec: {
      cluster: "cloud",
      agentEpoch: 1,
      sequence: 5,
      sinceSequence: 1,
      nodes: {
        names: ["new-0", "zoo-0"],
        labels: [{ key: "fairway.dev/pool", values: ["spot", "spot"] }],
      },
      works: [{ work: "team.chat", bound: { nodes: [0, 1, 3], counts: [1, 2, 3] } }],
      ...more,
    },
  }) as unknown as ClusterReport;

test("nodes are counted in the order of all that there are after a change", () => {
  // In order: new-0, own-0, own-1, zoo-0.
  expect([...elasticPods([whole, change()], "team.chat")]).toEqual([["cloud", 4]]);
});

test("a change that was made from another report does not count", () => {
  expect([...elasticPods([whole, change({ sinceSequence: 2 })], "team.chat")]).toEqual([]);
});

test("of another work nothing is said", () => {
  expect([...elasticPods([whole, change()], "team.other")]).toEqual([]);
});
