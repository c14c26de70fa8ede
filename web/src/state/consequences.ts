// What comes of stopping a workload, in words, before anybody presses the button.

import type { Workload } from "../api/kinds";
import { plural } from "../words/amounts";
import { span } from "../words/times";
import type { Row } from "./rows";

/** What stopping it now frees and loses; empty where nothing of it runs. */
export function ofStopping(workload: Workload, row: Row, now: number): string[] {
  if (!row.places.length) return [];
  const said: string[] = [];
  const where = row.clusters;
  if (row.gpus)
    said.push(`${plural(row.gpus, "GPU")} in ${where} ${row.gpus === 1 ? "is" : "are"} freed.`);
  else
    said.push(
      `${plural(
        row.places.reduce((sum, one) => sum + one.pods, 0),
        "pod",
      )} in ${where} end.`,
    );
  if (row.mode === "Divided") return [...said, "It serves no traffic until it runs again."];
  if (row.running === null) return [...said, "It has not begun to run, so no work is lost."];
  const ran = span(now - row.running);
  const checkpoint = workload.spec.checkpoint;
  if (!checkpoint)
    return [...said, `It saves nothing: ${ran} of work since it last started is lost.`];
  if (checkpoint.signal !== "")
    said.push(
      `It is asked to save its work first, and gets ${span((checkpoint.graceSeconds ?? 60) * 1000)} for that.`,
    );
  else if (checkpoint.intervalSeconds)
    said.push(
      `It saves by itself: at most ${span(Math.min(checkpoint.intervalSeconds * 1000, now - row.running))} of work is lost.`,
    );
  return said;
}
