import { expect, test } from "vitest";
import type { Explanation, Workload } from "../api/kinds";
import { rowOf } from "./rows";
import { podsFor, specOf, waysOf, withPods } from "./wishes";

const container = { resources: { limits: { "nvidia.com/gpu": 8 } } };
const job = {
  kind: "Job",
  spec: { parallelism: 3, completions: 3, template: { spec: { containers: [container] } } },
};
const WORKLOAD = {
  metadata: { name: "w", namespace: "t" },
  spec: { queue: "q", flavors: ["h100"], template: { manifests: [job] } },
} as unknown as Workload;
const WHY: Explanation = { now: 0, workload: "t/w", state: "Waits", queue: "q", message: "" };
const GIVEN = { priority: 5, queue: "other", hold: "Hold" };

test("each way to a start has what the page can do about it", () => {
  const why = {
    ...WHY,
    position: 2,
    remedies: [
      { kind: "Flavor", name: "a100", message: "", needs: { amount: "24", of: "a100" } },
      { kind: "FewerPods", message: "", needs: { amount: "16", of: "h100" } },
      { kind: "Quota", name: "q", message: "", short: { "nvidia.com/gpu": "8" } },
    ],
  };
  expect(
    waysOf(why, WORKLOAD, rowOf(WORKLOAD)).map((one) => [one.button, one.wish ?? one.link]),
  ).toEqual([
    ["Accept a100…", { what: "flavor", name: "a100" }],
    ["Run 2 pods…", { what: "smaller", pods: 2 }],
    ["Try another quota", "whatif"],
    ["Raise its priority…", { what: "priority" }],
  ]);
});

test("one that stands for a native object is not changed beside it", () => {
  const native = {
    ...WORKLOAD,
    spec: { ...WORKLOAD.spec, source: { apiVersion: "batch/v1", kind: "Job", name: "w" } },
  } as Workload;
  const why = {
    ...WHY,
    remedies: [{ kind: "Flavor", name: "a100", message: "", needs: { amount: "24", of: "a100" } }],
  };
  expect(waysOf(why, native, rowOf(native)).map((one) => one.button)).toEqual([undefined]);
});

test("fewer pods change the count of a job, and nothing else", () => {
  expect(podsFor(WORKLOAD, 16)).toBe(2);
  expect(podsFor(WORKLOAD, 12)).toBeNull();
  expect(withPods(WORKLOAD, 2)).toEqual({
    template: { manifests: [{ ...job, spec: { ...job.spec, parallelism: 2, completions: 2 } }] },
  });
});

test("a wish becomes one field", () => {
  expect(specOf({ what: "flavor", name: "a100" }, WORKLOAD, GIVEN)).toEqual({
    flavors: ["h100", "a100"],
  });
  expect(specOf({ what: "queue" }, WORKLOAD, GIVEN)).toEqual({ queue: "other" });
  expect(specOf({ what: "suspend" }, WORKLOAD, GIVEN)).toEqual({ hold: "Hold" });
});
