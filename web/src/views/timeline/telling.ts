// Spans in words: the same on the card, for those who listen, and in the table.

import type { Span } from "../../state/spans";
import { plural } from "../../words/amounts";
import { clock, span as lasting } from "../../words/times";

const ENDED: Record<string, string> = {
  Succeeded: "succeeded",
  Failed: "failed",
  Preempted: "was preempted",
  Moved: "went elsewhere",
  Cancelled: "was cancelled",
  Stopped: "was stopped",
  Resized: "went on with another count",
};

export function stateOf(span: Span): string {
  if (span.sort === "ran") return ENDED[span.ended ?? ""] ?? "ended";
  return {
    starts: "starts",
    runs: "runs",
    reserved: "has room kept for it",
    expected: "is expected",
  }[span.sort];
}

export function nameOf(span: Span): string {
  return span.workload ?? "a workload of another namespace";
}

export function whenOf(span: Span, now: number): string {
  const from = clock(span.from * 1000);
  if (span.sort === "ran")
    return `${from} to ${clock((span.to ?? now) * 1000)} (${lasting(((span.to ?? now) - span.from) * 1000)})`;
  const until = span.until === undefined ? "" : `, likely until ${clock(span.until * 1000)}`;
  if (span.sort === "expected" || span.sort === "reserved") return `from about ${from}${until}`;
  return `since ${from} (${lasting((now - span.from) * 1000)})${until}`;
}

/** Everything in one sentence. */
export function toldOf(span: Span, now: number): string {
  const where = [
    span.gpus ? plural(span.gpus, "GPU") : "no GPU",
    span.flavor,
    span.cluster && `in ${span.cluster}`,
  ]
    .filter(Boolean)
    .join(" ");
  return `${nameOf(span)} ${stateOf(span)}: ${where}, queue ${span.queue || "unknown"}, ${whenOf(span, now)}`;
}
