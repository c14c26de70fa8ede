// Accounts of days, added up by whatever is asked for: the numbers of `fairway cost`, digit by digit.
//
// Amounts are whole numbers and are rounded once, when they are shown, so that lines add up to the
// total by whatever they are grouped.

import type { CostAccount } from "../api/kinds";

export type Use = "Used" | "Lost" | "Lent" | "Idle";
export const BY = ["queue", "namespace", "team", "workload", "cluster", "flavor"] as const;
export type By = (typeof BY)[number];
type Row = NonNullable<CostAccount["spec"]["rows"]>[number];

/** GPU time in thousandths × milliseconds, money in billionths / 3,600,000. */
export interface Sum {
  gpuTime: bigint;
  money: bigint;
}

export interface Line {
  name: string;
  sums: Record<Use, Sum>;
}

export interface Report {
  lines: Line[];
  total: Line;
}

export const NOBODY = "-";
const NANO = 1_000_000_000n;
const HOUR = 3_600_000n;
const GPU_TIME_NANOS = NANO / 1_000_000n;
const EXPONENTS: Record<string, number> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const SHAPE = /^([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]+)|([numkMGTPE]))?$/;

/** A decimal quantity in billionths, exactly. */
export function nanosOf(quantity: string | number | undefined): bigint {
  const found = SHAPE.exec(String(quantity ?? "0").trim());
  if (!found) return 0n;
  const [, whole = "", part = "", power, suffix = ""] = found;
  const exponent = 9 + (power ? Number(power.slice(1)) : (EXPONENTS[suffix] ?? 0)) - part.length;
  const digits = BigInt(`${whole}${part}` || "0");
  return exponent >= 0 ? digits * 10n ** BigInt(exponent) : digits / 10n ** BigInt(-exponent);
}

function sumOf(row: Row): Sum {
  return {
    gpuTime: nanosOf(row.gpuSeconds) / GPU_TIME_NANOS,
    money: nanosOf(row.money) * HOUR + BigInt(row.rest ?? 0),
  };
}

export function reportOf(rows: Iterable<Row>, by: By): Report {
  const lines = new Map<string, Line>();
  const total = emptyLine("total");
  for (const row of rows) {
    const name = nameOf(row, by);
    const line = lines.get(name) ?? emptyLine(name);
    lines.set(name, line);
    const more = sumOf(row);
    add(line.sums[row.use], more);
    add(total.sums[row.use], more);
  }
  return { lines: [...lines.values()].sort(dearestFirst), total };
}

export function nameOf(row: Row, by: By): string {
  if (by === "workload") return row.workload ? `${row.namespace ?? ""}/${row.workload}` : NOBODY;
  return row[by] || NOBODY;
}

function emptyLine(name: string): Line {
  const none = () => ({ gpuTime: 0n, money: 0n });
  return { name, sums: { Used: none(), Lost: none(), Lent: none(), Idle: none() } };
}

function add(sum: Sum, more: Sum): void {
  sum.gpuTime += more.gpuTime;
  sum.money += more.money;
}

function dearestFirst(one: Line, other: Line): number {
  const [left, right] = [one.sums.Used, other.sums.Used];
  return (
    Number(one.name === NOBODY) - Number(other.name === NOBODY) ||
    compare(right.money, left.money) ||
    compare(right.gpuTime, left.gpuTime) ||
    compare(one.name, other.name)
  );
}

function compare<T extends bigint | string>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

export function hours(sum: Sum): string {
  return rounded(sum.gpuTime, 1000n * HOUR);
}

export function money(sum: Sum): string {
  return rounded(sum.money, NANO * HOUR);
}

/** Two digits, rounded half up. */
function rounded(amount: bigint, unit: bigint): string {
  const hundredths = (amount * 200n + unit) / (2n * unit);
  return `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, "0")}`;
}

/** A line as `fairway cost -o json` has it. */
export function rendered(line: Line): Record<string, string> {
  const { Used, Lost, Lent, Idle } = line.sums;
  return {
    name: line.name,
    usedGpuHours: hours(Used),
    usedCost: money(Used),
    lostGpuHours: hours(Lost),
    lostCost: money(Lost),
    lentGpuHours: hours(Lent), // who uses it pays for it
    idleGpuHours: hours(Idle),
    idleCost: money(Idle),
  };
}

/** The report as `fairway cost -o csv` writes it. */
export function csvOf(report: Report, by: By, currency: string): string {
  const columns = Object.keys(rendered(report.total));
  const head = [...columns.map((one) => (one === "name" ? by : one)), "currency"];
  const lines = report.lines.map((one) => [...Object.values(rendered(one)), currency]);
  return [head, ...lines].map((one) => `${one.map(cell).join(",")}\n`).join("");
}

function cell(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const DAY_MILLISECONDS = 86_400_000;

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** All days from one to another, both included; none where they are no days. */
export function daysOf(since: string, until: string): string[] {
  const found: string[] = [];
  const last = Date.parse(until);
  for (let at = Date.parse(since); at <= last; at += DAY_MILLISECONDS) found.push(dayOf(at));
  return found;
}

export type Measure = "money" | "hours";

export interface Day {
  day: string;
  /** What each of the names had; the last two are all others, and what stood idle. */
  amounts: number[];
}

/** Bars by day: the largest few by name, the rest together, and idle apart. */
export function barsOf(
  accounts: CostAccount[],
  days: string[],
  by: By,
  measure: Measure,
  most = 6,
): { names: string[]; days: Day[] } {
  const whole = reportOf(
    accounts.flatMap((one) => one.spec.rows ?? []),
    by,
  );
  const amount = (sum: Sum) => Number(measure === "money" ? money(sum) : hours(sum));
  const used = whole.lines.filter((one) => amount(one.sums.Used) > 0);
  const names = used
    .toSorted((one, other) => amount(other.sums.Used) - amount(one.sums.Used))
    .slice(0, most)
    .map((one) => one.name);
  const byDay = new Map(accounts.map((one) => [one.metadata?.name ?? "", one]));
  return {
    names: [...names, "others", "idle"],
    days: days.map((day) => {
      const { lines, total } = reportOf(byDay.get(day)?.spec.rows ?? [], by);
      const own = names.map(
        (name) => lines.find((one) => one.name === name)?.sums.Used ?? { gpuTime: 0n, money: 0n },
      );
      const rest = { ...total.sums.Used };
      for (const one of own) add(rest, { gpuTime: -one.gpuTime, money: -one.money });
      return { day, amounts: [...own.map(amount), amount(rest), amount(total.sums.Idle)] };
    }),
  };
}
