// The timeline as the hub tells it, and what a band of it needs to be drawn.

import { packed, type Item, type Packing, type Piece } from "./packing";

export type Grouping = "cluster" | "queue";
export type Sort = "ran" | "starts" | "runs" | "reserved" | "expected";

export interface Span {
  workload?: string; // not told where one may not know
  cluster: string;
  queue: string;
  flavor: string;
  gpus: number;
  from: number; // seconds
  to?: number;
  ready?: number;
  until?: number;
  sort: Sort;
  ended?: string;
}

export interface Group {
  name: string;
  room: Record<string, number>;
  spans: Span[];
  more: { flavor: string; count: number; gpus: number[] }[];
}

export interface Timeline {
  now: number;
  by: Grouping;
  from: number;
  to: number;
  since: number;
  groups: Group[];
  groupsLeft: number;
}

/** What one group holds of one flavor: a strip of the picture. */
export interface Band {
  key: string;
  group: string;
  flavor: string;
  room: number;
  spans: Span[];
  /** Of spans that are not drawn one by one: how many, and what they hold from when to when. */
  others: number;
  sums: Item[];
  /** Lanes of the spans, then of the sums. */
  packing: Packing;
}

const LANES_OF_NONE = 6;

function keyOfSpan(span: Span): string {
  return `${span.workload ?? ""} ${span.cluster} ${span.flavor} ${span.from}`;
}

/** When a span ends in the picture: it did, it is reckoned to, or nobody knows. */
export function endOf(span: Span): number {
  return span.to ?? span.until ?? Infinity;
}

/** The bands of a group, by flavor; without GPUs last, where every span is one lane high. */
export function bandsOf(group: Group, told: Timeline, before: Map<string, Band>): Band[] {
  const flavors = new Set([
    ...Object.keys(group.room),
    ...group.spans.map((one) => one.flavor),
    ...group.more.map((one) => one.flavor),
  ]);
  const found: Band[] = [];
  for (const flavor of [...flavors].sort()) {
    const spans = group.spans.filter((one) => one.flavor === flavor);
    const most = group.more.find((one) => one.flavor === flavor);
    const room = group.room[flavor] ?? 0;
    const isCounted =
      room > 0 || spans.some((one) => one.gpus > 0) || (most?.gpus.some(Boolean) ?? false);
    if (!isCounted && !spans.length) continue;
    const key = `${group.name} ${flavor}`;
    const sums = isCounted ? sumsOf(most?.gpus ?? [], told) : [];
    const shown = isCounted
      ? spans.filter((one) => one.gpus > 0)
      : spans.slice(-LANES_OF_NONE * 20);
    // Who starts may still wait for the lanes of whoever leaves; they count from when its pods ran.
    const items = shown.map((one) => ({
      key: keyOfSpan(one),
      from: Math.min(one.ready ?? one.from, endOf(one) - 1),
      to: endOf(one),
      gpus: isCounted ? one.gpus : 1,
    }));
    const packing = packed(
      [...items, ...sums],
      room,
      isCounted ? lanesOf(before.get(key)) : undefined,
    );
    found.push({
      key,
      group: group.name,
      flavor: isCounted ? flavor : "",
      room,
      spans: shown,
      others: most?.count ?? 0,
      sums,
      packing,
    });
  }
  return found.sort((one, other) => other.room - one.room || (one.flavor < other.flavor ? 1 : -1));
}

function lanesOf(band: Band | undefined): Map<string, Piece[]> | undefined {
  return (
    band && new Map(band.spans.map((one, at) => [keyOfSpan(one), band.packing.pieces[at] ?? []]))
  );
}

function sumsOf(gpus: number[], told: Timeline): Item[] {
  const width = (told.to - told.from) / Math.max(1, gpus.length);
  return gpus.flatMap((sum, at) =>
    sum > 0
      ? [
          {
            key: `sum ${at}`,
            from: told.from + at * width,
            to: told.from + (at + 1) * width,
            gpus: sum,
          },
        ]
      : [],
  );
}

/** GPUs that a band has in use at a moment, told or summed. */
export function usedAt(band: Band, moment: number): number {
  let sum = 0;
  for (const one of band.spans)
    if (
      one.from <= moment &&
      endOf(one) > moment &&
      one.sort !== "expected" &&
      one.sort !== "reserved"
    )
      sum += one.gpus;
  for (const one of band.sums) if (one.from <= moment && one.to > moment) sum += one.gpus;
  return sum;
}

/** GPUs in use on average over some time. */
export function usedOver(band: Band, from: number, to: number): number {
  if (to <= from) return 0;
  let area = 0;
  for (const one of [...band.spans.map((each) => ({ ...each, to: endOf(each) })), ...band.sums])
    area += one.gpus * Math.max(0, Math.min(one.to, to) - Math.max(one.from, from));
  return area / (to - from);
}

const STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];

/** Round moments of the local day, so many seconds apart that about `most` fit. */
export function ticksOf(from: number, to: number, most: number): number[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 86_400;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((from - shift) / step) * step + shift;
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / step) + 1) },
    (_, at) => first + at * step,
  );
}
