// A change of a workload tried on a copy of the fleet, and what would come of it in words.

import { ask, ours } from "../api/client";
import type { Plan, Step, Workload } from "../api/kinds";
import { plural } from "../words/amounts";
import { listWords } from "../words/missing";
import { span } from "../words/times";
import { isOutside } from "./ladder";

export interface Tried {
  before: Plan;
  after: Plan;
}

export interface Outcome {
  starts: boolean;
  lines: string[];
}

export function tryOut(
  workload: Workload,
  spec: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<Tried> {
  const { managedFields: _, ...metadata } = workload.metadata ?? {};
  const changed = {
    ...workload,
    apiVersion: "fairway.dev/v1alpha1",
    kind: "Workload",
    metadata,
    spec: { ...workload.spec, ...spec },
  };
  return ask<Tried>(ours("fleets", "", "fleet", "whatif"), {
    method: "POST",
    body: { apply: [changed] },
    signal,
  });
}

const RUNGS: Record<string, string> = { Preempt: "by preemption", Provision: "with new nodes" };

export function outcomeOf(key: string, tried: Tried): Outcome {
  const admitted = admits(tried.after, key);
  const lines: string[] = [];
  if (admitted) {
    const places = listWords((admitted.placements ?? []).map((one) => one.cluster).filter(Boolean));
    const how = RUNGS[admitted.rung ?? ""];
    lines.push(`It would start now${places ? ` in ${places}` : ""}${how ? `, ${how}` : ""}.`);
    if (admits(tried.before, key)) lines.push("So it does without the change.");
  } else {
    const reasons = tried.after.waiting.find((one) => one.workload === key)?.reasons ?? [];
    const telling = reasons.find((one) => !isOutside(one)) ?? reasons[0];
    lines.push(
      telling ? `It would still wait: ${telling.message}.` : "Nothing would be decided on it.",
    );
  }
  for (const step of tried.after.steps) {
    if (step.action === "Provision" && step.workload === key)
      lines.push(
        `${plural(step.count ?? 0, "node")} of ${step.pool} would come to ${step.cluster}.`,
      );
    if (step.action === "Preempt" && step.for === key)
      lines.push(
        `${named(step.workload)} would be preempted${step.lostSeconds ? `, and lose ${span(step.lostSeconds * 1000)} of work` : ""}.`,
      );
  }
  const others = tried.before.steps.filter(
    (one) => one.action === "Admit" && one.workload !== key && !admits(tried.after, one.workload),
  );
  if (others.length)
    lines.push(
      `${others.length > 3 ? plural(others.length, "other workload") : listWords(others.map((one) => named(one.workload)))} would not start now.`,
    );
  return { starts: admitted !== undefined, lines };
}

function admits(plan: Plan, key: string): Step | undefined {
  return plan.steps.find((one) => one.action === "Admit" && one.workload === key);
}

function named(key: string): string {
  return key.split("/").at(-1) ?? key;
}
