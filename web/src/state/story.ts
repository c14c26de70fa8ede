// The life of a workload: spans by place for the picture, and moments in order for the list.
//
// Its status tells of attempts that ran, and of the claim that holds. When each was decided is told
// by decisions, as far back as the hub remembers; where it does not, waiting and starting are one.

import type { Decision, Explanation, Workload } from "../api/kinds";
import { plural } from "../words/amounts";
import { codeWords, listWords } from "../words/missing";
import { OVER, type Tone } from "../words/phases";
import { clock, moment, span } from "../words/times";
import type { Row } from "./rows";
import { keyOfMention, saidOfMention } from "../words/mentions";
import { serviceLife } from "./story-services";

const NEAR = 2000; // milliseconds between a decision and what is noted of it

export type Sort = "wait" | "hold" | "start" | "run" | "stop" | "ahead";

export interface Band {
  lane: string; // a cluster; empty: its queue
  from: number;
  to: number;
  sort: Sort;
  title: string;
}

export interface Moment {
  at: number;
  word: string;
  tone: Tone;
  more: string;
  whom?: string; // another workload, as namespace/name
  isAhead?: boolean;
}

export interface Story {
  from: number;
  to: number;
  lanes: string[];
  bands: Band[];
  moments: Moment[];
}

export interface Known {
  workload: Workload;
  row: Row;
  now: number;
  why?: Explanation | null;
  decisions?: Decision[];
}

export type Add = (lane: string, from: number, to: number, sort: Sort, more?: string) => void;

const WORDS: Record<Sort, string> = {
  wait: "Waited",
  hold: "Suspended",
  start: "Starting",
  run: "Ran",
  stop: "Stopping",
  ahead: "Expected to start",
};
export type Past = NonNullable<NonNullable<Workload["status"]>["history"]>[number];

export function storyOf(known: Known): Story {
  const { row, now } = known;
  const bands: Band[] = [];
  const moments: Moment[] = [
    { at: row.created, word: "Submitted", tone: "quiet", more: row.user ? `by ${row.user}` : "" },
  ];
  if (row.queued > row.created + 2000)
    moments.push({ at: row.queued, word: "Queued", tone: "wait", more: `in ${row.queue}` });
  const add: Add = (lane, from, to, sort, more = "") => {
    if (to > from)
      bands.push({
        lane,
        from,
        to,
        sort,
        title: `${WORDS[sort]} ${lane ? `in ${lane} ` : ""}${clock(from, now)} to ${clock(to, now)}, ${span(to - from)}${more}`,
      });
  };
  let cursor = row.created;
  let before = "";
  const isService = row.mode === "Divided" && row.started !== null;
  if (isService) cursor = serviceLife(known, add, moments);
  for (const one of isService ? [] : (known.workload.status?.history ?? [])) {
    const places = one.clusters ?? [];
    const started = moment(one.startedAt);
    const ended = moment(one.endedAt) ?? started ?? cursor;
    const decided = decidedBetween(known, cursor, started ?? ended) ?? started ?? ended;
    add("", cursor, decided, "wait");
    for (const place of places) {
      add(place, decided, started ?? ended, "start");
      if (started !== null) add(place, started, ended, "run", `, attempt ${one.attempt}`);
    }
    if (decided < (started ?? ended))
      moments.push({
        at: decided,
        word: "Starting",
        tone: "start",
        more: `${listWords(places)}, attempt ${one.attempt}`,
      });
    if (started !== null)
      moments.push(
        ran(before, places, started, `attempt ${one.attempt}, for ${span(ended - started)}`),
      );
    if (!isEnd(row, one, ended)) moments.push(left(known, one, ended));
    cursor = ended;
    before = listWords(places);
  }
  if (!isService || !known.workload.status?.claim)
    cursor = current(known, cursor, before, add, moments);
  if (row.finished !== null) {
    const tone = row.phase === "Succeeded" ? "good" : row.phase === "Failed" ? "bad" : "quiet";
    moments.push({
      at: row.finished,
      word: row.phase,
      tone,
      more: row.started !== null ? `${span(row.finished - row.started)} after it first ran` : "",
    });
  }
  moments.sort((one, other) => one.at - other.at);
  const to = ahead(known, cursor, bands, moments);
  const clusters = [...new Set(bands.map((one) => one.lane).filter(Boolean))];
  const lanes = bands.some((one) => !one.lane) ? ["", ...clusters] : clusters;
  return { from: row.created, to, lanes, bands, moments };
}

/** What it does since its last attempt ended. */
function current(
  known: Known,
  cursor: number,
  before: string,
  add: Add,
  moments: Moment[],
): number {
  const { row, now, workload } = known;
  const claim = workload.status?.claim;
  const end = row.finished ?? now;
  if (row.phase === "Stopping")
    for (const one of workload.status?.releasing ?? []) add(one.cluster, cursor, end, "stop");
  if (!claim) {
    if (row.finished === null && row.phase !== "Stopping")
      add("", cursor, end, row.phase === "Held" ? "hold" : "wait");
    else if (cursor === row.created && row.finished !== null) add("", cursor, end, "wait");
    if (row.phase === "Held")
      moments.push({
        at: heldSince(workload) ?? cursor,
        word: "Suspended",
        tone: "hold",
        more: "until it is resumed",
      });
    return end;
  }
  // Of a sweep the claim is decided again whenever tasks end; it runs on meanwhile.
  const runs = row.running ?? (row.mode !== "Gang" ? row.started : null);
  const decided = Math.min(row.decided ?? end, runs ?? end);
  const places = row.places.map((one) => one.cluster).filter(Boolean);
  add("", cursor, Math.max(cursor, decided), "wait");
  for (const place of places) {
    const since = Math.max(cursor, decided);
    add(place, since, Math.max(since, runs ?? end), "start");
    if (runs !== null) add(place, Math.max(since, runs), end, "run");
  }
  const awaited = (claim.waitsFor ?? []).map((one) =>
    one.type === "Preemption"
      ? `${saidOfMention(one.workload)} is gone`
      : `${plural(one.count ?? 0, "node")} of ${one.pool} come`,
  );
  if (row.decided !== null)
    moments.push({
      at: row.decided,
      word: "Starting",
      tone: "start",
      more: `${listWords(places) || "by quota alone"} (${claim.rung ?? "Idle"}), attempt ${claim.attempt}${awaited.length ? `, when ${listWords(awaited)}` : ""}`,
    });
  if (row.running !== null)
    moments.push(ran(before, places, row.running, `for ${span(end - row.running)} so far`));
  return end;
}

function ran(before: string, places: string[], at: number, more: string): Moment {
  const here = listWords(places);
  const isMoved = before !== "" && here !== "" && before !== here;
  return {
    at,
    word: isMoved ? "Moved" : "Running",
    tone: "run",
    more: `${here ? `in ${here}, ` : ""}${more}`,
  };
}

export function left(known: Known, one: Past, at: number): Moment {
  const by = one.preemptedBy;
  const whom = by ? keyOfMention(by) || preemptor(known, at) : "";
  const said = [
    by
      ? `for ${whom ? whom.split("/").at(-1) : saidOfMention(by)}`
      : codeWords(one.reason || "ended"),
    one.exitCode ? `exit code ${one.exitCode}` : "",
    one.lostSeconds ? `${span(one.lostSeconds * 1000)} of work lost` : "",
  ]
    .filter(Boolean)
    .join(", ");
  const isProgram = one.blame === "Program";
  return {
    at,
    word: by ? "Preempted" : one.reason === "Drained" ? "Stopped" : isProgram ? "Failed" : "Left",
    tone: by ? "stop" : isProgram ? "bad" : "wait",
    more: `${said}${one.message ? `: ${one.message}` : ""}`,
    whom: whom || undefined,
  };
}

/** For whom it was preempted, where one may see what was decided; across namespaces it is not stored. */
function preemptor(known: Known, at: number): string {
  for (const one of known.decisions ?? [])
    for (const step of one.steps)
      if (
        step.action === "Preempt" &&
        step.workload === known.row.key &&
        Math.abs(one.now * 1000 - at) < NEAR
      )
        return step.for ?? "";
  return "";
}

/** Whether an attempt ended with the workload itself: then the end is told once. */
function isEnd(row: Row, one: Past, ended: number): boolean {
  return (
    OVER.has(row.phase) &&
    row.finished !== null &&
    Math.abs(row.finished - ended) < 1000 &&
    !one.preemptedBy &&
    !one.message
  );
}

function decidedBetween(known: Known, from: number, to: number): number | null {
  let found: number | null = null;
  for (const one of known.decisions ?? [])
    for (const step of one.steps)
      if (
        step.action === "Admit" &&
        step.workload === known.row.key &&
        one.now * 1000 >= from &&
        one.now * 1000 <= to
      )
        found ??= one.now * 1000;
  return found;
}

function heldSince(workload: Workload): number | null {
  const found = (workload.status?.conditions ?? []).find((one) => one.reason === "Held");
  return moment(found?.lastTransitionTime);
}

/** What is expected; the last moment that the picture shows. */
function ahead(known: Known, cursor: number, bands: Band[], moments: Moment[]): number {
  const { why, now, row } = known;
  const end = row.finished ?? Math.max(cursor, now);
  const start = why?.state === "Waits" ? why.expected?.start : undefined;
  if (start === undefined || start * 1000 < now) return end;
  const because = why?.expected?.because ?? "";
  const latest = Math.max(start, why?.expected?.latest ?? start) * 1000;
  bands.push({
    lane: "",
    from: now,
    to: start * 1000,
    sort: "ahead",
    title: `Expected to start at ${clock(start * 1000, now)}`,
  });
  moments.push({
    at: start * 1000,
    word: "Expected to start",
    tone: "start",
    more: because ? `when ${because.split("/").at(-1)} ends` : "",
    whom: because.includes("/") ? because : undefined,
    isAhead: true,
  });
  return latest;
}
