// A workload as a line of a list: what lists, boards and charts need of it, and no more.
//
// The hub makes rows (fairway/server/rows.py), so that 50,000 workloads are ten megabytes and not a
// hundred; what one row says of a workload is what is read here from a whole one, and
// tests/server/data/rows.json holds both to it.

import type { Workload } from "../api/kinds";
import type { Form } from "../api/live";
import { acceleratorsOf } from "../words/amounts";
import { codeWords } from "../words/missing";
import { moment } from "../words/times";
import { type ServiceCell, servicePartFrom, servicePartOf, type ServicePart } from "./services";

export interface Place {
  cluster: string;
  gpus: number;
  pods: number;
  flavors: string;
}

export interface Past {
  clusters: string[];
  from: number;
  to: number;
  reason: string;
}

export interface Row {
  key: string;
  namespace: string;
  name: string;
  version: string;
  queue: string;
  phase: string;
  reason: string;
  kind: string;
  mode: string;
  user: string;
  priority: number;
  gpus: number | null;
  wanted: number;
  ready: number;
  replicas: number | null;
  places: Place[];
  clusters: string;
  created: number;
  queued: number;
  decided: number | null;
  started: number | null;
  finished: number | null;
  running: number | null;
  past: Past[];
  reservation: { cluster: string; starts: number | null; flavors: string[] } | null;
  /** Of a Divided workload: its replicas, place by place. */
  service: ServicePart | null;
  text: string;
}

type Status = NonNullable<Workload["status"]>;

export function keyOf(object: { metadata?: { namespace?: string; name?: string } }): string {
  return `${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
}

export function rowOf(workload: Workload): Row {
  const { metadata = {}, spec } = workload;
  const status: Status = workload.status ?? {};
  const claim = status.claim;
  const places = (claim?.placements ?? []).map(placeOf);
  const kind = kindOf(workload);
  const created = moment(metadata.creationTimestamp) ?? 0;
  const queue = status.queue || spec.queue || "";
  const user = metadata.annotations?.["fairway.dev/created-by"] ?? "";
  const past = (status.history ?? []).flatMap((one) => {
    const from = moment(one.startedAt);
    const to = moment(one.endedAt);
    return from !== null && to !== null
      ? [{ clusters: [...(one.clusters ?? [])], from, to, reason: one.reason ?? "" }]
      : [];
  });
  return finished({
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    version: metadata.resourceVersion ?? "",
    queue,
    phase: status.phase ?? "Waiting",
    reason: status.reason ?? "",
    kind,
    mode: spec.mode ?? "Gang",
    user,
    priority: status.priority ?? spec.priority ?? 0,
    gpus: wantedGpus(workload),
    wanted: status.pods?.wanted ?? 0,
    ready: (status.pods?.ready ?? 0) + (status.pods?.succeeded ?? 0),
    replicas: spec.replicas ?? null,
    places,
    created,
    queued: moment(status.queuedAt) ?? created,
    decided: moment(claim?.decidedAt),
    started: moment(status.startedAt),
    finished: moment(status.finishedAt),
    running: moment(claim?.readyAt),
    past,
    reservation: status.reservation
      ? {
          cluster: status.reservation.cluster,
          starts: moment(status.reservation.startsAt),
          flavors: [...status.reservation.flavors],
        }
      : null,
    service: spec.mode === "Divided" ? servicePartOf(workload) : null,
  });
}

/** What follows from the rest of a row. */
function finished(row: Omit<Row, "key" | "clusters" | "text">): Row {
  const { namespace, name, places } = row;
  const key = `${namespace}/${name}`;
  const clusters = said(places);
  return Object.assign(row, {
    key,
    clusters,
    gpus: places.length ? places.reduce((sum, one) => sum + one.gpus, 0) : row.gpus,
    text: `${key} ${row.queue} ${clusters} ${row.user} ${row.kind}`.toLowerCase(),
  });
}

function said(places: Place[]): string {
  if (places.length === 1) return places[0]!.cluster || "by quota";
  return places.map((one) => one.cluster || "by quota").join(", ");
}

type Time = string | null;

/** The columns of a row in their order; those behind the last that says anything are left out. */
export type Cells = [
  namespace: string,
  name: string,
  version: string,
  created?: Time,
  user?: string,
  queue?: string,
  phase?: string,
  reason?: string,
  kind?: string,
  mode?: string,
  priority?: number,
  gpus?: number | null,
  wanted?: number,
  ready?: number,
  replicas?: number | null,
  places?: [string, number, number, string][] | null,
  queued?: Time,
  decided?: Time,
  started?: Time,
  finished?: Time,
  running?: Time,
  past?: [string[], string, string, string][] | null,
  reservation?: [string, Time, string[]] | null,
  service?: ServiceCell | null,
];

const NO_PLACES: Place[] = [];
const NO_PAST: Past[] = [];

export function rowFrom(cells: Cells): Row {
  const [
    namespace,
    name,
    version,
    created,
    user,
    queue,
    phase,
    reason,
    kind,
    mode,
    priority,
    gpus,
    wanted,
    ready,
    replicas,
    places,
    queued,
    decided,
    started,
    ended,
    running,
    past,
    reservation,
    service,
  ] = cells;
  const since = moment(created) ?? 0;
  return finished({
    namespace: shared(namespace),
    name,
    version,
    queue: shared(queue),
    phase: shared(phase),
    reason: shared(reason),
    kind: shared(kind),
    mode: shared(mode),
    user: shared(user),
    priority: priority ?? 0,
    gpus: gpus ?? null,
    wanted: wanted ?? 0,
    ready: ready ?? 0,
    replicas: replicas ?? null,
    places: places?.length
      ? places.map(([cluster, each, pods, flavors]) => ({
          cluster: shared(cluster),
          gpus: each,
          pods,
          flavors: shared(flavors),
        }))
      : NO_PLACES,
    created: since,
    queued: moment(queued) ?? since,
    decided: moment(decided),
    started: moment(started),
    finished: moment(ended),
    running: moment(running),
    past: past?.length
      ? past.map(([clusters, from, to, why]) => ({
          clusters: clusters.map(shared),
          from: moment(from) ?? 0,
          to: moment(to) ?? 0,
          reason: shared(why),
        }))
      : NO_PAST,
    reservation: reservation
      ? { cluster: shared(reservation[0]), starts: moment(reservation[1]), flavors: reservation[2] }
      : null,
    service: service ? servicePartFrom(service, replicas ?? null, wanted ?? 0) : null,
  });
}

const WORDS_MAX = 100_000;
const words = new Map<string, string>();

/** One text for all rows that say the same, instead of one each. */
function shared(word: string | undefined | null): string {
  if (!word) return "";
  const known = words.get(word);
  if (known !== undefined) return known;
  if (words.size >= WORDS_MAX) words.clear();
  words.set(word, word);
  return word;
}

export const ROWS: Form<Row> = {
  accept: "application/json;as=Rows;g=fairway.dev;v=v1alpha1",
  many: (page) => (page as { rows: Cells[] }).rows.map(rowFrom),
  one: (object) => rowFrom((object as { row: Cells }).row),
};

type Placement = NonNullable<NonNullable<Status["claim"]>["placements"]>[number];

export function placeOf(placement: Placement): Place {
  let gpus = 0;
  let pods = 0;
  const flavors = new Set<string>();
  for (const set of placement.podSets ?? []) {
    gpus += set.count * acceleratorsOf(set.requests);
    pods += set.count;
    for (const flavor of Object.values(set.flavors ?? {})) flavors.add(String(flavor));
  }
  return { cluster: placement.cluster, gpus, pods, flavors: [...flavors].join("+") };
}

export function kindOf(workload: Workload): string {
  const first = workload.spec.template?.manifests?.[0] as { kind?: string } | undefined;
  return workload.spec.source?.kind ?? first?.kind ?? "Workload";
}

interface PodTemplate {
  spec?: { containers?: { resources?: { requests?: object; limits?: object } }[] };
}

/** What it asks for before anything is decided, as far as its spec says it plainly. */
function wantedGpus(workload: Workload): number | null {
  const { spec } = workload;
  const times = spec.replicas ?? 1;
  if (spec.podSets?.length)
    return (
      times *
      spec.podSets.reduce((sum, set) => sum + (set.count ?? 1) * acceleratorsOf(set.requests), 0)
    );
  const first = spec.template?.manifests?.[0] as
    | {
        spec?: {
          parallelism?: number;
          completions?: number;
          replicas?: number;
          template?: PodTemplate;
        };
      }
    | undefined;
  const containers = first?.spec?.template?.spec?.containers;
  if (!containers) return null;
  const each = containers.reduce(
    (sum, one) =>
      sum +
      acceleratorsOf({ ...one.resources?.limits, ...one.resources?.requests } as Record<
        string,
        unknown
      >),
    0,
  );
  const tasks = Math.min(spec.tasks?.concurrency ?? Infinity, spec.tasks?.count ?? Infinity);
  const count = Number.isFinite(tasks)
    ? tasks
    : (first?.spec?.parallelism ?? first?.spec?.replicas ?? 1);
  return times * count * each;
}

/** The code of its reason as words, where it says more than the state: `does not fit`. */
export function saidOf(row: Row): string {
  if (!row.reason || row.reason === row.phase) return "";
  return codeWords(row.reason);
}
