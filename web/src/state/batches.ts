// Batches of a rollout: how many replicas of each cluster have the new revision once each is done.
// The hub works the same out anew at every look, and says only which of them is under way.

import type { Rollout } from "../api/kinds";

type Strategy = NonNullable<Rollout["spec"]["strategy"]>;

export interface Site {
  cluster: string;
  group: string;
  rank: number;
  replicas: number;
}

/** Replicas by cluster; null: all that there are. */
export type Goal = Map<string, number | null>;

export function batchesOf(strategy: Strategy, sites: Site[], isDivisible: boolean): Goal[] {
  const ordered = sites.toSorted(
    (one, other) => one.rank - other.rank || (one.cluster < other.cluster ? -1 : 1),
  );
  const goals: Goal[] = [];
  let reached: Goal = new Map();
  if (strategy.canary) {
    const { percent = 10, clusters = [] } = strategy.canary;
    const smallest = ordered.toSorted(
      (one, other) => one.replicas - other.replicas || (one.cluster < other.cluster ? -1 : 1),
    );
    const from = clusters.length
      ? ordered.filter((one) => clusters.includes(one.cluster))
      : smallest;
    reached = filled(new Map(), from, part(ordered, percent), isDivisible);
    goals.push(reached);
  }
  for (const batch of listed(strategy, ordered)) {
    if (batch.percent !== undefined)
      reached = filled(reached, ordered, part(ordered, batch.percent), isDivisible);
    else {
      reached = new Map(reached);
      for (const one of ordered)
        if (batch.clusters?.includes(one.cluster) || (batch.group && one.group === batch.group))
          reached.set(one.cluster, null);
    }
    goals.push(reached);
  }
  const last = goals.at(-1);
  if (!last || !ordered.every((one) => last.get(one.cluster) === null))
    goals.push(new Map(ordered.map((one) => [one.cluster, null])));
  return goals;
}

interface Batch {
  clusters?: readonly string[];
  group?: string;
  percent?: number;
}

function listed(strategy: Strategy, sites: Site[]): readonly Batch[] {
  if (!strategy.byGroup) return (strategy.batches ?? []) as Batch[];
  const groups = [...new Set(sites.map((one) => one.group))];
  return groups.map((group) => ({
    clusters: sites.filter((one) => one.group === group).map((one) => one.cluster),
  }));
}

/** A share of all replicas, rounded up. */
function part(sites: Site[], percent: number): number {
  return Math.ceil((sites.reduce((sum, one) => sum + one.replicas, 0) * percent) / 100);
}

function filled(reached: Goal, order: Site[], wanted: number, isDivisible: boolean): Goal {
  const goal: Goal = new Map(reached);
  const has = (one: Site) =>
    goal.has(one.cluster) ? Math.min(goal.get(one.cluster) ?? one.replicas, one.replicas) : 0;
  let lacking = wanted - order.reduce((sum, one) => sum + has(one), 0);
  for (const one of order) {
    const room = one.replicas - has(one);
    if (lacking <= 0) break;
    if (room <= 0) continue;
    const taken = isDivisible ? Math.min(room, lacking) : room;
    goal.set(one.cluster, taken === room ? null : has(one) + taken);
    lacking -= taken;
  }
  return goal;
}
