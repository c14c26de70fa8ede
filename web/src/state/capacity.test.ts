import { describe, expect, it } from "vitest";
import type { Cluster, ClusterReport, Flavor } from "../api/kinds";
import { capacityIn, promisedIn, summed } from "./capacity";
import { Sight } from "./nodes";
import { type Cells, rowFrom } from "./rows";

const FLAVORS = [
  {
    metadata: { name: "h100" },
    spec: {
      description: "fast",
      nodeLabels: { accelerator: "h100" },
      prices: { "nvidia.com/gpu": "4" },
    },
  },
  { metadata: { name: "spot" }, spec: { nodeLabels: { accelerator: "h100", spot: "yes" } } },
] as unknown as Flavor[];

function report(spec: object, cluster = "east"): ClusterReport {
  return {
    metadata: { name: `${cluster}-0` },
    spec: { cluster, agentEpoch: 1, sequence: 1, seenAt: "", ...spec },
  } as unknown as ClusterReport;
}

function nodes(names: string[], gpus: number[], unready: number[] = []) {
  return {
    names,
    unready,
    labels: [
      { key: "accelerator", values: names.map(() => "h100") },
      { key: "spot", values: names.map((one) => (one.startsWith("s") ? "yes" : "")) },
    ],
    amounts: [
      {
        resource: "nvidia.com/gpu",
        unit: "1",
        allocatable: gpus,
        others: gpus.map((_, at) => (at === 0 ? 1 : 0)),
      },
    ],
  };
}

function work(name: string, each: number, on: number[], counts: number[]) {
  return {
    work: name,
    podSet: "main",
    requests: { cpu: "1", "nvidia.com/gpu": String(each) },
    bound: { nodes: on, counts },
  };
}

const WHOLE = report({
  nodes: nodes(["a", "b", "s"], [8, 8, 4]),
  works: [work("team.one", 2, [0, 1], [1, 2])],
});

function row(
  name: string,
  phase: string,
  more: Partial<Record<"places" | "reservation" | "gpus" | "ready" | "wanted", unknown>> = {},
) {
  const cells = [
    "team",
    name,
    "1",
    null,
    "",
    "q",
    phase,
    "",
    "Job",
    "Gang",
    0,
    more.gpus ?? null,
    more.wanted ?? 0,
    more.ready ?? 0,
    null,
    more.places ?? null,
    null,
    null,
    null,
    null,
    null,
    null,
    more.reservation ?? null,
  ];
  return rowFrom(cells as Cells);
}

describe("what an agent saw", () => {
  it("says of each node its flavor and what is free, with what others and we use of it", () => {
    const seen = new Sight().of([WHOLE], FLAVORS).get("east")!;
    expect(seen.nodes.map((one) => [one.name, one.flavor, one.free])).toEqual([
      ["a", "h100", 5],
      ["b", "h100", 4],
      ["s", "spot", 4],
    ]);
    expect(seen.bound.get("team.one")).toBe(6);
  });

  it("takes a difference that was made from it, and no other", () => {
    const change = {
      sinceSequence: 1,
      sequence: 2,
      nodes: nodes(["c"], [8]),
      removedNodes: ["a"],
      works: [work("team.one", 2, [0], [1])],
    };
    const read = (one: object) => new Sight().of([WHOLE, report(one)], FLAVORS).get("east")!;
    expect(read(change).nodes.map((one) => [one.name, one.free])).toEqual([
      ["b", 6],
      ["c", 7],
      ["s", 4],
    ]);
    expect(read({ ...change, agentEpoch: 2 }).nodes.map((one) => one.name)).toEqual([
      "a",
      "b",
      "s",
    ]);
  });

  it("stays the same list while the cluster says the same", () => {
    const sight = new Sight();
    const first = sight.of([WHOLE, report({ nodes: nodes(["z"], [8]) }, "west")], FLAVORS);
    const second = sight.of([WHOLE, report({ nodes: nodes(["z"], [4]) }, "west")], FLAVORS);
    expect(second.get("east")).toBe(first.get("east"));
    expect(second.get("west")!.nodes[0]!.gpus).toBe(4);
  });
});

describe("capacity", () => {
  const cluster = {
    metadata: { name: "east" },
    spec: {
      elasticPools: [
        {
          name: "burst",
          countMax: 10,
          shape: { "nvidia.com/gpu": "8" },
          labels: { accelerator: "h100" },
          pricePerHour: "24",
          stock: 3,
        },
      ],
    },
    status: { elasticPools: [{ name: "burst", nodes: 1, provisioning: 1 }] },
  } as unknown as Cluster;
  const seen = new Sight().of([WHOLE], FLAVORS);
  const rows = [
    row("one", "Running", { places: [["east", 6, 3, "h100"]], wanted: 3, ready: 3 }),
    row("two", "Claimed", { places: [["east", 10, 5, "h100"]] }),
    row("three", "Waiting", { gpus: 16, reservation: ["east", null, ["h100"]] }),
  ];
  const promised = promisedIn(rows, seen);

  it("tells used from reserved, held, free, coming and what can be had", () => {
    const found = capacityIn(cluster, seen.get("east")!.nodes, FLAVORS, promised.get("east")).get(
      "h100",
    );
    // Ten are reserved, of which eight come with the node on its way.
    expect(found).toMatchObject({
      gpus: 16,
      used: 7,
      reserved: 10,
      held: 16,
      free: 7,
      coming: 8,
      elastic: 24,
      pieces: 9,
      price: [3, 3],
    });
    expect(found!.fragments).toEqual([...Array(4), 1, 1]);
  });

  it("is reserved only as far as its pods have no node", () => {
    const part = promisedIn(
      [row("one", "Running", { places: [["east", 8, 4, "h100"]], wanted: 4, ready: 3 })],
      seen,
    );
    expect([...part.get("east")!.reserved]).toEqual([["h100", 2]]);
  });

  it("adds up over clusters, with the prices of flavors", () => {
    const one = capacityIn(cluster, seen.get("east")!.nodes, FLAVORS);
    const [h100] = summed([one, one], FLAVORS);
    expect(h100).toMatchObject({
      flavor: "h100",
      description: "fast",
      gpus: 32,
      free: 18,
      price: [3, 4],
    });
    expect(h100!.fragments[4]).toBe(2);
  });

  it("counts nodes that are away apart", () => {
    const away = new Sight()
      .of([report({ nodes: nodes(["a", "b"], [8, 8], [1]) })], FLAVORS)
      .get("east")!;
    expect(capacityIn(cluster, away.nodes, FLAVORS).get("h100")).toMatchObject({
      gpus: 16,
      away: 8,
      free: 7,
      used: 1,
      nodes: 2,
    });
  });
});
