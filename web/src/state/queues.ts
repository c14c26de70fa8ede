// Queues as a tree, who of them is over or under their fair share, and what happened in them lately.

import type { Holding, Queue, Standing } from "../api/kinds";
import { amountOf, isAccelerator, short } from "../words/amounts";
import { codeWords } from "../words/missing";
import type { Row } from "./rows";

export interface Branch extends Standing {
  depth: number;
  children: string[];
}

export interface Tree {
  branches: Map<string, Branch>;
  roots: string[];
}

export function treeOf(standings: Standing[]): Tree {
  const branches = new Map<string, Branch>(
    standings.map((one) => [one.queue, { ...one, depth: 0, children: [] }]),
  );
  const roots: string[] = [];
  for (const one of branches.values()) {
    const above = branches.get(one.parent);
    if (above) above.children.push(one.queue);
    else roots.push(one.queue);
  }
  const walk = (name: string, depth: number): void => {
    const one = branches.get(name)!;
    one.depth = depth;
    for (const child of one.children) walk(child, depth + 1);
  };
  for (const root of roots) walk(root, 0);
  return { branches, roots };
}

/** From a root down to the queue itself. */
export function pathOf(tree: Tree, queue: string): Branch[] {
  const found: Branch[] = [];
  for (let one = tree.branches.get(queue); one; one = tree.branches.get(one.parent)) {
    if (found.includes(one)) break;
    found.unshift(one);
  }
  return found;
}

/** The queue and all below it. */
export function withAllBelow(tree: Tree, queue: string): string[] {
  const found = [queue];
  for (const name of found) found.push(...(tree.branches.get(name)?.children ?? []));
  return found;
}

const WHOLE_MOST = 60;

/** Whether a queue is open before anybody said so: of a large tree only the first level is. */
export function isOpenAtFirst(tree: Tree, one: Branch): boolean {
  return tree.branches.size <= WHOLE_MOST || one.depth < 1;
}

/** The lines to draw: what is open, or whatever a search finds with the way to it. */
export function linesOf(tree: Tree, isOpen: (one: Branch) => boolean, search: string): Branch[] {
  const wanted = search.trim().toLowerCase();
  const kept = new Set<string>();
  if (wanted)
    for (const one of tree.branches.values())
      if (one.queue.toLowerCase().includes(wanted))
        for (const each of pathOf(tree, one.queue)) kept.add(each.queue);
  const found: Branch[] = [];
  const walk = (name: string): void => {
    const one = tree.branches.get(name)!;
    if (wanted && !kept.has(name)) return;
    found.push(one);
    if (wanted || isOpen(one)) for (const child of one.children) walk(child);
  };
  for (const root of tree.roots) walk(root);
  return found;
}

// Amounts.

export interface Amounts {
  flavor: string;
  resource: string;
  nominal: number;
  used: number;
  borrowed: number;
  lent: number;
}

/** What counts of a queue: accelerators, or all it has where there are none. */
export function amountsOf(holdings: Holding[]): Amounts[] {
  const accelerators = holdings.filter((one) => isAccelerator(one.resource));
  return (accelerators.length ? accelerators : holdings).map((one) => ({
    flavor: one.flavor,
    resource: one.resource,
    nominal: amountOf(one.nominal),
    used: amountOf(one.used),
    borrowed: amountOf(one.borrowed),
    lent: amountOf(one.lent),
  }));
}

/** What can be counted together, as the hub does for a fair share: accelerators, or else CPUs. */
export function totalOf(amounts: Amounts[]): Amounts {
  const first =
    amounts.find((one) => isAccelerator(one.resource) || one.resource === "cpu") ?? amounts[0];
  const counted = amounts.filter(
    (one) => isAccelerator(one.resource) || one.resource === first?.resource,
  );
  const sum = (pick: (one: Amounts) => number) =>
    counted.reduce((total, one) => total + pick(one), 0);
  return {
    flavor: "",
    resource: first?.resource ?? "",
    nominal: sum((one) => one.nominal),
    used: sum((one) => one.used),
    borrowed: sum((one) => one.borrowed),
    lent: sum((one) => one.lent),
  };
}

export function unitOf(resource: string, count: number): string {
  if (isAccelerator(resource) || !resource) return count === 1 ? "GPU" : "GPUs";
  return resource === "cpu" ? (count === 1 ? "CPU" : "CPUs") : resource;
}

// Fairness.

export type Stand = "over" | "owed" | "fair" | "idle" | "alone";

export interface Fairness {
  stand: Stand;
  by: number;
  words: string;
}

const MARKS: Record<Stand, string> = { over: "▲", owed: "▼", fair: "●", idle: "○", alone: "" };

export function markOf(stand: Stand): string {
  return MARKS[stand];
}

const LEAST = 0.5; // less is nobody's business

/** How a queue stands against its fair share, for people. */
export function fairnessOf(one: Standing): Fairness {
  if (!one.parent) return { stand: "alone", by: 0, words: "" }; // it has nobody to share with
  const { used, resource } = totalOf(amountsOf(one.holdings));
  const fair = one.fair ?? used;
  const by = Math.abs(used - fair);
  const told = by >= 1 ? Math.round(by) : by;
  const amount = `${short(told)} ${unitOf(resource, told)}`;
  if (by >= LEAST && used > fair)
    return { stand: "over", by, words: `${amount} over its fair share` };
  if (by >= LEAST) return { stand: "owed", by, words: `${amount} below its fair share` };
  if (!used && !one.waiting) return { stand: "idle", by: 0, words: "asks for nothing" };
  return {
    stand: "fair",
    by: 0,
    words: one.waiting ? "has its fair share" : "has all it asks for",
  };
}

const ORDER: Record<Stand, number> = { owed: 0, over: 1, fair: 2, idle: 3, alone: 4 };

/** Who is owed most first, then who has too much, then the rest by use. */
export function byFairness(one: Standing, other: Standing): number {
  const [mine, theirs] = [fairnessOf(one), fairnessOf(other)];
  return (
    ORDER[mine.stand] - ORDER[theirs.stand] ||
    theirs.by - mine.by ||
    totalOf(amountsOf(other.holdings)).used - totalOf(amountsOf(one.holdings)).used ||
    (one.queue < other.queue ? -1 : 1)
  );
}

/** The first who waits in a queue or, of an inner one, in one below it. */
export function headOf(tree: Tree, queue: string): string {
  for (const name of withAllBelow(tree, queue)) {
    const head = tree.branches.get(name)?.heads[0];
    if (head) return head;
  }
  return "";
}

// What happened lately.

export interface Happening {
  at: number;
  key: string;
  word: "Admitted" | "Preempted" | "Finished" | "Left";
  said: string;
}

/** Who came and who had to go in some queues, the latest first. */
export function happeningsOf(rows: Row[], queues: Set<string>, most: number): Happening[] {
  const found: Happening[] = [];
  for (const row of rows) {
    if (!queues.has(row.queue)) continue;
    if (row.decided !== null)
      found.push({ at: row.decided, key: row.key, word: "Admitted", said: row.clusters });
    for (const one of row.past) {
      const isPreempted = one.reason.startsWith("Preempted");
      const word = isPreempted ? "Preempted" : row.finished === one.to ? "Finished" : "Left";
      found.push({
        at: one.to,
        key: row.key,
        word,
        said: isPreempted ? one.clusters.join(", ") : codeWords(one.reason),
      });
    }
  }
  return found
    .sort((one, other) => other.at - one.at || (one.key < other.key ? -1 : 1))
    .slice(0, most);
}

// Limits, as the queue says them.

export interface Limits {
  /** What it owns and what it may borrow; null: as much as there is. */
  most: number | null;
  /** What it may lend; null: all. */
  lending: number | null;
}

/** By flavor and resource. */
export function limitsOf(queue: Queue | null): Map<string, Limits> {
  const found = new Map<string, Limits>();
  for (const group of queue?.spec?.resourceGroups ?? [])
    for (const flavor of group.flavors ?? [])
      for (const quota of flavor.quotas ?? []) {
        const isLimited = quota.borrowingLimit !== undefined && quota.borrowingLimit !== null;
        found.set(`${flavor.name} ${quota.resource}`, {
          most: isLimited ? amountOf(quota.nominal) + amountOf(quota.borrowingLimit) : null,
          lending:
            quota.lendingLimit === undefined || quota.lendingLimit === null
              ? null
              : amountOf(quota.lendingLimit),
        });
      }
  return found;
}

/** What a queue may have at most of one flavor; null: as much as there is. */
export function limitOf(queue: Queue, flavor: string, resource: string): number | null {
  return limitsOf(queue).get(`${flavor} ${resource}`)?.most ?? null;
}
