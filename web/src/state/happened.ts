// Events and decisions as lines, the latest first; what happened again and again is told once.

import type { CoreEvent, Decision, Step } from "../api/kinds";
import { plural } from "../words/amounts";
import { moment, span } from "../words/times";

export interface Happened {
  at: number;
  first: number;
  count: number;
  word: string;
  by: string;
  text: string;
  isWarning: boolean;
  whom: string; // another workload that it is about
}

export function happened(events: CoreEvent[], decisions: Decision[], key: string): Happened[] {
  const lines = [
    ...events.map((one): Happened => {
      const at = moment(one.lastTimestamp ?? one.eventTime ?? one.metadata?.creationTimestamp) ?? 0;
      return {
        at,
        first: moment(one.firstTimestamp) ?? at,
        count: one.count ?? 1,
        word: one.reason ?? "",
        by: one.source?.component ?? one.reportingComponent ?? "",
        text: one.message ?? one.note ?? "",
        isWarning: one.type === "Warning",
        whom: "",
      };
    }),
    ...decisions.flatMap((one) =>
      one.steps.map((step): Happened => ({
        at: one.now * 1000,
        first: one.now * 1000,
        count: 1,
        word: step.action,
        by: "decision",
        text: stepWords(step, key),
        isWarning: false,
        whom:
          step.workload === key
            ? step.action === "Preempt"
              ? (step.for ?? "")
              : ""
            : step.workload,
      })),
    ),
  ];
  const found: Happened[] = [];
  const told = new Map<string, Happened>();
  for (const one of lines.sort((one, other) => other.at - one.at)) {
    // Events are told together wherever they are; decisions only where nothing came between them.
    const alike = `${one.by}\n${one.word}\n${one.text}`;
    const last = found.at(-1);
    const known =
      one.by === "decision"
        ? last && `${last.by}\n${last.word}\n${last.text}` === alike
          ? last
          : undefined
        : told.get(alike);
    if (known)
      Object.assign(known, {
        first: Math.min(known.first, one.first),
        count: known.count + one.count,
      });
    else {
      found.push(one);
      told.set(alike, one);
    }
  }
  return found;
}

function stepWords(step: Step, key: string): string {
  const places = (step.placements ?? []).map((one) => {
    const pods = (one.podSets ?? []).map(
      (set) =>
        `${set.count} ${set.name === "pod" && set.count !== 1 ? "pods" : set.name}${Object.keys(set.flavors ?? {}).length ? ` on ${[...new Set(Object.values(set.flavors ?? {}))].join("+")}` : ""}`,
    );
    return `${pods.join(" + ")} in ${one.cluster || "no cluster"}`;
  });
  const reasons = (step.reasons ?? []).map((one) => one.message).join("; ");
  const lost = step.lostSeconds ? `, ${span(step.lostSeconds * 1000)} of work lost` : "";
  if (step.action === "Provision")
    return `${plural(step.count ?? 0, "node")} of ${step.pool} in ${step.cluster}`;
  if (step.action === "Preempt")
    return step.workload === key
      ? `${reasons || `for ${step.for}`}${lost}`
      : `${step.workload} gives way to it${lost}`;
  return [places.join("; "), step.rung, reasons].filter(Boolean).join(" · ");
}
