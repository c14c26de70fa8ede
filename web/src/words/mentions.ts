// A workload that another one tells of: by name in the same namespace, else without.

export interface Mention {
  namespace?: string;
  name?: string;
  uid?: string;
  queue?: string;
  priority?: number | null;
}

/** `namespace/name`; empty where there is no name, and hence nothing to open. */
export function keyOfMention(one: Mention | null | undefined): string {
  return one?.name ? `${one.namespace ?? ""}/${one.name}` : "";
}

/** Who it is, or how urgent: `a workload of another team in queue product, priority 100`. */
export function saidOfMention(one: Mention | null | undefined): string {
  if (one?.name) return one.name;
  const queue = one?.queue ? ` in queue ${one.queue}` : "";
  const priority =
    one?.priority === undefined || one.priority === null ? "" : `, priority ${one.priority}`;
  return `a workload of another team${queue}${priority}`;
}
