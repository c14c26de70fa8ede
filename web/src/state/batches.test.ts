// The table of tests/core/rollouts/test_batches.py: the page draws what the hub does.
import { expect, test } from "vitest";
import { batchesOf, type Site } from "./batches";

const SITES: Site[] = [
  { cluster: "beijing", replicas: 10, group: "home", rank: 0 },
  { cluster: "hangzhou", replicas: 6, group: "cloud", rank: 1 },
  { cluster: "shanghai", replicas: 4, group: "cloud", rank: 1 },
];
const ALL = { beijing: null, hangzhou: null, shanghai: null };
const CLOUD = { hangzhou: null, shanghai: null };

test.each([
  ["nothing asked for is one batch", {}, false, [ALL]],
  [
    "a canary takes whole clusters, the smallest first",
    { canary: { percent: 10 } },
    false,
    [{ shanghai: null }, ALL],
  ],
  [
    "a canary takes no more than it must where clusters are divisible",
    { canary: { percent: 10 } },
    true,
    [{ shanghai: 2 }, ALL],
  ],
  ["a canary is at least one replica", { canary: { percent: 1 } }, true, [{ shanghai: 1 }, ALL]],
  [
    "a canary comes from the clusters that are named",
    { canary: { percent: 10, clusters: ["beijing"] } },
    true,
    [{ beijing: 2 }, ALL],
  ],
  [
    "a canary of clusters that are not there is nothing",
    { canary: { percent: 10, clusters: ["nowhere"] } },
    true,
    [{}, ALL],
  ],
  [
    "groups go one after another, in the policy's order",
    { byGroup: true },
    false,
    [{ beijing: null }, ALL],
  ],
  [
    "named clusters and groups, and the rest last",
    { batches: [{ clusters: ["shanghai"] }, { group: "cloud" }] },
    false,
    [{ shanghai: null }, CLOUD, ALL],
  ],
  [
    "the last batch that names all is the last",
    { batches: [{ group: "cloud" }, { group: "home" }] },
    false,
    [CLOUD, ALL],
  ],
  [
    "a percentage takes whole clusters until it is reached",
    { batches: [{ percent: 25 }, { percent: 60 }] },
    false,
    [{ beijing: null }, { beijing: null, hangzhou: null }, ALL],
  ],
  [
    "a percentage is exact where clusters are divisible",
    { batches: [{ percent: 25 }, { percent: 60 }] },
    true,
    [{ beijing: 5 }, { beijing: null, hangzhou: 2 }, ALL],
  ],
  [
    "a percentage counts what a canary has already",
    { canary: { percent: 10 }, batches: [{ percent: 50 }] },
    true,
    [{ shanghai: 2 }, { shanghai: 2, beijing: 8 }, ALL],
  ],
])("%s", (_, strategy, isDivisible, expected) => {
  const found = batchesOf(
    strategy as unknown as Parameters<typeof batchesOf>[0],
    SITES,
    isDivisible,
  );
  expect(found.map((one) => Object.fromEntries(one))).toEqual(expected);
});
