// What was tried for a workload that waits, as a table: clusters by steps of the ladder.
//
// Each cell says whether the step would do there, and what is missing if not. Clusters that may not
// be used at all are told apart, by what keeps them out.

import type { Explanation, PlaceLack, Reason } from "../api/kinds";
import { amountOf, plural } from "../words/amounts";
import { codeWords, shortWords } from "../words/missing";
import { clock } from "../words/times";

export type Mark = "yes" | "no" | "skip";

export interface Cell {
  mark: Mark;
  text: string;
  more: string[];
}

export interface Column {
  key: string;
  title: string;
  hint: string;
}

export interface Rung {
  cluster: string;
  group: string;
  flavor: string;
  cells: Cell[];
}

export interface Outside {
  code: string;
  words: string;
  clusters: { cluster: string; message: string }[];
}

export interface Ladder {
  columns: Column[];
  rows: Rung[];
  /** The cluster that lacks least; empty: none has what it needs. */
  nearest: string;
  outside: Outside[];
  /** What keeps it from being looked at anywhere. */
  standing: Reason[];
}

const RUNGS: Record<string, Column> = {
  Idle: { key: "Idle", title: "Free now", hint: "Does it fit into what is idle?" },
  Preempt: {
    key: "Preempt",
    title: "Preemption",
    hint: "Would those it may preempt make enough room?",
  },
  Provision: {
    key: "Provision",
    title: "New nodes",
    hint: "Could elastic pools bring what is missing?",
  },
};
const MAY: Column = {
  key: "may",
  title: "Allowed",
  hint: "Do its policy, its queue and the cluster allow it?",
};
const QUOTA: Column = {
  key: "quota",
  title: "Quota",
  hint: "Does its queue have enough left, borrowing included?",
};

const OUTSIDE: Record<string, string> = {
  NotSelected: "Not chosen by its policy",
  Fenced: "Closed to its queue",
  ClusterForbidden: "Forbidden by a fleet policy",
  Tainted: "Tainted, and not tolerated",
  Closed: "Takes nothing new",
  KindNotServed: "Does not serve its kind",
  NotAdmitted: "Would refuse its pods",
  Pinned: "A volume pins it elsewhere",
  Avoided: "It failed there before",
  TemplateRefused: "Refused its template",
  SpreadUnmet: "Cannot be spread over it",
};
const QUOTAS = new Set([
  "QuotaExceeded",
  "QuotaTooSmall",
  "UserLimitExceeded",
  "ClaimsExceeded",
  "KeptForOwner",
]);

/** Whether a reason says that a cluster is not considered at all. */
export function isOutside(reason: Reason): boolean {
  return reason.code in OUTSIDE && Boolean(reason.cluster);
}

export function ladderOf(why: Explanation): Ladder {
  const reasons = why.reasons ?? [];
  const outside = outsideOf(reasons);
  const out = new Set(outside.flatMap((one) => one.clusters.map((each) => each.cluster)));
  const inside = reasons.filter((one) => !isOutside(one));
  const rungs = [...new Set((why.ladder ?? []).map((one) => one.rung))];
  if (!rungs.length)
    rungs.push(...[...new Set(inside.map((one) => one.rung ?? ""))].filter((one) => one in RUNGS));
  const columns = [MAY, QUOTA, ...rungs.flatMap((one) => RUNGS[one] ?? [])];
  const rows = placesOf(why, inside, out).map((place) => rowOf(why, place, inside, columns));
  const standing = inside.filter(
    (one) => !one.cluster && !one.rung && !isOfQuota(one) && one.code !== "BreakerOpen",
  );
  const nearest = why.places?.[0]?.cluster ?? "";
  return { columns, rows, nearest, outside, standing: unique(standing) };
}

function outsideOf(reasons: Reason[]): Outside[] {
  const found = new Map<string, Outside>();
  for (const one of reasons) {
    if (!isOutside(one) || !one.cluster) continue;
    const here = found.get(one.code) ?? {
      code: one.code,
      words: OUTSIDE[one.code] ?? codeWords(one.code),
      clusters: [],
    };
    if (!here.clusters.some((each) => each.cluster === one.cluster))
      here.clusters.push({ cluster: one.cluster, message: one.message });
    found.set(one.code, here);
  }
  return [...found.values()];
}

/** The clusters that may take it, nearest first; those that only a reason names come last. */
function placesOf(why: Explanation, reasons: Reason[], out: Set<string>): PlaceLack[] {
  const places = [...(why.places ?? [])];
  const known = new Set([...places.map((one) => one.cluster), ...out]);
  for (const { cluster } of reasons)
    if (cluster && !known.has(cluster)) {
      known.add(cluster);
      places.push({ cluster, free: "", short: "" });
    }
  return places;
}

function rowOf(why: Explanation, place: PlaceLack, reasons: Reason[], columns: Column[]): Rung {
  const own = reasons.filter((one) => one.cluster === place.cluster);
  const quotas = reasons.filter(
    (one) => isOfQuota(one) && (!one.flavor || !place.flavor || one.flavor === place.flavor),
  );
  const group = own.find((one) => one.group)?.group ?? "";
  const cells = columns.map((column): Cell => {
    if (column.key === "may") return { mark: "yes", text: "", more: [] };
    if (column.key === "quota") return quotaCell(quotas, why);
    const found = own.filter(
      (one) => one.rung === column.key || (!one.rung && column.key === rungOf(one)),
    );
    const breaker = reasons.find((one) => one.code === "BreakerOpen" && rungOf(one) === column.key);
    if (breaker) return { mark: "no", text: "breaker is open", more: [breaker.message] };
    if (column.key === "Idle") return idleCell(place, found, why, quotas.length > 0);
    if (found.length)
      return {
        mark: "no",
        text: rungText(found[0]!),
        more: unique(found).map((one) => one.message),
      };
    const steps = (why.ladder ?? []).filter((one) => one.rung === column.key);
    const isOn = !steps.length || !group || steps.some((one) => !one.group || one.group === group);
    const because = quotas.length ? ["Its queue lacks quota, so this was not tried."] : [];
    return {
      mark: "skip",
      text: isOn ? "not tried" : "not on its ladder",
      more: isOn ? because : ["Its policy's ladder does not have this step here."],
    };
  });
  return { cluster: place.cluster, group, flavor: place.flavor ?? "", cells };
}

/** The step that a reason is about, where it names none. */
function rungOf(reason: Reason): string {
  if (reason.code === "BreakerOpen") return reason.other === "price" ? "Provision" : "Preempt";
  if (reason.code === "NoVictims") return "Preempt";
  if (["NoPool", "OutOfStock", "StockUnknown"].includes(reason.code)) return "Provision";
  return "Idle";
}

function quotaCell(reasons: Reason[], why: Explanation): Cell {
  const first = reasons[0];
  if (!first)
    return { mark: "yes", text: "enough", more: [`Queue ${why.queue} has quota for it.`] };
  const texts: Record<string, string> = {
    UserLimitExceeded: "limit of its user",
    ClaimsExceeded: "too many run",
    Reserved: "kept for another",
    KeptForOwner: "kept for its owner",
  };
  const text = texts[first.code] ?? shortWords(first.short);
  // By itself it would be allowed: those before it have taken what is left.
  const others =
    why.quota || (why.position ?? 1) < 2
      ? []
      : [`Counted with those before it in queue ${why.queue}.`];
  return {
    mark: "no",
    text: text || "too little",
    more: [...unique(reasons).map((one) => one.message), ...others],
  };
}

function idleCell(
  place: PlaceLack,
  found: Reason[],
  why: Explanation,
  isQuotaShort: boolean,
): Cell {
  const more = unique(found).map((one) => one.message);
  const kept = found.find((one) => one.code === "Reserved");
  if (kept)
    return {
      mark: "no",
      text: kept.until ? `kept for another until ${clock(kept.until * 1000)}` : "kept for another",
      more,
    };
  const first = found[0];
  if (!first && place.fits)
    return {
      mark: "yes",
      text: "fits",
      more: [isQuotaShort ? "There is room, but its queue is short." : "There is room."],
    };
  if (!first && !place.short) return { mark: "skip", text: "not tried", more: [] };
  if (!more.length)
    more.push(`${place.free} of ${why.needs?.amount ?? "what it needs"} are free for it.`);
  if (first?.level === "flavor")
    return { mark: "no", text: `no ${first.flavor || "such"} nodes`, more };
  if (first?.level === "node")
    return { mark: "no", text: `best node is ${shortWords(first.short)}`, more };
  if (first?.level && first.other)
    return { mark: "no", text: `best ${first.level} is ${shortWords(first.short)}`, more };
  const missing = amountOf(place.short);
  if (place.short && !missing) return { mark: "no", text: "free, but not together", more };
  if (place.short) return { mark: "no", text: `${unit(why, missing)} short`, more };
  return { mark: "no", text: first ? shortWords(first.short) || rungText(first) : "", more };
}

function unit(why: Explanation, amount: number): string {
  const of = why.needs?.of ?? "";
  return of === "pod" || of === "pods" || !of ? plural(amount, "pod") : plural(amount, "GPU");
}

function rungText(reason: Reason): string {
  switch (reason.code) {
    case "NoVictims":
      return "nothing to preempt";
    case "NoPool":
      return "no elastic pool";
    case "StockUnknown":
      return "its stock is not known yet";
    case "OutOfStock":
      return reason.until
        ? `out of stock until ${clock(reason.until * 1000)}`
        : `${plural(reason.count ?? 0, "node")} left, too few`;
    case "DoesNotFit":
      return shortWords(reason.short) || `no room for ${plural(reason.count ?? 0, "pod")}`;
    default:
      return codeWords(reason.code);
  }
}

function isOfQuota(reason: Reason): boolean {
  return QUOTAS.has(reason.code) || (reason.code === "Reserved" && !reason.cluster);
}

function unique(reasons: Reason[]): Reason[] {
  const said = new Set<string>();
  return reasons.filter((one) => !said.has(one.message) && said.add(one.message));
}
