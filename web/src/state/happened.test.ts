import { expect, test } from "vitest";
import { happened } from "./happened";

const event = (minute: number, message: string, count?: number) => ({
  reason: "Backoff",
  message,
  count,
  lastTimestamp: new Date(Date.UTC(2026, 0, 5, 10, minute)).toISOString(),
});

test("what happened again is told once, with how often, and the latest is first", () => {
  const found = happened(
    [event(1, "failed", 3), event(9, "failed", 2), event(5, "pulled")],
    [],
    "t/w",
  );
  expect(found.map((one) => [one.text, one.count])).toEqual([
    ["failed", 5],
    ["pulled", 1],
  ]);
});

test("a preemption is told from the side of the workload", () => {
  const steps = [
    { action: "Preempt" as const, workload: "t/victim", for: "t/w", lostSeconds: 120 },
    {
      action: "Preempt" as const,
      workload: "t/w",
      for: "t/boss",
      reasons: [{ code: "PreemptedToReclaim", message: "preempted for t/boss" }],
    },
  ];
  expect(happened([], [{ now: 1, steps }], "t/w").map((one) => [one.text, one.whom])).toEqual([
    ["t/victim gives way to it, 2 min of work lost", "t/victim"],
    ["preempted for t/boss", "t/boss"],
  ]);
});
