import { expect, test } from "vitest";
import type { FleetAutoscaler, Rollout } from "../api/kinds";
import type { History } from "./history";
import { marksOf, replicasOf } from "./replicas";

const history: History = {
  now: 30,
  series: "services",
  step: 10,
  times: [10, 20, 30],
  found: [
    {
      name: "team/chat",
      values: { wanted: [2, 4, 4], ready: [null, 2, 4] },
      parts: [
        { name: "cloud", values: { placed: [null, 2, 2] } },
        { name: "gone", values: { placed: [2, null, null] } },
      ],
    },
  ],
};
const now = {
  at: 25,
  places: new Map([
    ["home", 3],
    ["cloud", 1],
  ]),
  wanted: 4,
  ready: 3,
};

test("what the hub has kept goes on with what is so now", () => {
  expect(replicasOf(history, "team/chat", now)).toEqual({
    times: [10, 20, 25],
    clusters: ["home", "cloud", "gone"],
    columns: [
      [0, 0, 3],
      [0, 2, 1],
      [2, 0, 0],
    ],
    wanted: [2, 4, 4],
    ready: [null, 2, 3],
  });
});

test("of a service that nobody has written down yet there is what is so now", () => {
  expect(replicasOf(null, "team/chat", now)).toEqual({
    times: [25],
    clusters: ["home", "cloud"],
    columns: [[3], [1]],
    wanted: [4],
    ready: [3],
  });
});

test("what the autoscaler and the rollout did is told in order, the last change with its reason", () => {
  const autoscaler = {
    status: {
      lastScaleTime: "1970-01-01T00:00:20Z",
      lastScaleReason: "much to do",
      changes: [
        { at: "1970-01-01T00:00:10Z", change: -1 },
        { at: "1970-01-01T00:00:20Z", change: 3 },
      ],
    },
  } as unknown as FleetAutoscaler;
  const rollout = {
    status: { history: [{ revision: 2, mark: "a", createdAt: "1970-01-01T00:00:15Z" }] },
  } as unknown as Rollout;
  expect(marksOf(autoscaler, rollout).map((one) => `${one.at} ${one.text}: ${one.words}`)).toEqual([
    "10 -1: scaled by -1",
    "15 r2: revision 2 rolling out",
    "20 +3: scaled by +3: much to do",
  ]);
});
