// Which of many rows are listed, in which order, and how many there would be by each other choice.
//
// An order is kept from one change to the next: a hundred changed rows among 50,000 are put in their
// places, and nothing is sorted anew.

import { lookOf } from "../words/phases";
import type { Row } from "./rows";

export const FACETS = ["state", "queue", "kind", "cluster", "user", "namespace"] as const;
export type Facet = (typeof FACETS)[number];
export type Filter = Record<Facet, string> & { text: string };
export type Compare = (one: Row, other: Row) => number;

const text = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

/** By column, the way round that one wants first; equals stand in the order of their names. */
export const SORTS: Record<string, { order: Compare; falls: boolean }> = {
  time: { order: (one, other) => other.created - one.created, falls: true },
  state: {
    order: (one, other) =>
      lookOf(one.phase).order - lookOf(other.phase).order || other.priority - one.priority,
    falls: false,
  },
  name: { order: (one, other) => text(one.name, other.name), falls: false },
  queue: {
    order: (one, other) => text(one.queue, other.queue) || one.queued - other.queued,
    falls: false,
  },
  kind: { order: (one, other) => text(one.kind, other.kind), falls: false },
  user: { order: (one, other) => text(one.user, other.user), falls: false },
  gpus: { order: (one, other) => (other.gpus ?? -1) - (one.gpus ?? -1), falls: true },
  where: { order: (one, other) => text(one.clusters || "~", other.clusters || "~"), falls: false },
  priority: {
    order: (one, other) => other.priority - one.priority || one.queued - other.queued,
    falls: true,
  },
};

/** `gpus` is a column the way round that one wants first, `-gpus` the other way. */
export function sortOf(word: string): {
  column: string;
  isReversed: boolean;
  falls: boolean;
  compare: Compare;
} {
  const isReversed = word.startsWith("-");
  const name = isReversed ? word.slice(1) : word;
  const column = SORTS[name] ? name : "time";
  const { order, falls } = SORTS[column]!;
  const compare: Compare = isReversed
    ? (one, other) => order(other, one) || text(one.key, other.key)
    : (one, other) => order(one, other) || text(one.key, other.key);
  return { column, isReversed, falls: falls !== isReversed, compare };
}

/** Rows in an order, which costs what has changed. */
export class Ordered {
  private rows: Row[] = [];
  private revision = -1;
  private sort = "";

  /** `changes` are the keys that differ between the revision before and this one. */
  take(rows: Row[], revision: number, changes: ReadonlySet<string>, sort: string): Row[] {
    const { compare } = sortOf(sort);
    const isNext =
      sort === this.sort && revision === this.revision + 1 && changes.size * 4 < rows.length;
    if (sort === this.sort && revision === this.revision) return this.rows;
    this.rows = isNext ? merged(this.rows, rows, changes, compare) : rows.toSorted(compare);
    this.revision = revision;
    this.sort = sort;
    return this.rows;
  }
}

function merged(before: Row[], rows: Row[], changes: ReadonlySet<string>, compare: Compare): Row[] {
  const fresh = rows.filter((row) => changes.has(row.key)).sort(compare);
  const found: Row[] = [];
  let next = 0;
  for (const row of before) {
    if (changes.has(row.key)) continue;
    while (next < fresh.length && compare(fresh[next]!, row) < 0) found.push(fresh[next++]!);
    found.push(row);
  }
  while (next < fresh.length) found.push(fresh[next++]!);
  return found;
}

const VALUES: Record<Exclude<Facet, "cluster">, (row: Row) => string> = {
  state: (row) => row.phase,
  queue: (row) => row.queue,
  kind: (row) => row.kind,
  user: (row) => row.user,
  namespace: (row) => row.namespace,
};

export function matches(row: Row, facet: Facet, wanted: string): boolean {
  if (facet === "cluster") return row.places.some((one) => one.cluster === wanted);
  return VALUES[facet](row) === wanted;
}

/** Rows that match, and those that one facet alone keeps out. */
export class Picked {
  readonly listed: Row[] = [];
  private readonly kept = new Map<Facet, Row[]>();
  private readonly known = new Map<Facet, ReadonlyMap<string, number>>();

  constructor(rows: Row[], filter: Filter) {
    const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
    const active = FACETS.filter((facet) => filter[facet]);
    for (const facet of active) this.kept.set(facet, []);
    for (const row of rows) if (has(row.text, words)) this.sort(row, active, filter);
  }

  private sort(row: Row, active: readonly Facet[], filter: Filter): void {
    let missed: Facet | null = null;
    for (const facet of active)
      if (!matches(row, facet, filter[facet])) {
        if (missed) return;
        missed = facet;
      }
    (missed ? this.kept.get(missed)! : this.listed).push(row);
  }

  /** How many there would be with each value of a facet; counted when asked for. */
  counts(facet: Facet): ReadonlyMap<string, number> {
    const known = this.known.get(facet) ?? tallied(facet, this.listed, this.kept.get(facet) ?? []);
    this.known.set(facet, known);
    return known;
  }
}

function has(text: string, words: string[]): boolean {
  for (const word of words) if (!text.includes(word)) return false;
  return true;
}

function tallied(facet: Facet, ...lists: Row[][]): Map<string, number> {
  const tallies = new Map<string, { count: number }>();
  const add = (value: string) => {
    const known = tallies.get(value);
    if (known) known.count += 1;
    else if (value) tallies.set(value, { count: 1 });
  };
  const read = facet === "cluster" ? null : VALUES[facet];
  for (const rows of lists)
    for (const row of rows)
      if (read) add(read(row));
      else for (const place of row.places) add(place.cluster);
  return new Map([...tallies].map(([value, { count }]) => [value, count]));
}
