// How much there is of each model, in one cluster and in all: what nodes have, what of it is used,
// promised or held for somebody who waits, what can be had besides, and at what price.

import type { Cluster, Flavor } from "../api/kinds";
import { acceleratorsOf, amountOf, isAccelerator } from "../words/amounts";
import { flavorOf, type Node, type Seen } from "./nodes";
import type { Row } from "./rows";

export interface Capacity {
  flavor: string;
  description: string;
  nodes: number;
  gpus: number;
  away: number; // on nodes that take no pods now
  used: number; // by pods that have a node
  reserved: number; // claimed, and its pods have no node yet
  free: number; // neither used nor reserved
  held: number; // wanted by those who wait and hold a reservation; free until then
  coming: number; // on elastic nodes on their way
  elastic: number; // could be had
  price: [number, number] | null; // for one GPU an hour, from and to
  fragments: number[]; // how many nodes have 0, 1, 2... free
  pieces: number; // free GPUs beside used ones: no pod that wants a whole node can have them
}

export type Capacities = Map<string, Capacity>;

function nothing(flavor: string): Capacity {
  return {
    flavor,
    description: "",
    nodes: 0,
    gpus: 0,
    away: 0,
    used: 0,
    reserved: 0,
    free: 0,
    held: 0,
    coming: 0,
    elastic: 0,
    price: null,
    fragments: [],
    pieces: 0,
  };
}

function of(found: Capacities, flavor: string): Capacity {
  const here = found.get(flavor) ?? nothing(flavor);
  found.set(flavor, here);
  return here;
}

export interface Promised {
  /** GPUs by flavor, of what is claimed and has no node yet. */
  reserved: Map<string, number>;
  /** GPUs by flavor, of those who wait for them with a reservation. */
  held: Map<string, number>;
}

const NONE: Promised = { reserved: new Map(), held: new Map() };

/** What is promised in each cluster, by its name. */
export function promisedIn(rows: Row[], seen: Map<string, Seen>): Map<string, Promised> {
  const found = new Map<string, Promised>();
  const add = (cluster: string, sort: keyof Promised, flavor: string, gpus: number) => {
    const here = found.get(cluster) ?? { reserved: new Map(), held: new Map() };
    found.set(cluster, here);
    here[sort].set(flavor, (here[sort].get(flavor) ?? 0) + gpus);
  };
  for (const row of rows) {
    if (row.reservation && !row.places.length && row.gpus)
      add(row.reservation.cluster, "held", row.reservation.flavors[0] ?? "", row.gpus);
    if (row.phase !== "Claimed" && (row.phase !== "Running" || row.ready >= row.wanted)) continue;
    for (const place of row.places) {
      const bound = seen.get(place.cluster)?.bound.get(`${row.namespace}.${row.name}`) ?? 0;
      if (place.gpus > bound)
        add(place.cluster, "reserved", place.flavors.split("+")[0] ?? "", place.gpus - bound);
    }
  }
  return found;
}

/** What one cluster has of each model. */
export function capacityIn(
  cluster: Cluster,
  nodes: Node[],
  flavors: Flavor[],
  promised: Promised = NONE,
): Capacities {
  const found: Capacities = new Map();
  for (const node of nodes) {
    if (!node.gpus) continue;
    const here = of(found, node.flavor);
    here.nodes += 1;
    here.gpus += node.gpus;
    if (!node.isReady) {
      here.away += node.gpus;
      continue;
    }
    here.free += node.free;
    here.used += node.gpus - node.free;
    if (node.free < node.gpus) here.pieces += node.free;
    const left = Math.floor(node.free);
    here.fragments[left] = (here.fragments[left] ?? 0) + 1;
  }
  addElastic(found, cluster, flavors);
  for (const [flavor, gpus] of promised.reserved) {
    const here = of(found, flavor);
    here.reserved += gpus;
    // What is claimed on nodes that are on their way takes nothing of those that are here.
    here.free -= Math.min(here.free, Math.max(0, gpus - here.coming));
  }
  for (const [flavor, gpus] of promised.held) of(found, flavor).held += gpus;
  return found;
}

function addElastic(found: Capacities, cluster: Cluster, flavors: Flavor[]): void {
  for (const pool of poolsOf(cluster)) {
    if (!pool.each) continue;
    const here = of(found, flavorOf(pool.labels, flavors));
    here.elastic += pool.each * pool.left;
    here.coming += pool.each * pool.provisioning;
    if (pool.price !== null) here.price = widened(here.price, pool.price / pool.each);
  }
}

/** The sum over clusters, the largest first, with what flavors say of themselves. */
export function summed(parts: Iterable<Capacities>, flavors: Flavor[]): Capacity[] {
  const found: Capacities = new Map();
  for (const part of parts) for (const one of part.values()) added(of(found, one.flavor), one);
  for (const flavor of flavors) {
    const here = found.get(flavor.metadata?.name ?? "");
    if (!here) continue;
    here.description = flavor.spec?.description ?? "";
    for (const [resource, price] of Object.entries(flavor.spec?.prices ?? {}))
      if (isAccelerator(resource)) here.price = widened(here.price, amountOf(price));
  }
  return [...found.values()].sort(
    (one, other) => other.gpus - one.gpus || (one.flavor < other.flavor ? -1 : 1),
  );
}

const SUMS = [
  "nodes",
  "gpus",
  "away",
  "used",
  "reserved",
  "free",
  "held",
  "coming",
  "elastic",
  "pieces",
] as const;

function added(sum: Capacity, one: Capacity): void {
  for (const name of SUMS) sum[name] += one[name];
  if (one.price) sum.price = widened(widened(sum.price, one.price[0]), one.price[1]);
  one.fragments.forEach((count, free) => {
    sum.fragments[free] = (sum.fragments[free] ?? 0) + count;
  });
}

export interface Pool {
  name: string;
  each: number; // GPUs of one node
  here: number;
  provisioning: number;
  left: number; // how many more could be had
  price: number | null; // of one node an hour
  labels: Record<string, string>;
  fault: string;
}

/** Pools of a cluster, its own and those its agent found: up to their limit, as far as the stock goes. */
export function poolsOf(cluster: Cluster): Pool[] {
  const own = cluster.spec.elasticPools ?? [];
  const offered = (cluster.status?.offeredPools ?? []).filter(
    (one) => !own.some((other) => other.name === one.name),
  );
  return [...own, ...offered].map((pool) => {
    const status = (cluster.status?.elasticPools ?? []).find((one) => one.name === pool.name);
    const price = status?.pricePerHour ?? pool.pricePerHour;
    return {
      name: pool.name,
      each: acceleratorsOf(pool.shape),
      here: status?.nodes ?? 0,
      provisioning: status?.provisioning ?? 0,
      left: nodesLeft(cluster, pool.name, pool.countMax, pool.stock),
      price: price === undefined || price === null ? null : amountOf(price),
      labels: (pool.labels ?? {}) as Record<string, string>,
      fault: status?.fault ?? "",
    };
  });
}

/** How many more nodes a pool could bring: up to its limit, and as far as the stock goes. */
export function nodesLeft(
  cluster: Cluster,
  name: string,
  countMax: number,
  stock?: number,
): number {
  const status = (cluster.status?.elasticPools ?? []).find((one) => one.name === name);
  const there = (status?.nodes ?? 0) + (status?.provisioning ?? 0);
  return Math.max(0, Math.min(countMax - there, status?.stock ?? stock ?? Infinity));
}

function widened(range: [number, number] | null, price: number): [number, number] {
  return range ? [Math.min(range[0], price), Math.max(range[1], price)] : [price, price];
}
