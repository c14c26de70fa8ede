import { expect, test } from "vitest";
import type { Workload } from "../api/kinds";
import { ofStopping } from "./consequences";
import { rowOf } from "./rows";

const NOW = Date.UTC(2026, 0, 5, 12);
function running(spec: object, claim: object = {}): string[] {
  const workload = {
    metadata: { name: "w", namespace: "team" },
    spec,
    status: {
      phase: "Running",
      claim: {
        readyAt: new Date(NOW - 7_200_000).toISOString(),
        placements: [
          {
            cluster: "east",
            podSets: [{ name: "pod", count: 2, requests: { "nvidia.com/gpu": 8 } }],
          },
        ],
        ...claim,
      },
    },
  } as unknown as Workload;
  return ofStopping(workload, rowOf(workload), NOW);
}

test.each([
  [
    "without checkpoints all is lost",
    {},
    {},
    ["16 GPUs in east are freed.", "It saves nothing: 2 h of work since it last started is lost."],
  ],
  [
    "one that can be asked saves first",
    { checkpoint: { graceSeconds: 120 } },
    {},
    ["16 GPUs in east are freed.", "It is asked to save its work first, and gets 2 min for that."],
  ],
  [
    "one that saves by itself loses an interval",
    { checkpoint: { signal: "", intervalSeconds: 600 } },
    {},
    ["16 GPUs in east are freed.", "It saves by itself: at most 10 min of work is lost."],
  ],
  [
    "one that only starts loses nothing",
    {},
    { readyAt: undefined },
    ["16 GPUs in east are freed.", "It has not begun to run, so no work is lost."],
  ],
  [
    "a service serves nobody",
    { mode: "Divided" },
    {},
    ["16 GPUs in east are freed.", "It serves no traffic until it runs again."],
  ],
])("%s", (_, spec, claim, said) => {
  expect(running(spec, claim)).toEqual(said);
});
