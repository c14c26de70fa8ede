// Pods of a workload as lines: what each does in one word, those in trouble first.

import type { Pod, Workload } from "../api/kinds";
import { acceleratorsOf } from "../words/amounts";
import type { Tone } from "../words/phases";

export interface PodRow {
  key: string;
  pod: Pod;
  state: string;
  gpus: number | null;
}

const STATES: Record<string, { tone: Tone; shape: string; order: number }> = {
  Failed: { tone: "bad", shape: "cross", order: 0 },
  Pending: { tone: "wait", shape: "ring", order: 1 },
  Starting: { tone: "start", shape: "half", order: 2 },
  Terminating: { tone: "stop", shape: "down", order: 3 },
  Ready: { tone: "run", shape: "full", order: 4 },
  Succeeded: { tone: "good", shape: "tick", order: 5 },
};

/** `Bound` to a node is a word of schedulers: to people the pod starts. */
export function stateOf(pod: Pod): string {
  return pod.phase === "Bound" ? "Starting" : pod.phase;
}

export function lookOfPod(state: string): { tone: Tone; shape: string; order: number } {
  return STATES[state] ?? { tone: "quiet", shape: "ring", order: 9 };
}

/** Those in trouble first; else as they came, cluster by cluster in the order of their names. */
export function sorted(pods: Pod[]): Pod[] {
  const order = (one: Pod) => Math.min(lookOfPod(stateOf(one)).order, 4);
  return [...pods].sort((one, other) => order(one) - order(other));
}

/** How many accelerators it holds, by the claim; null where that is not told any more. */
export function gpusOf(pod: Pod, workload: Workload): number | null {
  for (const place of [
    ...(workload.status?.claim?.placements ?? []),
    ...(workload.status?.releasing ?? []),
  ])
    if (place.cluster === pod.cluster)
      for (const set of place.podSets ?? [])
        if (set.name === pod.podSet) return acceleratorsOf(set.requests);
  return null;
}
