// Our kinds by their short names, from the document that the hub serves.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Workload = Schemas["dev.fairway.v1alpha1.Workload"];
export type Cluster = Schemas["dev.fairway.v1alpha1.Cluster"];
export type ClusterReport = Schemas["dev.fairway.v1alpha1.ClusterReport"];
export type Flavor = Schemas["dev.fairway.v1alpha1.Flavor"];
export type Queue = Schemas["dev.fairway.v1alpha1.Queue"];
export type Fleet = Schemas["dev.fairway.v1alpha1.Fleet"];
export type PlacementPolicy = Schemas["dev.fairway.v1alpha1.PlacementPolicy"];
export type FleetAutoscaler = Schemas["dev.fairway.serving.v1alpha1.FleetAutoscaler"];
export type Rollout = Schemas["dev.fairway.serving.v1alpha1.Rollout"];
export type Revision = Schemas["dev.fairway.serving.v1alpha1.Revision"];
export type CostAccount = Schemas["dev.fairway.costs.v1alpha1.CostAccount"];
export type ObjectMeta = Schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];

export interface Named {
  metadata?: ObjectMeta;
}

export interface List<T> {
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

// What is worked out when it is asked for has no schema of its own.

export interface Reason {
  code: string;
  message: string;
  rung?: string;
  cluster?: string;
  group?: string;
  queue?: string;
  flavor?: string;
  podSet?: string;
  pool?: string;
  level?: string;
  other?: string;
  count?: number;
  until?: number;
  short?: Record<string, string>;
}

export interface PlaceLack {
  cluster: string;
  free: string;
  short: string;
  fits?: boolean;
  flavor?: string;
}

export interface Remedy {
  kind: string;
  message: string;
  name?: string;
  needs?: { amount: string; of: string };
  short?: Record<string, string>;
}

export interface Explanation {
  now: number;
  workload: string;
  state: "Runs" | "Starts" | "Waits" | "Impossible";
  queue: string;
  clusters?: string[];
  needs?: { amount: string; of: string };
  position?: number;
  waiting?: number;
  nearest?: PlaceLack;
  places?: PlaceLack[];
  ladder?: { group?: string; rung: string }[];
  quota?: Reason;
  expected?: {
    start?: number;
    earliest?: number;
    latest?: number;
    because?: string;
    /** It depends on a run time that nobody knows, so it has no range. */
    isGuess?: boolean;
  };
  reasons?: Reason[];
  remedies?: Remedy[];
  message: string;
}

export interface Holding {
  flavor: string;
  resource: string;
  nominal: string;
  used: string;
  borrowed: string;
  lent: string;
}

export interface Standing {
  queue: string;
  parent: string;
  weight: string;
  waiting: number;
  claimed: number;
  running: number;
  share: number | null;
  /** What it would have of accelerators, or else CPUs, if all were divided fairly. */
  fair?: number;
  holdings: Holding[];
  heads: string[];
}

export interface StepPlacement {
  cluster: string;
  group?: string;
  replicas?: number;
  tasks?: string;
  podSets?: { name: string; count: number; flavors?: Record<string, string> }[];
}

export interface Step {
  action: "Admit" | "Preempt" | "Provision" | "Move";
  workload: string;
  placements?: StepPlacement[];
  rung?: string;
  for?: string;
  from?: string;
  cluster?: string;
  pool?: string;
  count?: number;
  lostSeconds?: number;
  waitsFor?: string[];
  scores?: Record<string, number>;
  /** The best of these with what makes up their scores, if scores tell more than Balance. */
  ranking?: { cluster: string; total: number; message: string }[];
  alternative?: string;
  reasons?: Reason[];
}

export interface Decision {
  now: number;
  steps: Step[];
}

/** How the load of a service should be shared; weights are thousandths. */
export interface Traffic {
  now: number;
  services: {
    namespace: string;
    name: string;
    clusters: { cluster: string; weight: number; ready: number }[];
  }[];
}

export interface Plan {
  now: number;
  steps: Step[];
  waiting: { workload: string; reasons: Reason[] }[];
  warnings?: Reason[];
  reservations?: { workload: string; cluster: string; flavors?: string[] }[];
}

export interface Pod {
  cluster: string;
  name: string;
  podSet: string;
  attempt: number;
  phase: string;
  node?: string;
  since?: string;
  startedAt?: string;
  finishedAt?: string;
  restarts?: number;
  exitCode?: number;
  reason?: string;
  message?: string;
  revision?: string;
  containers?: string[];
}

export interface PodPage {
  clusters: { cluster: string; phases?: Record<string, number>; fault?: string }[];
  pods: Pod[];
  continue?: string;
}

export interface CoreEvent {
  metadata?: ObjectMeta;
  type?: string;
  reason?: string;
  message?: string;
  note?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  eventTime?: string;
  involvedObject?: { kind?: string; name?: string; namespace?: string };
  source?: { component?: string };
  reportingComponent?: string;
}
