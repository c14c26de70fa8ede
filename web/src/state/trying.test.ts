import { expect, test } from "vitest";
import type { Plan } from "../api/kinds";
import { outcomeOf } from "./trying";

const plan = (given: Partial<Plan>): Plan => ({ now: 0, steps: [], waiting: [], ...given });

test("a change that helps says where it starts, and at whose expense", () => {
  const after = plan({
    steps: [
      { action: "Preempt", workload: "team/small", for: "team/w", lostSeconds: 600 },
      { action: "Admit", workload: "team/w", rung: "Preempt", placements: [{ cluster: "east" }] },
    ],
  });
  const before = plan({
    steps: [{ action: "Admit", workload: "team/other" }],
    waiting: [{ workload: "team/w", reasons: [] }],
  });
  expect(outcomeOf("team/w", { before, after })).toEqual({
    starts: true,
    lines: [
      "It would start now in east, by preemption.",
      "small would be preempted, and lose 10 min of work.",
      "other would not start now.",
    ],
  });
});

test("a change that does not help says what is still missing", () => {
  const after = plan({
    waiting: [
      {
        workload: "team/w",
        reasons: [
          { code: "ClusterForbidden", cluster: "a", message: "a is forbidden" },
          { code: "DoesNotFit", message: "east: 4 pods too many" },
        ],
      },
    ],
  });
  expect(outcomeOf("team/w", { before: plan({}), after })).toEqual({
    starts: false,
    lines: ["It would still wait: east: 4 pods too many."],
  });
});
