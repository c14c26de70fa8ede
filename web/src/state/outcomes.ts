// What a change would mean: whom it touches and how, in words first.

import type { Plan } from "../api/kinds";
import { plural } from "../words/amounts";

export interface Fate {
  state: "Starts" | "Waits" | "Runs" | "Preempted" | "Moves" | "Grows" | "Absent";
  places?: { cluster: string; gpus: number }[];
  expected?: number; // seconds
  for?: string;
}

export interface Touched {
  workload: string;
  queue: string;
  gpus: number;
  before: Fate;
  after: Fate;
}

export type Amounts = Record<string, Record<string, { room: number; used: number }>>;

export interface Outcome {
  before: Plan;
  after: Plan;
  touched: Touched[];
  touchedLeft: number;
  clusters: { before: Amounts; after: Amounts };
  queues: { before: Amounts; after: Amounts };
}

export type Verdict =
  "starts" | "preempted" | "displaced" | "moves" | "waits" | "later" | "sooner" | "other";

const holds = (fate: Fate) =>
  fate.state === "Starts" ||
  fate.state === "Runs" ||
  fate.state === "Moves" ||
  fate.state === "Grows";
const sorted = (fate: Fate) =>
  (fate.places ?? [])
    .map((one) => `${one.cluster} ${one.gpus}`)
    .sort()
    .join();

/** What the change means for one workload. */
export function verdictOf({ before, after }: Touched): Verdict {
  if (after.state === "Preempted" && before.state !== "Preempted") return "preempted";
  if (holds(after) && !holds(before)) return "starts";
  if (!holds(after) && before.state === "Runs") return "displaced";
  if (!holds(after) && (holds(before) || before.state === "Absent")) return "waits";
  if (holds(after) && sorted(before) !== sorted(after)) return "moves";
  const [was, will] = [before.expected, after.expected];
  if (was !== will)
    return will === undefined || (was !== undefined && will > was) ? "later" : "sooner";
  return "other";
}

const SAID: [Verdict, (count: number) => string][] = [
  ["starts", (count) => `${plural(count, "workload")} would start`],
  ["preempted", (count) => `${count} would be preempted`],
  ["displaced", (count) => `${count} would lose ${count === 1 ? "its" : "their"} place and wait`],
  ["moves", (count) => `${count} would run elsewhere`],
  ["waits", (count) => `${count} would wait`],
  ["sooner", (count) => `${count} would be expected sooner`],
  ["later", (count) => `${count} would be expected later`],
];

/** All of it in one sentence. */
export function sentenceOf(touched: Touched[], left = 0): string {
  const counts = new Map<Verdict, number>();
  for (const one of touched) counts.set(verdictOf(one), (counts.get(verdictOf(one)) ?? 0) + 1);
  const said = SAID.flatMap(([verdict, say]) =>
    counts.get(verdict) ? [say(counts.get(verdict)!)] : [],
  );
  if (!said.length)
    return left || touched.length
      ? "Little would be different."
      : "Nothing would be different: the same would be decided.";
  const text = said.join(", ");
  return `${text[0]!.toUpperCase()}${text.slice(1)}${left ? `; ${plural(left, "other")} would be touched as well` : ""}.`;
}
