// Nodes from reports: whole chunks with the differences that were made from just them.

import type { ClusterReport, Flavor } from "../api/kinds";
import { amountOf, isAccelerator } from "../words/amounts";

export interface Node {
  name: string;
  flavor: string;
  gpus: number;
  free: number;
  isReady: boolean;
  works: string[];
}

type Spec = ClusterReport["spec"];
type Works = NonNullable<Spec["works"]>;

interface Seen {
  labels: Record<string, string>;
  gpus: number;
  others: number;
  isReady: boolean;
}

/** The nodes of every cluster, by its name. */
export function nodesOf(reports: ClusterReport[], flavors: Flavor[]): Map<string, Node[]> {
  const wholes = reports.filter((one) => one.spec.sinceSequence === undefined);
  const changes = new Map<string, ClusterReport>();
  for (const one of reports)
    if (one.spec.sinceSequence !== undefined)
      changes.set(`${one.spec.cluster} ${one.spec.chunk ?? 0}`, one);
  const found = new Map<string, Node[]>();
  for (const whole of wholes) {
    const { cluster, chunk = 0 } = whole.spec;
    const change = changes.get(`${cluster} ${chunk}`);
    const nodes = nodesOfChunk(whole.spec, change && fits(whole, change) ? change.spec : null, flavors);
    found.set(cluster, [...(found.get(cluster) ?? []), ...nodes]);
  }
  for (const nodes of found.values()) nodes.sort((one, other) => (one.name < other.name ? -1 : 1));
  return found;
}

function fits(whole: ClusterReport, change: ClusterReport): boolean {
  return (
    change.spec.sinceSequence === whole.spec.sequence &&
    change.spec.agentEpoch === whole.spec.agentEpoch
  );
}

function nodesOfChunk(whole: Spec, change: Spec | null, flavors: Flavor[]): Node[] {
  const table = seenIn(whole);
  const before = [...(whole.nodes?.names ?? [])];
  if (change) {
    for (const name of change.removedNodes ?? []) table.delete(name);
    for (const [name, node] of seenIn(change)) table.set(name, node);
  }
  const after = [...table.keys()].sort();
  const used = new Map<string, { gpus: number; works: string[] }>();
  const replaced = new Set([
    ...(change?.works ?? []).map((one) => one.work),
    ...(change?.removedWorks ?? []),
  ]);
  charge(used, (whole.works ?? []).filter((one) => !replaced.has(one.work)), before);
  charge(used, change?.works ?? [], after);
  return after.map((name) => {
    const node = table.get(name)!;
    const here = used.get(name);
    return {
      name,
      flavor: flavorOf(node.labels, flavors),
      gpus: node.gpus,
      free: node.isReady ? Math.max(0, node.gpus - node.others - (here?.gpus ?? 0)) : 0,
      isReady: node.isReady,
      works: here?.works ?? [],
    };
  });
}

function seenIn(spec: Spec): Map<string, Seen> {
  const nodes = spec.nodes ?? {};
  const names = nodes.names ?? [];
  const unready = new Set(nodes.unready ?? []);
  const devices = (nodes.amounts ?? []).filter((one) => isAccelerator(one.resource));
  return new Map(
    names.map((name, at) => {
      const labels: Record<string, string> = {};
      for (const column of nodes.labels ?? []) {
        const value = column.values[at];
        if (value) labels[column.key] = value;
      }
      let gpus = 0;
      let others = 0;
      for (const column of devices) {
        const unit = amountOf(column.unit);
        gpus += (column.allocatable[at] ?? 0) * unit;
        others += (column.others?.[at] ?? 0) * unit;
      }
      return [name, { labels, gpus, others, isReady: !unready.has(at) }];
    }),
  );
}

function charge(used: Map<string, { gpus: number; works: string[] }>, works: Works, names: string[]): void {
  for (const one of works) {
    let each = 0;
    for (const [resource, quantity] of Object.entries(one.requests ?? {}))
      if (isAccelerator(resource)) each += amountOf(quantity);
    for (const pods of [one.bound, one.terminating])
      pods?.nodes.forEach((position, at) => {
        const name = names[position];
        if (name === undefined) return;
        const here = used.get(name) ?? { gpus: 0, works: [] };
        here.gpus += each * (pods.counts[at] ?? 0);
        if (!here.works.includes(one.work)) here.works.push(one.work);
        used.set(name, here);
      });
  }
}

/** The flavor whose labels a node has; the most particular where several match. */
export function flavorOf(labels: Record<string, string>, flavors: Flavor[]): string {
  let best = "";
  let most = 0;
  for (const flavor of flavors) {
    const wanted = Object.entries(flavor.spec?.nodeLabels ?? {});
    if (wanted.length > most && wanted.every(([key, value]) => labels[key] === value)) {
      best = flavor.metadata?.name ?? "";
      most = wanted.length;
    }
  }
  return best;
}
