// What somebody wishes to do with a workload: asked about in a dialog, tried on a copy, or done.

import type { Explanation, Remedy, Workload } from "../api/kinds";
import { acceleratorsOf, amountOf, plural } from "../words/amounts";
import { amountWords, listWords } from "../words/missing";
import type { Row } from "./rows";

export type Wish =
  | { what: "suspend" | "priority" | "queue" | "cancel" | "resubmit" }
  | { what: "flavor"; name: string }
  | { what: "smaller"; pods: number };

export interface Way {
  text: string;
  isSure: boolean; // the hub has tried it
  button?: string;
  wish?: Wish;
  link?: string; // a view that can try it
}

type Spec = Record<string, unknown>;
interface Job {
  kind?: string;
  spec?: {
    parallelism?: number;
    completions?: number;
    template?: { spec?: { containers?: { resources?: { requests?: object; limits?: object } }[] } };
  };
}

/** What would let it start, each with what the page can do about it. */
export function waysOf(why: Explanation, workload: Workload, row: Row): Way[] {
  const isOwn = !workload.spec.source; // else its spec follows the object that it stands for
  const ways = (why.remedies ?? []).map((one): Way => {
    const way: Way = { text: remedyWords(one), isSure: true };
    const pods = one.kind === "FewerPods" ? podsFor(workload, amountOf(one.needs?.amount)) : null;
    if (one.kind === "Flavor" && one.name && isOwn && workload.spec.flavors?.length)
      return { ...way, button: `Accept ${one.name}…`, wish: { what: "flavor", name: one.name } };
    if (pods !== null && isOwn)
      return { ...way, button: `Run ${plural(pods, "pod")}…`, wish: { what: "smaller", pods } };
    if (one.kind === "Quota") return { ...way, button: "Try another quota", link: "whatif" };
    return way;
  });
  const isQuotaShort = why.quota !== undefined;
  const before = (why.position ?? 1) - 1;
  const ahead = before
    ? `${plural(before, "workload")} ${before === 1 ? "is" : "are"} ahead of it in queue ${why.queue}`
    : "those of its queue with less may have to give way";
  if (before || isQuotaShort)
    ways.push({
      text: `A higher priority: ${ahead}.`,
      isSure: false,
      button: "Raise its priority…",
      wish: { what: "priority" },
    });
  if (isQuotaShort && !row.places.length)
    ways.push({
      text: "Another queue, if one has quota left.",
      isSure: false,
      button: "Another queue…",
      wish: { what: "queue" },
    });
  return ways;
}

function remedyWords(one: Remedy): string {
  const needs = one.needs ? `${one.needs.amount} × ${one.needs.of}` : "";
  switch (one.kind) {
    case "Flavor":
      return `It accepts ${needs}: it would start now.`;
    case "FewerPods":
      return `It is smaller: with ${needs} it would start now.`;
    case "Alternative":
      return `Take ${one.name} without waiting: it would start now.`;
    case "Quota":
      return `Queue ${one.name} has ${listWords(Object.entries(one.short ?? {}).map(([resource, amount]) => amountWords(resource, amount)))} more: it would start now.`;
    default:
      return `It ${one.message}.`;
  }
}

/** How many pods of its only shape have so many accelerators; null where that is not plain. */
export function podsFor(workload: Workload, accelerators: number): number | null {
  const each = shapeOf(workload)?.each ?? 0;
  return each > 0 && accelerators >= each && accelerators % each === 0 ? accelerators / each : null;
}

function shapeOf(workload: Workload): { each: number; count: number } | null {
  const sets = workload.spec.podSets ?? [];
  if (sets.length)
    return sets.length === 1
      ? { each: acceleratorsOf(sets[0]!.requests), count: sets[0]!.count ?? 1 }
      : null;
  const manifests = (workload.spec.template?.manifests ?? []) as Job[];
  const jobs = manifests.filter((one) => one.kind === "Job");
  const spec = jobs[0]?.spec;
  if (
    jobs.length !== 1 ||
    manifests[0] !== jobs[0] ||
    !spec?.parallelism ||
    spec.parallelism !== (spec.completions ?? spec.parallelism)
  )
    return null;
  const containers = spec.template?.spec?.containers ?? [];
  const each = containers.reduce(
    (sum, one) =>
      sum +
      acceleratorsOf({ ...one.resources?.limits, ...one.resources?.requests } as Record<
        string,
        unknown
      >),
    0,
  );
  return { each, count: spec.parallelism };
}

/** The part of its spec that is another one with so many pods. */
export function withPods(workload: Workload, pods: number): Spec {
  const sets = workload.spec.podSets ?? [];
  if (sets.length) return { podSets: sets.map((one) => ({ ...one, count: pods })) };
  const [first, ...rest] = (workload.spec.template?.manifests ?? []) as Job[];
  const spec = {
    ...first?.spec,
    parallelism: pods,
    ...(first?.spec?.completions === undefined ? {} : { completions: pods }),
  };
  return { template: { ...workload.spec.template, manifests: [{ ...first, spec }, ...rest] } };
}

/** The part of the spec that a wish changes. */
export function specOf(
  wish: Wish,
  workload: Workload,
  given: { priority: number; queue: string; hold: string },
): Spec {
  switch (wish.what) {
    case "priority":
      return { priority: given.priority };
    case "queue":
      return { queue: given.queue };
    case "flavor":
      return { flavors: [...new Set([...(workload.spec.flavors ?? []), wish.name])] };
    case "smaller":
      return withPods(workload, wish.pods);
    case "suspend":
      return { hold: given.hold };
    case "cancel":
      return { cancelled: true };
    default:
      return {};
  }
}
