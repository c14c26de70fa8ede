// Where the replicas of a service were over time.

import type { FleetAutoscaler, Rollout } from "../api/kinds";
import { entryOf, type History } from "./history";

export interface Replicas {
  /** In seconds. */
  times: number[];
  clusters: string[];
  columns: number[][];
  wanted: (number | null)[];
  ready: (number | null)[];
}

/** What is so now, which the hub will have written down a few seconds later. */
export interface Now {
  at: number;
  places: Map<string, number>;
  wanted: number;
  ready: number;
}

/** What the hub has kept, up to now; clusters that it is in come first, in their order. */
export function replicasOf(history: History | null, key: string, now: Now): Replicas {
  const entry = entryOf(history, key);
  const past = new Map((entry?.parts ?? []).map((one) => [one.name, one.values.placed ?? []]));
  const clusters = [...new Set([...now.places.keys(), ...past.keys()])];
  const times = [...(history?.times ?? [])].filter((at) => at < now.at);
  const until = (values: (number | null)[] | undefined, last: number) => [
    ...times.map((_, at) => values?.[at] ?? null),
    last,
  ];
  return {
    times: [...times, now.at],
    clusters,
    columns: clusters.map((one) =>
      until(past.get(one), now.places.get(one) ?? 0).map((value) => value ?? 0),
    ),
    wanted: until(entry?.values.wanted, now.wanted),
    ready: until(entry?.values.ready, now.ready),
  };
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
    found.push({
      at: Date.parse(one.at) / 1000,
      text,
      words: `scaled by ${text}${isLast && autoscaler?.status?.lastScaleReason ? `: ${autoscaler.status.lastScaleReason}` : ""}`,
    });
  }
  for (const one of rollout?.status?.history ?? [])
    if (one.createdAt)
      found.push({
        at: Date.parse(one.createdAt) / 1000,
        text: `r${one.revision}`,
        words: `revision ${one.revision} ${one.outcome ? `(${one.outcome})` : "rolling out"}${one.changeCause ? `: ${one.changeCause}` : ""}`,
      });
  return found.sort((one, other) => one.at - other.at);
}
