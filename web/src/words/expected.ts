// When a workload is expected to start, as the end of a sentence.

import type { Explanation } from "../api/kinds";
import { clock, span } from "./times";

/** `, expected 14:05:09 (in 3 min)`, or `(a guess: in 3 min)`; nothing where nothing is known. */
export function expectedIn(why: Explanation | null | undefined, now: number): string {
  if (!why) return "";
  if (why.state === "Starts") return ", starts now";
  if (why.state === "Runs") return ", runs";
  if (why.state === "Impossible") return ", can never start as it is";
  const start = why.expected?.start;
  if (!start) return ", start not known";
  const at = start * 1000;
  return at <= now
    ? ", expected any moment"
    : `, expected ${clock(at, now)} (${why.expected?.isGuess ? "a guess: " : ""}in ${span(at - now)})`;
}
