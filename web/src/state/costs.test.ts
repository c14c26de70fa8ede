import { expect, test } from "vitest";
import type { CostAccount } from "../api/kinds";
import { barsOf, csvOf, daysOf, money, nanosOf, rendered, reportOf } from "./costs";

type Row = NonNullable<CostAccount["spec"]["rows"]>[number];

function row(parts: Partial<Row>): Row {
  return {
    use: "Used",
    namespace: "team",
    workload: "train",
    queue: "research",
    cluster: "home",
    flavor: "h100",
    gpuSeconds: "0",
    money: "0",
    rest: 0,
    team: "",
    ...parts,
  } as Row;
}

function account(day: string, rows: Row[]): CostAccount {
  return {
    metadata: { name: day },
    spec: { until: `${day}T12:00:00Z`, currency: "USD", rows },
  } as CostAccount;
}

test.each([
  ["1", 1_000_000_000n],
  ["1500m", 1_500_000_000n],
  ["0.000000001", 1n],
  ["12k", 12_000_000_000_000n],
  ["3e2", 300_000_000_000n],
  ["7n", 7n],
])("%s is so many billionths", (quantity, nanos) => {
  expect(nanosOf(quantity)).toBe(nanos);
});

test("parts below a cent add up before anything is rounded", () => {
  const rows = Array.from({ length: 10 }, (_, at) => row({ workload: `w${at}`, money: "1m" }));
  expect(reportOf(rows, "workload").lines.map((one) => money(one.sums.Used))).toEqual(
    Array(10).fill("0.00"),
  );
  expect(money(reportOf(rows, "queue").total.sums.Used)).toBe("0.01");
});

test("the rest of a billionth counts, and half is rounded up", () => {
  const rows = [row({ money: "4999999n", rest: 1_800_000 }), row({ money: "0", rest: 1_800_000 })];
  expect(money(reportOf(rows, "queue").total.sums.Used)).toBe("0.01");
});

test("the dearest is first, and nobody is last", () => {
  const rows = [
    row({ queue: "", money: "9" }),
    row({ queue: "b", money: "1" }),
    row({ queue: "a", money: "2" }),
  ];
  expect(reportOf(rows, "queue").lines.map((one) => one.name)).toEqual(["a", "b", "-"]);
});

test("what was lost, lent and idle is told apart, and none of it is used", () => {
  const rows = [
    row({ gpuSeconds: "7200" }),
    row({ use: "Lost", gpuSeconds: "3600" }),
    row({ use: "Lent", gpuSeconds: "1800" }),
    row({ use: "Idle", gpuSeconds: "36", money: "1" }),
  ];
  expect(rendered(reportOf(rows, "queue").total)).toEqual({
    name: "total",
    usedGpuHours: "2.00",
    usedCost: "0.00",
    lostGpuHours: "1.00",
    lostCost: "0.00",
    lentGpuHours: "0.50",
    idleGpuHours: "0.01",
    idleCost: "1.00",
  });
});

test("a name with a comma is one cell of the spreadsheet", () => {
  expect(csvOf(reportOf([row({ team: 'a,"b"' })], "team"), "team", "USD").split("\n")[1]).toBe(
    '"a,""b""",0.00,0.00,0.00,0.00,0.00,0.00,0.00,USD',
  );
});

test("bars have the largest by name, the rest together, and idle apart", () => {
  const rows = [1, 2, 3].map((each) => row({ queue: `q${each}`, money: String(each) }));
  const found = barsOf(
    [account("2026-11-02", [...rows, row({ use: "Idle", queue: "", money: "5" })])],
    ["2026-11-01", "2026-11-02"],
    "queue",
    "money",
    2,
  );
  expect(found.names).toEqual(["q3", "q2", "others", "idle"]);
  expect(found.days.map((one) => one.amounts)).toEqual([
    [0, 0, 0, 0],
    [3, 2, 1, 5],
  ]);
});

test("days go from one to another, over the end of a month", () => {
  expect(daysOf("2026-10-31", "2026-11-01")).toEqual(["2026-10-31", "2026-11-01"]);
  expect([daysOf("2026-11-02", "2026-11-01"), daysOf("", "2026-11-01")]).toEqual([[], []]);
});
