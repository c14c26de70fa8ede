// Rollouts: what they say, and what is written to pause, resume, approve and undo them. The words
// and the writes are those of `fairway rollout`.

import type { Rollout } from "../api/kinds";
import type { Tone } from "../words/phases";

const APPROVED = "serving.fairway.dev/approved";
const RESUMED = "serving.fairway.dev/resumed";

type Status = NonNullable<Rollout["status"]>;
export type Note = NonNullable<Status["history"]>[number];
export type Json = Record<string, unknown>;

/** The workload of a native object, or the one that is named. */
export function serviceKey(namespace: string, kind: string | undefined, name: string): string {
  return `${namespace}/${!kind || kind === "Workload" ? name : `${kind.toLowerCase()}-${name}`}`;
}

export function keyOfRollout(rollout: Rollout): string {
  const { kind, name } = rollout.spec.workload;
  return serviceKey(rollout.metadata?.namespace ?? "", kind, name);
}

const LOOKS: Record<string, [Tone, string]> = {
  Progressing: ["start", "rolling out"],
  Soaking: ["start", "soaking"],
  AwaitingApproval: ["wait", "waiting for approval"],
  Paused: ["hold", "paused"],
  Completed: ["good", "rolled out"],
  RollingBack: ["bad", "rolling back"],
  RolledBack: ["bad", "rolled back"],
  Failed: ["bad", "failed"],
};

export interface Said {
  tone: Tone;
  word: string;
  revision: string;
  batch: string;
  isUnderWay: boolean;
}

/** A rollout in a few words: `revision 3, batch 2 of 4, waits for approval`. */
export function saidOfRollout(rollout: Rollout): Said {
  const status: Status = rollout.status ?? ({} as Status);
  const phase = status.phase ?? "";
  const isBad = phase === "Paused" && !!status.failure;
  const [tone, word] = LOOKS[phase] ?? ["quiet", "not looked at yet"];
  const isUnderWay = [
    "Progressing",
    "Soaking",
    "AwaitingApproval",
    "Paused",
    "RollingBack",
  ].includes(phase);
  const isBack = phase === "RollingBack" || phase === "RolledBack";
  return {
    tone: isBad ? "bad" : tone,
    word: isBad ? "stopped" : word,
    revision: `revision ${(isBack ? status.stableRevision : status.revision) ?? 0}`,
    batch:
      isUnderWay && !isBack
        ? `batch ${(status.currentBatch ?? 0) + 1} of ${Math.max(1, status.batches ?? 1)}`
        : "",
    isUnderWay,
  };
}

export function isPausable(rollout: Rollout): boolean {
  return !rollout.spec.paused;
}

export function isResumable(rollout: Rollout): boolean {
  return !!rollout.spec.paused || !!rollout.status?.failure;
}

export function isApprovable(rollout: Rollout): boolean {
  return rollout.status?.phase === "AwaitingApproval";
}

export function resumed(rollout: Rollout): Json {
  const { spec, status } = rollout;
  const found: Json = spec.paused ? { spec: { paused: false } } : {};
  if (status?.failure)
    found.metadata = {
      annotations: { [RESUMED]: `${status.revision ?? 0}.${status.failures ?? 0}` },
    };
  return found;
}

export function approved(rollout: Rollout): Json {
  const { revision = 0, currentBatch = 0 } = rollout.status ?? ({} as Status);
  return { metadata: { annotations: { [APPROVED]: `${revision}.${currentBatch}` } } };
}

/** Revisions that an undo can bring back, the latest first: all but the one that is wanted now. */
export function earlier(rollout: Rollout): Note[] {
  const { history = [], target } = rollout.status ?? ({} as Status);
  return history.filter((one) => one.mark !== target).toReversed();
}

/** The name of the object that keeps a revision; a name that is too long ends in a digest. */
export async function revisionName(rollout: string, mark: string): Promise<string> {
  const plain = `${rollout}-${mark}`;
  if (plain.length <= 253) return plain;
  const digest = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(plain)),
  );
  const text = [...digest]
    .map((one) => one.toString(16).padStart(2, "0"))
    .join("")
    .slice(0, 10);
  return `${plain.slice(0, 253 - 11).replace(/[-.]+$/, "")}-${text}`;
}

// Fields of a kind's spec from which no pod is made.
const PACE: Record<string, string[]> = {
  "apps/v1 Deployment": [
    "strategy",
    "minReadySeconds",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "paused",
  ],
  "apps/v1 StatefulSet": ["updateStrategy", "minReadySeconds", "revisionHistoryLimit"],
  "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": ["rolloutStrategy"],
};
const DIVISIBLE = new Set(["apps/v1 StatefulSet", "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"]);

/** An object whose pods are made as in a revision; its counts and its pace stay as they are. */
export function restored(current: Json, revision: Json): Json {
  const kept = ["replicas", ...(PACE[kindOf(current)] ?? [])];
  const own = (current.spec ?? {}) as Json;
  const old = (revision.spec ?? {}) as Json;
  const spec = Object.fromEntries([
    ...Object.entries(old).filter(([key]) => !kept.includes(key)),
    ...Object.entries(own).filter(([key]) => kept.includes(key)),
  ]);
  return { ...current, spec };
}

/** Whether some replicas of one cluster can have another revision than the others. */
export function isDivisible(manifest: Json | undefined): boolean {
  return !!manifest && DIVISIBLE.has(kindOf(manifest));
}

function kindOf(manifest: Json): string {
  return `${String(manifest.apiVersion)} ${String(manifest.kind)}`;
}
