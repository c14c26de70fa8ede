// What happened over the last hours and days, as the hub has kept it.
//
//   $effect(() => watchHistory({ series: "services", names: [key], since: RANGES["1 h"] }, (found) => (told = found), (text) => (fault = text)));
//
// asks at once and then as often as something new can be known, while somebody looks at the page.
// `entryOf`, `lineOf` and `summed` pick from an answer what a chart takes; gaps stay null.

import { ask, ours, Refused, told } from "../api/client";

type Series = "queues" | "clusters" | "services";
export type Values = (number | null)[];

export interface Part {
  name: string;
  resource?: string;
  values: Record<string, Values>;
}

export interface Entry {
  name: string;
  values: Record<string, Values>;
  parts: Part[];
}

export interface History {
  now: number;
  series: Series;
  step: number;
  times: number[];
  found: Entry[];
}

export interface Asked {
  series: Series;
  /** None: the whole fleet, in the entry without a name. Of services: namespace/name. */
  names?: string[];
  since: number;
  points?: number;
}

/** How far back one may look, in seconds. */
export const RANGES: Record<string, number> = { "1 h": 3600, "12 h": 43_200, "7 d": 604_800 };
/** How far back an address asks to look; the first range where it says nothing that is known. */
export function rangeOf(query: URLSearchParams): { word: string; seconds: number } {
  const wanted = query.get("last") ?? "";
  const word = Object.hasOwn(RANGES, wanted) ? wanted : Object.keys(RANGES)[0]!;
  return { word, seconds: RANGES[word]! };
}

/** So many names may be asked for at once. */
const NAMES_MOST = 100;
/** A moment for every few pixels of a chart; of the last hour all that the hub has. */
const POINTS = 361;
const AGAIN_LEAST = 10_000;
const AGAIN_MOST = 60_000;

function askHistory(asked: Asked, signal?: AbortSignal): Promise<History> {
  return ask<History>(ours("fleets", "", "fleet", "history"), {
    signal,
    query: {
      series: asked.series,
      name: asked.names?.slice(0, NAMES_MOST).join(","),
      since: asked.since,
      points: asked.points ?? POINTS,
    },
  });
}

/** Asks again and again until it is told to stop; a tab in the background rests. */
export function watchHistory(
  asked: Asked,
  show: (found: History) => void,
  fail: (text: string) => void,
): () => void {
  const aborting = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isDue = false;

  async function read(): Promise<void> {
    let wait = AGAIN_LEAST;
    try {
      const found = await askHistory(asked, aborting.signal);
      if (aborting.signal.aborted) return;
      show(found);
      fail("");
      wait = Math.min(AGAIN_MOST, Math.max(AGAIN_LEAST, found.step * 1000));
    } catch (fault) {
      if (aborting.signal.aborted) return;
      fail(told(fault));
      // What is refused once stays refused.
      if (fault instanceof Refused && (fault.code === 403 || fault.code === 404)) return;
    }
    timer = setTimeout(due, wait);
  }
  function due(): void {
    isDue = document.visibilityState !== "visible";
    if (!isDue) void read();
  }
  function looked(): void {
    if (isDue && document.visibilityState === "visible") due();
  }
  document.addEventListener("visibilitychange", looked);
  void read();
  return () => {
    aborting.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", looked);
  };
}

export function entryOf(history: History | null, name: string): Entry | undefined {
  return history?.found.find((one) => one.name === name);
}

/** One line over time, as long as the times; where nothing is known it is all gaps. */
export function lineOf(history: History, name: string, field: string): Values {
  return entryOf(history, name)?.values[field] ?? history.times.map(() => null);
}

/** The lines of some fields of one part, summed over the parts that a test lets through. */
export function summed(
  entry: Entry | undefined,
  field: string,
  isIn: (part: Part) => boolean = () => true,
): Values {
  const lines = (entry?.parts ?? []).filter(isIn).map((part) => part.values[field] ?? []);
  const length = Math.max(0, ...lines.map((line) => line.length));
  return Array.from({ length }, (_, at) => {
    const known = lines.map((line) => line[at] ?? null).filter((one) => one !== null);
    return known.length ? known.reduce((sum, one) => sum + one, 0) : null;
  });
}

/** One line less another; a gap where either has one, and never below nothing. */
export function less(one: Values, other: Values): Values {
  return one.map((value, at) =>
    value === null || other[at] == null ? null : Math.max(0, value - other[at]!),
  );
}

export function isEmpty(values: Values): boolean {
  return values.every((one) => one === null);
}

const LEAST = 1 / 12;

/** The axis of time of a chart: as far back as was asked, or as anything is known if that is much less. */
export function spanOf(history: History, since: number): [number, number] {
  const end = (history.times.at(-1) ?? 0) + history.step;
  const isKnown = (at: number) =>
    history.found.some((entry) => Object.values(entry.values).some((line) => line[at] != null));
  const first = history.times.find((_, at) => isKnown(at)) ?? end - since;
  return [Math.max(end - since, Math.min(first, end - since * LEAST)), end];
}
