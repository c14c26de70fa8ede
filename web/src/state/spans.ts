// Workloads as spans of time on some place: what a Gantt chart draws.

import type { Row } from "./rows";
import { OVER } from "../words/phases";

export interface Span {
  key: string;
  name: string;
  group: string;
  from: number;
  to: number;
  gpus: number;
  sort: "ran" | "starts" | "runs" | "expected";
  said: string;
}

export type Grouping = "cluster" | "queue";

/** Everything that was, is, or is expected to be within a window. */
export function spansOf(rows: Row[], by: Grouping, from: number, now: number): Span[] {
  const found: Span[] = [];
  for (const row of rows) {
    const end = row.finished ?? now;
    const add = (cluster: string, gpus: number, start: number, to: number, sort: Span["sort"], said: string) => {
      if (to < from) return;
      found.push({ key: row.key, name: row.name, group: by === "cluster" ? cluster : row.queue, from: start, to, gpus, sort, said });
    };
    for (const one of row.past)
      for (const cluster of one.clusters.slice(0, by === "queue" ? 1 : undefined))
        add(cluster, row.gpus ?? 0, one.from, one.to, "ran", one.reason);
    if (OVER.has(row.phase)) continue;
    const places = by === "queue" && row.places.length ? [{ cluster: "", gpus: row.gpus ?? 0 }] : row.places;
    for (const place of places) {
      if (row.running !== null) add(place.cluster, place.gpus, row.running, end, "runs", "runs");
      else if (row.decided !== null) add(place.cluster, place.gpus, row.decided, end, "starts", "starts");
    }
    if (row.reservation?.starts)
      add(row.reservation.cluster, row.gpus ?? 0, row.reservation.starts, row.reservation.starts + (now - from) / 4, "expected", "expected");
  }
  return found;
}

/** Spans in lanes: each lane holds spans that do not overlap. */
export function lanesOf(spans: Span[]): Span[][] {
  const lanes: Span[][] = [];
  const ends: number[] = [];
  for (const span of spans.toSorted((one, other) => one.from - other.from || (one.key < other.key ? -1 : 1))) {
    const free = ends.findIndex((end) => end <= span.from);
    const at = free < 0 ? lanes.length : free;
    (lanes[at] ??= []).push(span);
    ends[at] = span.to;
  }
  return lanes;
}

/** GPUs in use over time, group by group: the times, then a column for each group. */
export function usageOf(spans: Span[], groups: string[], from: number, now: number): (number | null)[][] {
  const steps = 240;
  const times = Array.from({ length: steps + 1 }, (_, at) => from + ((now - from) * at) / steps);
  const columns = groups.map(() => new Array<number>(steps + 1).fill(0));
  for (const span of spans) {
    const column = columns[groups.indexOf(span.group)];
    if (!column || span.sort === "expected" || span.sort === "starts") continue;
    const first = Math.max(0, Math.ceil(((span.from - from) / (now - from)) * steps));
    const last = Math.min(steps, Math.floor(((span.to - from) / (now - from)) * steps));
    for (let at = first; at <= last; at += 1) column[at]! += span.gpus;
  }
  return [times.map((one) => one / 1000), ...columns];
}
