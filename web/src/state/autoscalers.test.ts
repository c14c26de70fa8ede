import { expect, test } from "vitest";
import type { FleetAutoscaler } from "../api/kinds";
import { countsOf, gaugesOf, keyOfAutoscaler, paceOf, troubleOfAutoscaler } from "./autoscalers";

function autoscaler(spec: object, status: object = {}): FleetAutoscaler {
  return {
    metadata: { name: "chat", namespace: "team" },
    spec: { target: { name: "chat" }, maxReplicas: 8, ...spec },
    status,
  } as unknown as FleetAutoscaler;
}

test("a queue of requests is told for each replica, a level is told as it is", () => {
  const metrics = [
    { type: "Serving", serving: { engine: "vLLM", signal: "QueueLength", target: "5" } },
    { type: "Serving", serving: { engine: "vLLM", signal: "KVCacheUse", target: "800m" } },
  ];
  const currentMetrics = [
    { type: "Serving", name: "vLLM QueueLength", averageValue: "4572m" },
    { type: "Serving", name: "vLLM KVCacheUse" },
  ];
  expect(gaugesOf(autoscaler({ metrics }, { currentMetrics }))).toEqual([
    { name: "vLLM QueueLength", current: "4.57", target: "5 for each replica", ratio: 4.572 / 5 },
    { name: "vLLM KVCacheUse", current: "not measured", target: "0.8", ratio: null },
  ]);
});

test("without any metric the processor is kept at 80%", () => {
  expect(
    gaugesOf(
      autoscaler(
        {},
        { currentMetrics: [{ type: "Resource", name: "cpu resource", averageUtilization: 40 }] },
      ),
    ),
  ).toEqual([{ name: "cpu", current: "40%", target: "80% of what pods request", ratio: 0.5 }]);
});

test("limits are those of the schedule that holds, once somebody has looked", () => {
  expect(countsOf(autoscaler({ minReplicas: 2 }))).toEqual({
    now: 0,
    wanted: 0,
    least: 2,
    most: 8,
  });
  expect(
    countsOf(
      autoscaler(
        { minReplicas: 2 },
        {
          observedGeneration: 1,
          currentReplicas: 3,
          desiredReplicas: 4,
          minReplicas: 0,
          maxReplicas: 4,
        },
      ),
    ),
  ).toEqual({ now: 3, wanted: 4, least: 0, most: 4 });
});

test("what keeps it from scaling is said", () => {
  const conditions = [
    {
      type: "ScalingActive",
      status: "False",
      reason: "FailedGetServingMetric",
      message: "no answer",
    },
  ];
  expect([
    troubleOfAutoscaler(autoscaler({}, { conditions })),
    troubleOfAutoscaler(autoscaler({})),
  ]).toEqual(["no answer", ""]);
});

test.each([
  [{}, "up", "at most 4 in 15 s or 100% in 15 s"],
  [{}, "down", "at most 100% in 15 s, held back for 5 min"],
  [{ behavior: { scaleDown: { selectPolicy: "Disabled" } } }, "down", "never"],
  [
    {
      behavior: {
        scaleUp: {
          selectPolicy: "Min",
          policies: [
            { type: "Pods", value: 3, periodSeconds: 15 },
            { type: "Percent", value: 50, periodSeconds: 60 },
          ],
        },
      },
    },
    "up",
    "at most 3 in 15 s and 50% in 60 s",
  ],
])("%o goes %s %s", (spec, direction, words) => {
  expect(paceOf(autoscaler(spec), direction as "up" | "down")).toBe(words);
});

test("an autoscaler of a native object is that of the workload which stands for it", () => {
  expect(keyOfAutoscaler(autoscaler({ target: { kind: "Deployment", name: "chat" } }))).toBe(
    "team/deployment-chat",
  );
});
