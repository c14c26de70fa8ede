// What there is to choose from.

import type { Queue, Standing } from "../api/kinds";
import { isAccelerator } from "../words/amounts";

/** Queues that take workloads, those that own something first. */
export function leavesOf(standings: Standing[]): string[] {
  const parents = new Set(standings.map((one) => one.parent));
  const leaves = standings.filter((one) => !parents.has(one.queue));
  return [
    ...leaves.filter((one) => one.holdings.length),
    ...leaves.filter((one) => !one.holdings.length),
  ].map((one) => one.queue);
}

/** The accelerator that a flavor is counted by; of any flavor, the first there is. */
export function acceleratorOf(standings: Standing[], flavor: string): string {
  for (const one of standings)
    for (const each of one.holdings)
      if ((!flavor || each.flavor === flavor) && isAccelerator(each.resource)) return each.resource;
  return "nvidia.com/gpu";
}

/** What a queue itself owns, accelerators first. */
export function ownedOf(
  queue: Queue | undefined,
): { pair: string; flavor: string; resource: string; nominal: string }[] {
  const found = (queue?.spec?.resourceGroups ?? []).flatMap((group) =>
    group.flavors.flatMap((flavor) =>
      (flavor.quotas ?? []).map((one) => ({
        pair: `${flavor.name} ${one.resource}`,
        flavor: flavor.name,
        resource: one.resource,
        nominal: String(one.nominal ?? "0"),
      })),
    ),
  );
  return found.sort(
    (one, other) => Number(isAccelerator(other.resource)) - Number(isAccelerator(one.resource)),
  );
}
