// Nodes from reports: whole chunks with the differences that were made from just them.
//
// A fleet has thousands of nodes and its reports keep coming, so what was worked out of a chunk is
// kept until that chunk changes; the list of a cluster that says the same is the same list.

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

/** A cluster as it was last reported. */
export interface Seen {
  nodes: Node[];
  /** GPUs of pods that have a node, by work. */
  bound: Map<string, number>;
}

type Spec = ClusterReport["spec"];
type Works = NonNullable<Spec["works"]>;

interface Shape {
  flavor: string;
  gpus: number;
  others: number;
  isReady: boolean;
}

interface Chunk extends Seen {
  whole: ClusterReport;
  change: ClusterReport | null;
}

/** What was seen in every cluster, by its name. */
export class Sight {
  private flavors: Flavor[] = [];
  private chunks = new Map<string, Chunk>();
  private clusters = new Map<string, { chunks: Chunk[]; seen: Seen }>();

  of(reports: ClusterReport[], flavors: Flavor[]): Map<string, Seen> {
    if (flavors !== this.flavors) this.chunks.clear();
    this.flavors = flavors;
    const changes = new Map<string, ClusterReport>();
    for (const one of reports)
      if (one.spec.sinceSequence !== undefined) changes.set(placeOf(one), one);
    const chunks = new Map<string, Chunk>();
    const byCluster = new Map<string, Chunk[]>();
    for (const whole of reports) {
      if (whole.spec.sinceSequence !== undefined) continue;
      const chunk = this.chunk(whole, changes.get(placeOf(whole)) ?? null);
      chunks.set(placeOf(whole), chunk);
      const beside = byCluster.get(whole.spec.cluster);
      if (beside) beside.push(chunk);
      else byCluster.set(whole.spec.cluster, [chunk]);
    }
    this.chunks = chunks;
    const before = this.clusters;
    this.clusters = new Map(
      [...byCluster].map(([name, list]) => [name, joined(list, before.get(name))]),
    );
    return new Map([...this.clusters].map(([name, { seen }]) => [name, seen]));
  }

  private chunk(whole: ClusterReport, found: ClusterReport | null): Chunk {
    const change = found && fits(whole, found) ? found : null;
    const known = this.chunks.get(placeOf(whole));
    if (known && known.whole === whole && known.change === change) return known;
    return { whole, change, ...seenIn(whole.spec, change?.spec ?? null, this.flavors) };
  }
}

/** The nodes of every cluster, by its name. */
export function nodesOf(reports: ClusterReport[], flavors: Flavor[]): Map<string, Node[]> {
  return new Map([...new Sight().of(reports, flavors)].map(([name, { nodes }]) => [name, nodes]));
}

function placeOf(report: ClusterReport): string {
  return `${report.spec.cluster} ${report.spec.chunk ?? 0}`;
}

function joined(
  chunks: Chunk[],
  before: { chunks: Chunk[]; seen: Seen } | undefined,
): { chunks: Chunk[]; seen: Seen } {
  if (
    before &&
    before.chunks.length === chunks.length &&
    chunks.every((one, at) => one === before.chunks[at])
  )
    return before;
  const [first] = chunks;
  if (first && chunks.length === 1) return { chunks, seen: first };
  const bound = new Map<string, number>();
  for (const chunk of chunks)
    for (const [work, gpus] of chunk.bound) bound.set(work, (bound.get(work) ?? 0) + gpus);
  const nodes = chunks
    .flatMap((one) => one.nodes)
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  return { chunks, seen: { nodes, bound } };
}

function fits(whole: ClusterReport, change: ClusterReport): boolean {
  return (
    change.spec.sinceSequence === whole.spec.sequence &&
    change.spec.agentEpoch === whole.spec.agentEpoch
  );
}

function seenIn(whole: Spec, change: Spec | null, flavors: Flavor[]): Seen {
  const table = shapesIn(whole, flavors);
  const before = [...(whole.nodes?.names ?? [])];
  if (change) {
    for (const name of change.removedNodes ?? []) table.delete(name);
    for (const [name, node] of shapesIn(change, flavors)) table.set(name, node);
  }
  const after = [...table.keys()].sort();
  const used = new Map<string, { gpus: number; works: string[] }>();
  const bound = new Map<string, number>();
  const replaced = new Set([
    ...(change?.works ?? []).map((one) => one.work),
    ...(change?.removedWorks ?? []),
  ]);
  charge(
    used,
    bound,
    (whole.works ?? []).filter((one) => !replaced.has(one.work)),
    before,
  );
  charge(used, bound, change?.works ?? [], after);
  const nodes = after.map((name) => {
    const { flavor, gpus, others, isReady } = table.get(name)!;
    const here = used.get(name);
    const free = isReady ? Math.max(0, gpus - others - (here?.gpus ?? 0)) : 0;
    return { name, flavor, gpus, free, isReady, works: here?.works ?? [] };
  });
  return { nodes, bound };
}

function shapesIn(spec: Spec, flavors: Flavor[]): Map<string, Shape> {
  const nodes = spec.nodes ?? {};
  const names = nodes.names ?? [];
  const unready = new Set(nodes.unready ?? []);
  const devices = (nodes.amounts ?? [])
    .filter((one) => isAccelerator(one.resource))
    .map((one) => ({ ...one, unit: amountOf(one.unit) }));
  const telling = new Set(flavors.flatMap((one) => Object.keys(one.spec?.nodeLabels ?? {})));
  const columns = (nodes.labels ?? []).filter((one) => telling.has(one.key));
  const known = new Map<string, string>();
  return new Map(
    names.map((name, at) => {
      const values = columns.map((one) => one.values[at] ?? "").join("\n");
      let flavor = known.get(values);
      if (flavor === undefined) {
        flavor = flavorOf(
          Object.fromEntries(
            columns.flatMap((one) => (one.values[at] ? [[one.key, one.values[at]]] : [])),
          ),
          flavors,
        );
        known.set(values, flavor);
      }
      let gpus = 0;
      let others = 0;
      for (const { allocatable, others: taken, unit } of devices) {
        gpus += (allocatable[at] ?? 0) * unit;
        others += (taken?.[at] ?? 0) * unit;
      }
      return [name, { flavor, gpus, others, isReady: !unready.has(at) }];
    }),
  );
}

function charge(
  used: Map<string, { gpus: number; works: string[] }>,
  bound: Map<string, number>,
  works: Works,
  names: string[],
): void {
  for (const one of works) {
    let each = 0;
    for (const [resource, quantity] of Object.entries(one.requests ?? {}))
      if (isAccelerator(resource)) each += amountOf(quantity);
    for (const pods of [one.bound, one.terminating])
      pods?.nodes.forEach((position, at) => {
        const name = names[position];
        if (name === undefined) return;
        const gpus = each * (pods.counts[at] ?? 0);
        const here = used.get(name) ?? { gpus: 0, works: [] };
        here.gpus += gpus;
        if (!here.works.includes(one.work)) here.works.push(one.work);
        used.set(name, here);
        if (pods === one.bound) bound.set(one.work, (bound.get(one.work) ?? 0) + gpus);
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
