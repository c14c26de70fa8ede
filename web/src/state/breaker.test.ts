import { expect, test } from "vitest";
import type { Cluster, Fleet } from "../api/kinds";
import { breakerOf } from "./breaker";

const cloud = {
  metadata: { name: "cloud" },
  spec: { elasticPools: [{ name: "spot", shape: {}, countMax: 6, pricePerHour: "32" }] },
  status: { elasticPools: [{ name: "spot", nodes: 2, provisioning: 1 }] },
} as unknown as Cluster;
const fleet = (limit?: string, now?: string) =>
  ({
    spec: { breakers: { pricePerHour: limit } },
    status: { breakers: now ? [{ name: "Price", pastHour: now }] : [] },
  }) as unknown as Fleet;

test("without a limit nothing is refused, and what stands is added up", () => {
  expect(breakerOf(fleet(), [cloud])).toEqual({
    limit: null,
    now: 96,
    openSince: null,
    pools: [
      { cluster: "cloud", name: "spot", nodes: 2, coming: 1, price: 32, more: 3, refused: 0 },
    ],
  });
});

test("it is passed by the last one that begins below it", () => {
  const [pool] = breakerOf(fleet("100", "96"), [cloud]).pools;
  expect([pool?.more, pool?.refused]).toEqual([1, 2]);
});

test("at the limit everything is refused", () => {
  const [pool] = breakerOf(fleet("96", "96"), [cloud]).pools;
  expect([pool?.more, pool?.refused]).toEqual([0, 3]);
});
