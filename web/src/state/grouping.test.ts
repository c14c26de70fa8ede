import { describe, expect, it } from "vitest";
import type { Cluster, PlacementPolicy } from "../api/kinds";
import { chooses, groupings, phaseOf } from "./grouping";

function cluster(
  name: string,
  labels: Record<string, string> = {},
  spec = {},
  status = {},
): Cluster {
  return { metadata: { name, labels }, spec, status } as unknown as Cluster;
}

const HOME = cluster("home", { site: "hangzhou", tier: "gold" }, {}, { phase: "Ready" });
const CLOUD = cluster("cloud", { site: "east" }, {}, { phase: "Ready" });
const POLICY = {
  metadata: { namespace: "fairway-system", name: "home-first" },
  spec: {
    selector: { exclude: ["edge"] },
    groups: [
      { name: "ours", selector: { labels: { matchLabels: { tier: "gold" } } } },
      {
        name: "rented",
        selector: {
          labels: { matchExpressions: [{ key: "site", operator: "In", values: ["east", "west"] }] },
        },
      },
    ],
  },
} as unknown as PlacementPolicy;

describe("a selector of clusters", () => {
  it.each([
    ["chooses all if it says nothing", {}, true],
    ["chooses by name", { names: ["home"] }, true],
    ["leaves out what it excludes", { names: ["home"], exclude: ["home"] }, false],
    ["wants every label", { labels: { matchLabels: { tier: "gold", site: "east" } } }, false],
    [
      "knows what must not be there",
      { labels: { matchExpressions: [{ key: "edge", operator: "DoesNotExist" }] } },
      true,
    ],
    [
      "knows what is in none of some values",
      { labels: { matchExpressions: [{ key: "site", operator: "NotIn", values: ["hangzhou"] }] } },
      false,
    ],
    [
      "is not guessed at where an expression decides",
      { expressions: ["cluster.claims.x == 'y'"] },
      null,
    ],
  ])("%s", (_, selector, expected) => {
    expect(chooses(selector as Parameters<typeof chooses>[0], HOME)).toBe(expected);
  });
});

describe("clusters stand", () => {
  const ways = groupings([HOME, CLOUD], [POLICY]);
  const by = (name: string) => ways.find((one) => one.name === name)!;

  it("by the groups of a policy, in its order", () => {
    const way = by("policy fairway-system/home-first");
    expect([HOME, CLOUD, cluster("edge"), cluster("other")].map((one) => way.of(one))).toEqual([
      [0, "ours"],
      [1, "rented"],
      [2, "not for this policy"],
      [2, "in no group"],
    ]);
  });

  it("by any label that one of them has", () => {
    expect(ways.map((one) => one.name)).toEqual([
      "region",
      "provider",
      "health",
      "policy fairway-system/home-first",
      "label site",
      "label tier",
    ]);
    expect(by("label tier").of(CLOUD)).toEqual([1, "no tier"]);
  });

  it("by how they are, drained and held ones apart", () => {
    expect(phaseOf(cluster("x", {}, { hold: "HoldAndDrain" }, { phase: "Held" }))).toBe("Draining");
    expect(phaseOf(cluster("x", {}, { hold: "Hold" }, { phase: "Lost" }))).toBe("Lost");
    expect(phaseOf(cluster("x"))).toBe("Pending");
  });
});
