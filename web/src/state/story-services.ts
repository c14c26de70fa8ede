// The life of a service: it runs on while replicas come to some places and leave others. Its status
// tells of places that were lost; decisions tell when replicas were put where.

import { plural } from "../words/amounts";
import { listWords } from "../words/missing";
import { moment, span } from "../words/times";
import { left, type Add, type Known, type Moment } from "./story";

interface Put {
  at: number;
  clusters: string[];
}

/** Adds its spans and moments; until when they tell. */
export function serviceLife(known: Known, add: Add, moments: Moment[]): number {
  const { row, now, workload } = known;
  const started = row.started ?? row.created;
  const puts = putsOf(known);
  const ends = endsOf(known);
  const places = row.places.map((one) => one.cluster).filter(Boolean);
  const last =
    row.finished ?? (places.length ? now : Math.max(started, ...[...ends.values()].flat()));
  const first = Math.min(started, ...puts.map((one) => one.at));
  add("", row.created, first, "wait");
  for (const cluster of new Set([
    ...puts.flatMap((one) => one.clusters),
    ...places,
    ...ends.keys(),
  ])) {
    let from: number | null = null;
    for (const one of [...puts, { at: Infinity, clusters: [] as string[] }]) {
      const lost =
        from === null ? undefined : ends.get(cluster)?.find((at) => at > from! && at <= one.at);
      if (from !== null && lost !== undefined) {
        stay(add, cluster, from, lost, started);
        from = null;
      }
      if (from === null && one.clusters.includes(cluster)) from = one.at;
    }
    const isThere = places.includes(cluster);
    if (from === null && isThere && !puts.some((one) => one.clusters.includes(cluster)))
      from = started; // nobody remembers when
    if (from === null) continue;
    const seen = puts.findLast((one) => one.clusters.includes(cluster))?.at ?? from;
    stay(
      add,
      cluster,
      from,
      isThere ? last : (puts.find((one) => one.at > seen)?.at ?? row.decided ?? seen),
      started,
    );
  }
  moments.push({
    at: started,
    word: "Running",
    tone: "run",
    more: `${puts[0]?.clusters.length ? `in ${listWords(puts[0].clusters)}, ` : ""}for ${span(last - started)}${row.finished === null && places.length ? " so far" : ""}`,
  });
  for (const one of workload.status?.history ?? []) {
    const told = left(known, one, moment(one.endedAt) ?? started);
    moments.push({ ...told, more: `${listWords(one.clusters ?? [])}: ${told.more}` });
  }
  moments.push(...decided(known));
  return last;
}

function stay(add: Add, cluster: string, from: number, to: number, started: number): void {
  add(cluster, from, Math.max(from, Math.min(started, to)), "start");
  add(cluster, Math.max(from, started), to, "run");
}

/** When replicas were put into which places. */
function putsOf(known: Known): Put[] {
  const found: Put[] = [];
  for (const one of known.decisions ?? [])
    for (const step of one.steps)
      if (step.workload === known.row.key && step.placements?.length)
        found.push({
          at: one.now * 1000,
          clusters: step.placements.map((each) => each.cluster).filter(Boolean),
        });
  return found;
}

/** When places were lost or left, by cluster. */
function endsOf(known: Known): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const one of known.workload.status?.history ?? []) {
    const at = moment(one.endedAt);
    if (at !== null)
      for (const cluster of one.clusters ?? [])
        found.set(cluster, [...(found.get(cluster) ?? []), at]);
  }
  return found;
}

/** What was decided on it: where its replicas are, and which moved. */
function decided(known: Known): Moment[] {
  const found: Moment[] = [];
  for (const one of known.decisions ?? [])
    for (const step of one.steps) {
      if (step.workload !== known.row.key || !step.placements?.length) continue;
      const at = one.now * 1000;
      const places = listWords(
        step.placements.map(
          (place) => `${place.cluster}${place.replicas ? ` (${place.replicas})` : ""}`,
        ),
      );
      if (step.action === "Move")
        found.push({
          at,
          word: "Moved",
          tone: "start",
          more: `${plural(step.count ?? 0, "replica")} from ${step.from ?? ""} to ${places}`,
        });
      else
        found.push({
          at,
          word: found.length ? "Spread" : "Starting",
          tone: "start",
          more: found.length ? `over ${places}` : places,
        });
    }
  return found;
}
