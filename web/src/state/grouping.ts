// Ways to put clusters beside each other: by where they are, how they are, any of their labels, or
// the groups of a policy, in the order in which that policy prefers them.

import type { Cluster, PlacementPolicy } from "../api/kinds";
import { lookOf } from "../words/phases";

export interface Grouping {
  name: string;
  title: string;
  /** The group of a cluster, with its place among groups. */
  of: (cluster: Cluster) => [order: number, group: string];
}

export const REGION = "topology.kubernetes.io/region";
export const PROVIDER = "fairway.dev/provider";
const LABELS_MAX = 24;

type Selector = NonNullable<NonNullable<PlacementPolicy["spec"]>["selector"]>;

const byLabel =
  (key: string, none: string) =>
  (cluster: Cluster): [number, string] => {
    const value = cluster.metadata?.labels?.[key];
    return value ? [0, value] : [1, none];
  };

export function phaseOf(cluster: Cluster): string {
  if (cluster.status?.phase === "Lost" || (cluster.spec.hold ?? "None") === "None")
    return cluster.status?.phase || "Pending";
  return cluster.spec.hold === "HoldAndDrain" ? "Draining" : "Held";
}

export function groupings(clusters: Cluster[], policies: PlacementPolicy[]): Grouping[] {
  const found: Grouping[] = [
    { name: "region", title: "region", of: byLabel(REGION, "no region") },
    { name: "provider", title: "provider", of: byLabel(PROVIDER, "no provider") },
    { name: "health", title: "health", of: (one) => [lookOf(phaseOf(one)).order, phaseOf(one)] },
  ];
  for (const policy of policies) {
    const { namespace = "", name = "" } = policy.metadata ?? {};
    if (policy.spec?.groups?.length)
      found.push({
        name: `policy ${namespace}/${name}`,
        title: `groups of policy ${name}`,
        of: (one) => groupIn(policy, one),
      });
  }
  const keys = new Set(clusters.flatMap((one) => Object.keys(one.metadata?.labels ?? {})));
  for (const key of [...keys]
    .filter((one) => one !== REGION && one !== PROVIDER)
    .sort()
    .slice(0, LABELS_MAX))
    found.push({ name: `label ${key}`, title: `label ${key}`, of: byLabel(key, `no ${key}`) });
  return found;
}

/** The first group that has it. What only an expression can tell is not guessed at. */
function groupIn(policy: PlacementPolicy, cluster: Cluster): [number, string] {
  const groups = policy.spec?.groups ?? [];
  const taken = chooses(policy.spec?.selector, cluster);
  if (taken === null) return [groups.length + 1, "chosen by an expression"];
  if (!taken) return [groups.length, "not for this policy"];
  for (const [at, group] of groups.entries()) {
    const has = chooses(group.selector, cluster);
    if (has === null) return [groups.length + 1, "chosen by an expression"];
    if (has) return [at, group.name];
  }
  return [groups.length, "in no group"];
}

/** Whether a selector chooses a cluster; null: an expression decides. */
export function chooses(selector: Selector | undefined, cluster: Cluster): boolean | null {
  const name = cluster.metadata?.name ?? "";
  const labels = cluster.metadata?.labels ?? {};
  const { names = [], exclude = [], expressions = [] } = selector ?? {};
  if (exclude.includes(name) || (names.length && !names.includes(name))) return false;
  const wanted = Object.entries(selector?.labels?.matchLabels ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  for (const { key, operator, values = [] } of selector?.labels?.matchExpressions ?? []) {
    const value = labels[key];
    const holds = {
      In: value !== undefined && values.includes(value),
      NotIn: value === undefined || !values.includes(value),
      Exists: value !== undefined,
      DoesNotExist: value === undefined,
    }[operator as string];
    if (!holds) return false;
  }
  return expressions.length ? null : true;
}
