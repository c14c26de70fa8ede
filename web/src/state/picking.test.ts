import { describe, expect, it } from "vitest";
import { type Filter, Ordered, Picked, sortOf, SORTS } from "./picking";
import { type Cells, type Row, rowFrom } from "./rows";

const PHASES = ["Running", "Waiting", "Failed"];
const NONE: Filter = {
  text: "",
  state: "",
  queue: "",
  kind: "",
  cluster: "",
  user: "",
  namespace: "",
};

function row(number: number, priority = number % 7): Row {
  const cluster = number % 2 ? "east" : "west";
  const created = new Date(1_750_000_000_000 + ((number * 7919) % 1000) * 1000).toISOString();
  const cells: Cells = [
    `team-${number % 3}`,
    `job-${number}`,
    "1",
    created,
    `user-${number % 5}`,
    `queue-${number % 4}`,
    PHASES[number % 3],
    "",
    "Job",
    "Gang",
    priority,
    number % 9,
    0,
    0,
    null,
    number % 3 ? null : [[cluster, number % 9, 1, "h100"]],
  ];
  return rowFrom(cells);
}

const ROWS = Array.from({ length: 400 }, (_, number) => row(number));

describe("an order that is kept equals one that is made anew", () => {
  it.each(Object.keys(SORTS).flatMap((one) => [one, `-${one}`]))("by %s", (sort) => {
    const ordered = new Ordered();
    ordered.take(ROWS, 1, new Set(), sort);
    const rows = ROWS.filter((_, at) => at % 50).map((one, at) =>
      at % 20 ? one : row(Number(one.name.slice(4)), 99),
    );
    const changes = new Set([
      ...ROWS.filter((one) => !rows.some((other) => other.key === one.key)).map((one) => one.key),
      ...rows.filter((one) => one.priority === 99).map((one) => one.key),
    ]);
    expect(changes.size).toBeGreaterThan(20);
    expect(ordered.take(rows, 2, changes, sort)).toEqual(rows.toSorted(sortOf(sort).compare));
  });

  it("also when a revision was missed", () => {
    const ordered = new Ordered();
    ordered.take(ROWS, 1, new Set(), "name");
    const rows = ROWS.slice(0, 10);
    expect(ordered.take(rows, 7, new Set(), "name")).toEqual(rows.toSorted(sortOf("name").compare));
  });
});

describe("what is picked", () => {
  it("is everything without a filter", () => {
    const found = new Picked(ROWS, NONE);
    expect(found.listed).toEqual(ROWS);
    expect([...found.counts("state").values()].reduce((sum, one) => sum + one)).toBe(ROWS.length);
  });

  it("has every word of the text, wherever it stands", () => {
    expect(
      new Picked(ROWS, { ...NONE, text: "JOB-12 team-0" }).listed.map((one) => one.name),
    ).toEqual(["job-12", "job-120", "job-123", "job-126", "job-129"]);
  });

  it("counts for each facet what the other filters leave", () => {
    const found = new Picked(ROWS, { ...NONE, state: "Running", cluster: "west" });
    const { listed } = found;
    expect(listed.every((one) => one.phase === "Running" && one.clusters === "west")).toBe(true);
    expect(found.counts("cluster").get("west")).toBe(listed.length);
    expect(found.counts("cluster").get("east")).toBe(
      ROWS.filter((one) => one.phase === "Running" && one.clusters === "east").length,
    );
    expect(found.counts("state").get("Running")).toBe(listed.length);
    expect(found.counts("state").has("Waiting")).toBe(false);
  });
});
