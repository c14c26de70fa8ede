// What the board needs of each cluster.

import type { Cluster } from "../../api/kinds";
import type { Capacities } from "../../state/capacity";
import { type Grouping, phaseOf } from "../../state/grouping";
import type { Node } from "../../state/nodes";

export interface Entry {
  name: string;
  cluster: Cluster;
  phase: string;
  nodes: Node[];
  capacities: Capacities;
  gpus: number;
  away: number;
  used: number;
  reserved: number;
  free: number;
}

export interface Group {
  name: string;
  entries: Entry[];
  gpus: number;
  free: number;
}

export function entryOf(cluster: Cluster, nodes: Node[], capacities: Capacities): Entry {
  const entry: Entry = {
    name: cluster.metadata?.name ?? "",
    cluster,
    phase: phaseOf(cluster),
    nodes,
    capacities,
    gpus: 0,
    away: 0,
    used: 0,
    reserved: 0,
    free: 0,
  };
  for (const one of capacities.values())
    for (const sum of ["gpus", "away", "used", "reserved", "free"] as const) entry[sum] += one[sum];
  return entry;
}

export const ORDERS: Record<
  string,
  { title: string; compare: (one: Entry, other: Entry) => number }
> = {
  name: { title: "name", compare: () => 0 },
  free: { title: "most free", compare: (one, other) => other.free - one.free },
  full: { title: "fullest", compare: (one, other) => fullness(other) - fullness(one) },
  size: { title: "largest", compare: (one, other) => other.gpus - one.gpus },
};

export function fullness(entry: Entry): number {
  const there = entry.gpus - entry.away;
  return there ? 1 - entry.free / there : -1;
}

/** Steps of lightness from full to empty; a number says the same. */
export function shadeOf(free: number, whole: number, isReady = true): string {
  if (!isReady) return "away";
  if (!whole) return "none";
  const left = free / whole;
  return left === 0 ? "full" : left < 0.5 ? "most" : left < 1 ? "some" : "empty";
}

/** Clusters whose name, labels or state have every word. */
export function found(entries: Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return entries;
  return entries.filter((entry) => {
    const said =
      `${entry.name} ${entry.phase} ${Object.values(entry.cluster.metadata?.labels ?? {}).join(" ")} ${[...entry.capacities.keys()].join(" ")}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
}

export function grouped(entries: Entry[], grouping: Grouping, order: string): Group[] {
  const groups = new Map<string, Group & { at: number }>();
  for (const entry of entries) {
    const [at, name] = grouping.of(entry.cluster);
    const group = groups.get(name) ?? { name, at, entries: [], gpus: 0, free: 0 };
    groups.set(name, group);
    group.entries.push(entry);
    group.gpus += entry.gpus;
    group.free += entry.free;
  }
  const { compare } = ORDERS[order] ?? ORDERS.name!;
  for (const group of groups.values())
    group.entries.sort((one, other) => compare(one, other) || (one.name < other.name ? -1 : 1));
  return [...groups.values()].sort(
    (one, other) => one.at - other.at || (one.name < other.name ? -1 : 1),
  );
}
