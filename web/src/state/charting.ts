// The arithmetic of charts: stacks, points that stand alone, labels of time, and a chart in words.

import { clock } from "../words/times";

export type Line = (number | null)[];

/** Each line upon those before it; a gap where all are gaps, and nothing where only one is. */
export function stacked(lines: Line[]): Line[] {
  const found: Line[] = [];
  for (const line of lines) {
    const below = found.at(-1);
    found.push(
      line.map((value, at) => {
        const isGap = lines.every((one) => one[at] === null || one[at] === undefined);
        return isGap ? null : (below?.[at] ?? 0) + (value ?? 0);
      }),
    );
  }
  return found;
}

/** Numbers between two gaps: no line leads to them, so each is drawn as a point. */
export function alone(line: ArrayLike<number | null | undefined>): number[] {
  const isGap = (at: number) => line[at] === null || line[at] === undefined;
  return Array.from({ length: line.length }, (_, at) => at).filter(
    (at) => !isGap(at) && (at === 0 || isGap(at - 1)) && (at === line.length - 1 || isGap(at + 1)),
  );
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** Labels of moments on an axis, as exact as their distance asks for; in seconds since 1970. */
export function momentsOf(ticks: number[]): string[] {
  const distance = ticks.length > 1 ? ticks[1]! - ticks[0]! : 3600;
  const isLong = ticks.length > 1 && ticks.at(-1)! - ticks[0]! >= 86_400;
  return ticks.map((one, at) => {
    const day = DAY.format(one * 1000);
    if (distance >= 86_400) return day;
    if (distance < 60) return SECOND.format(one * 1000);
    const isNewDay = at === 0 || DAY.format(ticks[at - 1]! * 1000) !== day;
    return isLong && isNewDay ? `${day} ${MINUTE.format(one * 1000)}` : MINUTE.format(one * 1000);
  });
}

const TOLD = 8;

/** A chart for those who cannot see it: from when to when, and of each line its end and its range. */
export function inWords(
  times: number[],
  labels: string[],
  lines: Line[],
  format: (value: number) => string,
): string {
  if (!times.length) return "Nothing is known yet.";
  const told = labels.slice(0, TOLD).map((label, at) => {
    const known = (lines[at] ?? []).filter((one) => one !== null && one !== undefined);
    if (!known.length) return `${label}: nothing known`;
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const range =
      low === high ? "all the time" : `at the end, from ${format(low)} to ${format(high)}`;
    return `${label}: ${format(known.at(-1)!)} ${range}`;
  });
  const more = labels.length > TOLD ? ` And ${labels.length - TOLD} more.` : "";
  return `From ${clock(times[0]! * 1000)} to ${clock(times.at(-1)! * 1000)}. ${told.join(". ")}.${more}`;
}

/** Which moments a table has: no more than so many, at equal distance, the last always. */
export function sampled(count: number, most: number): number[] {
  const step = Math.max(1, Math.ceil(count / most));
  return Array.from(
    { length: Math.ceil(count / step) },
    (_, at) => count - 1 - at * step,
  ).reverse();
}
