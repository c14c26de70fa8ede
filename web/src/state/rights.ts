// What one may read, by the rules that the hub says one holds.
//
// A request that would be refused is not sent: the page says at once what is not for this person,
// and neither the hub's log nor the browser's console fills with refusals. The hub decides all the
// same; what is not known here is asked there.

import { REFUSED } from "../words/refusals";

export interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

export interface Wanted {
  group: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
  verb: "get" | "list";
}

/** Of these kinds somebody may see a part of each object; the hub leaves out the rest. */
const PARTS: Record<string, string> = { clusterreports: "nodes" };

const QUESTIONS: Record<string, string> = {
  decisions: "what was decided lately",
  explain: "why a workload waits",
  history: "how the fleet stood before",
  log: "what pods wrote",
  pods: "the pods of a workload",
  snapshot: "the fleet as a whole",
  standing: "how queues stand",
  timeline: "which workloads had which GPUs",
  traffic: "how load is shared",
};

const SHARED: Record<string, string> = {
  clusterreports: "the nodes of clusters",
  clusters: "the clusters",
  costaccounts: "what use cost",
  flavors: "the flavors",
  fleets: "the settings of the fleet",
  queues: "the queues",
};

/** What a path asks for; null: nothing that rules speak of. */
export function wantedOf(path: string): Wanted | null {
  const parts = path.split("?")[0]!.split("/").filter(Boolean).map(decodeURIComponent);
  const group = parts[0] === "apis" ? (parts[1] ?? "") : "";
  const rest = parts.slice(parts[0] === "apis" ? 3 : parts[0] === "api" ? 2 : parts.length);
  if (!rest.length) return null;
  const isWithin = rest[0] === "namespaces" && rest.length > 2;
  const [resource = "", name = "", subresource = ""] = isWithin ? rest.slice(2) : rest;
  const namespace = isWithin ? rest[1]! : resource === "namespaces" ? name : "";
  return { group, resource, subresource, namespace, name, verb: name ? "get" : "list" };
}

export function allows(rules: Rule[], wanted: Wanted): boolean {
  const { resource, subresource } = wanted;
  const whole = subresource ? `${resource}/${subresource}` : resource;
  const names = [whole, "*", ...(subresource ? [`*/${subresource}`] : [])];
  const part = PARTS[resource];
  if (part && !subresource) names.push(`${resource}/${part}`);
  return rules.some(
    (rule) =>
      holds(rule.verbs, wanted.verb) &&
      holds(rule.apiGroups ?? [], wanted.group) &&
      names.some((one) => rule.resources?.includes(one)) &&
      (!rule.resourceNames?.length || rule.resourceNames.includes(wanted.name)),
  );
}

function holds(listed: string[], one: string): boolean {
  return listed.includes("*") || listed.includes(one);
}

/** What is not for this person, as a sentence. */
export function refusalOf(wanted: Wanted): string {
  const { resource, subresource, namespace } = wanted;
  const what = QUESTIONS[subresource] ?? SHARED[resource] ?? resource;
  const isWhole = subresource in QUESTIONS || resource in SHARED;
  return `${REFUSED} see ${what}${namespace ? ` in ${namespace}` : isWhole ? "" : " of all namespaces"}.`;
}
