import { expect, test } from "vitest";
import type {
  Cluster,
  Explanation,
  Flavor,
  Fleet,
  PlacementPolicy,
  Queue,
  Workload,
} from "../api/kinds";
import type { Node } from "./nodes";
import { chooses, ladderOf, policyOf } from "./preferences";
import type { ServicePlace } from "./services";

function cluster(name: string, labels: Record<string, string> = {}, more: object = {}): Cluster {
  return {
    metadata: { name, labels },
    spec: {},
    status: { phase: "Ready" },
    ...more,
  } as unknown as Cluster;
}

test.each([
  [{}, true],
  [{ names: ["a", "b"] }, true],
  [{ names: ["b"] }, false],
  [{ exclude: ["a"] }, false],
  [{ labels: { matchLabels: { region: "east" } } }, true],
  [{ labels: { matchLabels: { region: "west" } } }, false],
  [{ labels: { matchExpressions: [{ key: "region", operator: "In", values: ["east"] }] } }, true],
  [
    { labels: { matchExpressions: [{ key: "region", operator: "NotIn", values: ["east"] }] } },
    false,
  ],
  [{ labels: { matchExpressions: [{ key: "zone", operator: "DoesNotExist" }] } }, true],
])("%o chooses a cluster in the east: %s", (selector, expected) => {
  expect(chooses(selector as Parameters<typeof chooses>[0], cluster("a", { region: "east" }))).toBe(
    expected,
  );
});

test("a policy is its own, else that of a queue above it, else the fleet's", () => {
  const named = (key: string) => ({ metadata: { name: key } }) as unknown as PlacementPolicy;
  const known = {
    policies: new Map(
      ["team/own", "system/own", "system/queues", "system/fleets"].map((key) => [key, named(key)]),
    ),
    queues: new Map([
      ["leaf", { spec: { parent: "root" } } as unknown as Queue],
      ["root", { spec: { defaults: { policy: "queues" } } } as unknown as Queue],
    ]),
    fleet: {
      spec: { systemNamespace: "system", defaults: { policy: "fleets" } },
    } as unknown as Fleet,
  };
  const found = (name: string, namespace: string, queue: string) =>
    policyOf(name, namespace, queue, known)?.metadata?.name;
  expect([
    found("own", "team", ""),
    found("own", "other", ""),
    found("", "team", "leaf"),
    found("", "team", "none"),
  ]).toEqual(["team/own", "system/own", "system/queues", "system/fleets"]);
});

const flavors = [
  {
    metadata: { name: "a100" },
    spec: { nodeLabels: { model: "a100" }, prices: { "nvidia.com/gpu": "2" } },
  },
] as unknown as Flavor[];
const node = (free: number, flavor = "a100"): Node =>
  ({ name: `n${free}`, flavor, gpus: 8, free, isReady: true, works: [] }) as Node;
const pool = {
  spec: {
    elasticPools: [
      {
        name: "spot",
        shape: { "nvidia.com/gpu": 8 },
        labels: { model: "a100" },
        countMax: 2,
        pricePerHour: "40",
      },
    ],
  },
};
const place = (name: string, group: string, replicas: number, leaves = ""): ServicePlace => ({
  cluster: name,
  group,
  replicas,
  ready: replicas,
  weight: 0,
  leaves,
});

function known(places: ServicePlace[], free: number, more: object = {}) {
  const placements = places.map((one) => ({
    cluster: one.cluster,
    replicas: one.replicas,
    podSets: [{ name: "pod", count: one.replicas, requests: { "nvidia.com/gpu": 2 } }],
  }));
  return {
    workload: {
      spec: { replicas: 4, flavors: ["a100"] },
      status: { claim: { placements } },
    } as unknown as Workload,
    places,
    policy: {
      spec: {
        groups: [
          { name: "home", selector: { names: ["home"] } },
          { name: "cloud", selector: { names: ["cloud"] } },
        ],
        returnHome: { enabled: true, afterSeconds: 15 },
      },
    } as unknown as PlacementPolicy,
    clusters: [cluster("cloud", {}, pool), cluster("home"), cluster("elsewhere")],
    nodes: new Map([
      ["home", [node(free), node(8, "h100")]],
      ["cloud", [node(5)]],
    ]),
    flavors,
    why: null as Explanation | null,
    now: 0,
    ...more,
  };
}

test("each cluster says what more would fit there, and what a replica costs", () => {
  const [home, cloud] = ladderOf(known([place("home", "home", 4)], 3));
  expect(home?.steps).toEqual([
    {
      cluster: "home",
      place: place("home", "home", 4),
      room: 1,
      elasticRoom: 0,
      price: 4,
      why: "preferred, so it is filled first",
    },
  ]);
  expect(cloud?.steps).toEqual([
    {
      cluster: "cloud",
      place: null,
      room: 2,
      elasticRoom: 8,
      price: 4,
      why: "not needed: every replica has a place",
    },
  ]);
});

test.each([
  [0, "takes what the groups before it have no room for"],
  [2, "comes home once there has been room for 15 s"],
])("with %d free at home the cloud %s", (free, words) => {
  expect(
    ladderOf(known([place("home", "home", 2), place("cloud", "cloud", 2)], free))[1]?.steps[0]?.why,
  ).toBe(words);
});

test("what lacks a place is told with the hub's own reasons", () => {
  const why = {
    reasons: [{ code: "DoesNotFit", cluster: "cloud", message: "cloud: 1 pod too many" }],
  } as unknown as Explanation;
  expect(ladderOf(known([place("home", "home", 3)], 0, { why }))[1]?.steps[0]?.why).toBe(
    "1 pod too many",
  );
});

test("a cluster that takes nothing says so", () => {
  const clusters = [
    cluster("home", {}, { status: { phase: "Lost" } }),
    cluster("cloud", {}, { spec: { ...pool.spec, hold: "Hold" } }),
  ];
  expect(ladderOf(known([], 0, { clusters })).map((group) => group.steps[0]?.why)).toEqual([
    "lost",
    "held: it takes nothing new",
  ]);
});
