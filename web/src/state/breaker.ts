// The breaker of money: what elastic nodes cost an hour now, what the fleet allows, what is left.

import type { Cluster, Fleet } from "../api/kinds";
import { amountOf } from "../words/amounts";
import { nodesLeft } from "./capacity";
import { poolsOf } from "./preferences";

export interface Pool {
  cluster: string;
  name: string;
  nodes: number;
  coming: number;
  price: number | null;
  /** How many more could be asked for until the breaker opens; null: no limit but the pool's own. */
  more: number;
  /** How many of those that the pool could bring the breaker would refuse. */
  refused: number;
}

export interface Breaker {
  limit: number | null;
  now: number;
  openSince: number | null;
  pools: Pool[];
}

/** It opens once what there is costs as much as is allowed; what one workload needs passes before. */
export function breakerOf(fleet: Fleet | null, clusters: Cluster[]): Breaker {
  const given = fleet?.spec?.breakers?.pricePerHour;
  const limit = given === undefined || given === null ? null : amountOf(given);
  const status = fleet?.status?.breakers?.find((one) => one.name === "Price");
  const pools = clusters.flatMap((cluster) => poolsIn(cluster));
  const standing = pools.reduce((sum, one) => sum + (one.nodes + one.coming) * (one.price ?? 0), 0);
  const now = status ? amountOf(status.pastHour) : standing;
  const openSince = status?.openSince ? Date.parse(status.openSince) : null;
  for (const pool of pools) {
    if (limit === null || !pool.price) continue;
    const fits = now >= limit ? 0 : Math.ceil((limit - now) / pool.price);
    pool.refused = Math.max(0, pool.more - fits);
    pool.more -= pool.refused;
  }
  return { limit, now, openSince, pools };
}

function poolsIn(cluster: Cluster): Pool[] {
  return poolsOf(cluster).map((pool) => {
    const status = cluster.status?.elasticPools?.find((one) => one.name === pool.name);
    const price = status?.pricePerHour ?? pool.pricePerHour;
    const more = nodesLeft(cluster, pool.name, pool.countMax, pool.stock);
    return {
      cluster: cluster.metadata?.name ?? "",
      name: pool.name,
      nodes: status?.nodes ?? 0,
      coming: status?.provisioning ?? 0,
      price: price === undefined ? null : amountOf(price),
      more,
      refused: 0,
    };
  });
}
