import { expect, test } from "vitest";
import type { Cluster, FleetAutoscaler, PlacementPolicy, Rollout, Workload } from "../api/kinds";
import { rowOf } from "./rows";
import { type Around, SHOWN, servicesOf, SORTS, withShares } from "./services";

function place(cluster: string, group: string, replicas: number, more: object = {}) {
  return { cluster, group, replicas, podSets: [{ name: "pod", count: replicas }], ...more };
}

function service(
  name: string,
  replicas: number,
  placements: object[],
  status: object = {},
): Workload {
  const placed = (placements as { replicas: number }[]).reduce((sum, one) => sum + one.replicas, 0);
  return {
    metadata: { name, namespace: "team", resourceVersion: "1" },
    spec: { mode: "Divided", replicas, queue: "serving" },
    status: {
      phase: "Running",
      claim: { placements },
      pods: { wanted: placed, ready: placed },
      ...status,
    },
  } as unknown as Workload;
}

const policy = {
  spec: { groups: [{ name: "home" }, { name: "cloud" }] },
} as unknown as PlacementPolicy;
const around: Around = { autoscalers: [], rollouts: [], clusters: [], policyOf: () => policy };
const one = (workload: Workload, more: Partial<Around> = {}) =>
  servicesOf([rowOf(workload)], { ...around, ...more })[0]!;

test("places come in the order of the policy, and what is beyond the first group is a burst", () => {
  const found = one(
    service("chat", 7, [place("b", "cloud", 1), place("c", "cloud", 4), place("a", "home", 2)]),
  );
  expect([found.part.places.map((each) => each.cluster), found.burst]).toEqual([
    ["a", "c", "b"],
    5,
  ]);
});

test("what leaves comes last, and is not counted among what is placed", () => {
  const releasing = [
    place("b", "cloud", 2, { leaves: "WhenReplaced" }),
    place("d", "cloud", 1, { givesWayTo: "a" }),
  ];
  const { part } = one(service("chat", 2, [place("a", "home", 2)], { releasing }));
  expect(part.places.map((each) => each.leaves)).toEqual([
    "",
    "leaves when it is replaced",
    "gives way to a",
  ]);
  expect(part.placed).toBe(2);
});

test("a replica of several pods is ready once all of them are", () => {
  const { part } = one(
    service("chat", 2, [place("a", "home", 2)], { pods: { wanted: 8, ready: 7 } }),
  );
  expect([part.ready, part.places[0]?.ready]).toEqual([1, 1]);
});

test.each([
  ["all is well", service("chat", 2, [place("a", "home", 2)]), {}, undefined],
  [
    "room is lacking",
    service("chat", 5, [place("a", "home", 2)]),
    {},
    "3 more replicas are pending",
  ],
  [
    "one is not ready",
    service("chat", 2, [place("a", "home", 2)], { pods: { wanted: 2, ready: 1 } }),
    {},
    "1 replica is not ready yet",
  ],
  ["nothing has a place", service("chat", 2, []), {}, "None has a place"],
  ["it is held", service("chat", 2, [], { phase: "Held" }), {}, "It is held"],
  [
    "its cluster is lost",
    service("chat", 2, [place("a", "home", 2)]),
    { clusters: [{ metadata: { name: "a" }, status: { phase: "Lost" } } as unknown as Cluster] },
    "a is lost",
  ],
  [
    "a new version was bad",
    service("chat", 2, [place("a", "home", 2)]),
    {
      rollouts: [
        {
          metadata: { namespace: "team", name: "x" },
          spec: { workload: { name: "chat" } },
          status: { phase: "RolledBack", message: "a 0/1" },
        } as unknown as Rollout,
      ],
    },
    "New version rolled back: a 0/1",
  ],
  [
    "nobody can measure",
    service("chat", 2, [place("a", "home", 2)]),
    {
      autoscalers: [
        {
          metadata: { namespace: "team", name: "x" },
          spec: { target: { name: "chat" }, maxReplicas: 3 },
          status: {
            conditions: [
              { type: "ScalingActive", status: "False", reason: "Failed", message: "no answer" },
            ],
          },
        } as unknown as FleetAutoscaler,
      ],
    },
    "Not scaled: no answer",
  ],
])("trouble in words: %s", (_, workload, more, expected) => {
  expect(one(workload, more as Partial<Around>).trouble?.text).toBe(expected);
});

test("replicas that count for their speed may be fewer than asked for", () => {
  const bySpeed = { spec: { division: { countBy: "Speed" } } } as unknown as PlacementPolicy;
  expect(
    one(service("chat", 24, [place("a", "", 16)]), { policyOf: () => bySpeed }).trouble,
  ).toBeNull();
});

test("services are chosen by what they do, and sorted by what lacks", () => {
  const found = servicesOf(
    [
      service("a", 2, [place("a", "home", 2)]),
      service("b", 9, [place("a", "home", 2), place("c", "cloud", 1)]),
    ].map(rowOf),
    around,
  );
  expect(found.filter(SHOWN.burst!.holds).map((each) => each.row.name)).toEqual(["b"]);
  expect(found.filter(SHOWN.trouble!.holds).map((each) => each.row.name)).toEqual(["b"]);
  expect(found.toSorted(SORTS.lacking).map((each) => each.row.name)).toEqual(["b", "a"]);
});

test("shares that were worked out just now go before those that were written", () => {
  const { part } = one(service("chat", 4, [place("a", "home", 2), place("b", "cloud", 2)]));
  expect(
    withShares(part, [{ cluster: "b", weight: 200, ready: 1 }]).places.map((each) => [
      each.cluster,
      each.ready,
      each.weight,
    ]),
  ).toEqual([
    ["a", 2, 0],
    ["b", 1, 200],
  ]);
});
