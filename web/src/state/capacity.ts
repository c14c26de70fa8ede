// How much there is of each model: what nodes have, what can be had besides, and at what price.

import type { Cluster, Flavor } from "../api/kinds";
import { acceleratorsOf, amountOf, isAccelerator } from "../words/amounts";
import { flavorOf, type Node } from "./nodes";
import type { Row } from "./rows";

export interface Capacity {
  flavor: string;
  description: string;
  nodes: number;
  gpus: number;
  free: number;
  away: number; // on nodes that take no pods now
  starting: number; // claimed, and its pods are not there yet
  elastic: number; // could be had
  price: [number, number] | null; // for one GPU an hour, from and to
  fragments: number[]; // how many nodes have 0, 1, 2... free
}

export function capacityOf(
  clusters: Cluster[],
  nodes: Map<string, Node[]>,
  flavors: Flavor[],
  rows: Row[],
): Capacity[] {
  const found = new Map<string, Capacity>();
  const of = (flavor: string): Capacity => {
    const known = found.get(flavor) ?? {
      flavor, description: "", nodes: 0, gpus: 0, free: 0, away: 0, starting: 0, elastic: 0, price: null, fragments: [],
    };
    found.set(flavor, known);
    return known;
  };
  for (const list of nodes.values())
    for (const node of list) {
      if (!node.gpus) continue;
      const here = of(node.flavor);
      here.nodes += 1;
      here.gpus += node.gpus;
      here.free += node.free;
      if (!node.isReady) here.away += node.gpus;
      else here.fragments[Math.floor(node.free)] = (here.fragments[Math.floor(node.free)] ?? 0) + 1;
    }
  for (const cluster of clusters) addElastic(cluster, flavors, of);
  for (const row of rows)
    if (row.phase === "Claimed") for (const place of row.places) if (place.gpus) of(place.flavors).starting += place.gpus;
  for (const flavor of flavors) {
    const here = found.get(flavor.metadata?.name ?? "");
    if (!here) continue;
    here.description = flavor.spec?.description ?? "";
    for (const [resource, price] of Object.entries(flavor.spec?.prices ?? {}))
      if (isAccelerator(resource)) here.price = widened(here.price, amountOf(price));
  }
  return [...found.values()].sort((one, other) => other.gpus - one.gpus || (one.flavor < other.flavor ? -1 : 1));
}

function addElastic(cluster: Cluster, flavors: Flavor[], of: (flavor: string) => Capacity): void {
  for (const pool of cluster.spec.elasticPools ?? []) {
    const each = acceleratorsOf(pool.shape);
    if (!each) continue;
    const here = of(flavorOf((pool.labels ?? {}) as Record<string, string>, flavors));
    here.elastic += each * nodesLeft(cluster, pool.name, pool.countMax, pool.stock);
    if (pool.pricePerHour !== undefined) here.price = widened(here.price, amountOf(pool.pricePerHour) / each);
  }
}

/** How many more nodes a pool could bring: up to its limit, and as far as the stock goes. */
export function nodesLeft(cluster: Cluster, name: string, countMax: number, stock?: number): number {
  const status = (cluster.status?.elasticPools ?? []).find((one) => one.name === name);
  const there = (status?.nodes ?? 0) + (status?.provisioning ?? 0);
  return Math.max(0, Math.min(countMax - there, status?.stock ?? stock ?? Infinity));
}

function widened(range: [number, number] | null, price: number): [number, number] {
  return range ? [Math.min(range[0], price), Math.max(range[1], price)] : [price, price];
}
