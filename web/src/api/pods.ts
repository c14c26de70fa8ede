// The pods of a workload, page by page.

import { ask, ours } from "./client";
import type { Pod, PodPage } from "./kinds";

export const PODS_MAX = 10_000;

interface PodList {
  pods: Pod[];
  clusters: PodPage["clusters"];
  isCut: boolean;
}

export async function podsOf(
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<PodList> {
  let pods: Pod[] = [];
  let clusters: PodPage["clusters"] = [];
  let next: string | undefined;
  do {
    const page: PodPage = await ask(ours("workloads", namespace, name, "pods"), {
      signal,
      query: { limit: 1000, continue: next },
    });
    if (!next) clusters = page.clusters;
    pods = withPage(pods, page);
    next = page.continue;
  } while (next && pods.length < PODS_MAX);
  return { pods, clusters, isCut: next !== undefined };
}

/** More pods; one that moved between two pages is there once. */
export function withPage(pods: Pod[], page: PodPage): Pod[] {
  const known = new Set(pods.map((one) => `${one.cluster}/${one.name}`));
  return [...pods, ...page.pods.filter((one) => !known.has(`${one.cluster}/${one.name}`))];
}
