// Replicas on nodes that came from elastic pools: by the label that such nodes carry in reports.

import type { ClusterReport } from "../api/kinds";

const POOL = "fairway.dev/pool";
type Spec = ClusterReport["spec"];

/** Pods of a work on elastic nodes, by cluster. */
export function elasticPods(reports: ClusterReport[], work: string): Map<string, number> {
  const found = new Map<string, number>();
  const changes = new Map(
    reports
      .filter((one) => one.spec.sinceSequence !== undefined)
      .map((one) => [`${one.spec.cluster} ${one.spec.chunk ?? 0}`, one.spec]),
  );
  for (const { spec } of reports) {
    if (spec.sinceSequence !== undefined) continue;
    const change = changes.get(`${spec.cluster} ${spec.chunk ?? 0}`);
    const isOf = change?.sinceSequence === spec.sequence && change?.agentEpoch === spec.agentEpoch;
    const count = countIn(spec, isOf ? (change ?? null) : null, work);
    if (count) found.set(spec.cluster, (found.get(spec.cluster) ?? 0) + count);
  }
  return found;
}

function countIn(whole: Spec, change: Spec | null, work: string): number {
  const pools = poolsIn(whole);
  const before = [...(whole.nodes?.names ?? [])];
  let names = before;
  if (change) {
    const table = new Set(before);
    for (const name of change.removedNodes ?? []) table.delete(name);
    for (const [name, pool] of poolsIn(change)) pools.set(name, pool);
    for (const name of change.nodes?.names ?? []) table.add(name);
    names = [...table].sort();
  }
  const isReplaced =
    change?.works?.some((one) => one.work === work) || change?.removedWorks?.includes(work);
  const [works, over] = change && isReplaced ? [change.works, names] : [whole.works, before];
  let count = 0;
  for (const one of works ?? [])
    if (one.work === work)
      one.bound?.nodes.forEach((position, at) => {
        count += pools.get(over[position] ?? "") ? (one.bound?.counts[at] ?? 0) : 0;
      });
  return count;
}

function poolsIn(spec: Spec): Map<string, string> {
  const column = spec.nodes?.labels?.find((one) => one.key === POOL);
  return new Map((spec.nodes?.names ?? []).map((name, at) => [name, column?.values[at] ?? ""]));
}
