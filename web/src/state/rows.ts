// A workload as a line of a list: what lists, boards and charts need of it, and no more.

import type { Workload } from "../api/kinds";
import { acceleratorsOf } from "../words/amounts";
import { moment } from "../words/times";
import { servicePartOf, type ServicePart } from "./services";

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
  reservation: { cluster: string; starts: number | null } | null;
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
  const clusters = places.map((one) => one.cluster || "by quota").join(", ");
  const past = (status.history ?? []).flatMap((one) => {
    const from = moment(one.startedAt);
    const to = moment(one.endedAt);
    return from !== null && to !== null
      ? [{ clusters: [...(one.clusters ?? [])], from, to, reason: one.reason ?? "" }]
      : [];
  });
  return {
    key: keyOf(workload),
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
    gpus: places.length ? places.reduce((sum, one) => sum + one.gpus, 0) : wantedGpus(workload),
    wanted: status.pods?.wanted ?? 0,
    ready: (status.pods?.ready ?? 0) + (status.pods?.succeeded ?? 0),
    replicas: spec.replicas ?? null,
    places,
    clusters,
    created,
    queued: moment(status.queuedAt) ?? created,
    decided: moment(claim?.decidedAt),
    started: moment(status.startedAt),
    finished: moment(status.finishedAt),
    running: moment(claim?.readyAt),
    past,
    reservation: status.reservation
      ? { cluster: status.reservation.cluster, starts: moment(status.reservation.startsAt) }
      : null,
    service: spec.mode === "Divided" ? servicePartOf(workload) : null,
    text: `${metadata.namespace}/${metadata.name} ${queue} ${clusters} ${user} ${kind}`.toLowerCase(),
  };
}

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
    return times * spec.podSets.reduce((sum, set) => sum + (set.count ?? 1) * acceleratorsOf(set.requests), 0);
  const first = spec.template?.manifests?.[0] as
    | { spec?: { parallelism?: number; completions?: number; replicas?: number; template?: PodTemplate } }
    | undefined;
  const containers = first?.spec?.template?.spec?.containers;
  if (!containers) return null;
  const each = containers.reduce(
    (sum, one) =>
      sum + acceleratorsOf({ ...one.resources?.limits, ...one.resources?.requests } as Record<string, unknown>),
    0,
  );
  const tasks = Math.min(spec.tasks?.concurrency ?? Infinity, spec.tasks?.count ?? Infinity);
  const count = Number.isFinite(tasks) ? tasks : (first?.spec?.parallelism ?? first?.spec?.replicas ?? 1);
  return times * count * each;
}

/** The code of its reason as words, where it says more than the state: `does not fit`. */
export function saidOf(row: Row): string {
  if (!row.reason || row.reason === row.phase) return "";
  return row.reason.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
