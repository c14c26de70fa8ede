// Where the replicas of a service were over time.

import type { Decision, FleetAutoscaler, Rollout } from "../api/kinds";

export interface Replicas {
  /** In seconds. */
  times: number[];
  clusters: string[];
  columns: number[][];
  wanted: (number | null)[];
  ready: (number | null)[];
}

/** By decisions: each says how many replicas each cluster has from then on. */
export function fromDecisions(decisions: Decision[], key: string, now: Map<string, number>, at: number): Replicas {
  const names = new Set<string>(now.keys());
  for (const one of decisions)
    for (const step of one.steps) if (step.workload === key) for (const place of step.placements ?? []) if (place.cluster) names.add(place.cluster);
  const clusters = [...names];
  const found: Replicas = { times: [], clusters, columns: clusters.map(() => []), wanted: [], ready: [] };
  let has = new Map<string, number>();
  const note = (time: number) => {
    found.times.push(time);
    clusters.forEach((name, index) => found.columns[index]!.push(has.get(name) ?? 0));
  };
  for (const one of decisions) {
    for (const step of one.steps) {
      if (step.workload !== key) continue;
      if (step.action === "Admit") has.clear();
      if (step.action === "Move" && step.from) has.set(step.from, Math.max(0, (has.get(step.from) ?? 0) - (step.count ?? 0)));
      for (const place of step.placements ?? []) has.set(place.cluster, place.replicas ?? 0);
    }
    note(one.now);
  }
  has = now;
  note(Math.max(at, found.times.at(-1) ?? 0));
  return found;
}

export interface Mark {
  at: number;
  text: string;
  words: string;
}

/** What the autoscaler and the rollout did, the latest last. */
export function marksOf(autoscaler: FleetAutoscaler | null, rollout: Rollout | null): Mark[] {
  const found: Mark[] = [];
  const last = autoscaler?.status?.lastScaleTime;
  for (const one of autoscaler?.status?.changes ?? []) {
    const text = one.change > 0 ? `+${one.change}` : String(one.change);
    const isLast = last && Math.abs(Date.parse(one.at) - Date.parse(last)) < 2000;
    found.push({ at: Date.parse(one.at) / 1000, text, words: `scaled by ${text}${isLast && autoscaler?.status?.lastScaleReason ? `: ${autoscaler.status.lastScaleReason}` : ""}` });
  }
  for (const one of rollout?.status?.history ?? [])
    if (one.createdAt) found.push({ at: Date.parse(one.createdAt) / 1000, text: `r${one.revision}`, words: `revision ${one.revision} ${one.outcome ? `(${one.outcome})` : "goes out"}${one.changeCause ? `: ${one.changeCause}` : ""}` });
  return found.sort((one, other) => one.at - other.at);
}
