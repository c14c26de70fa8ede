// Amounts that are missing, and codes, as people say them.

import { amountOf, isAccelerator, ofResource, plural } from "./amounts";

/** `8 GPUs`, `4 CPUs`, `32 GiB of memory`. */
export function amountWords(resource: string, quantity: unknown): string {
  const amount = amountOf(quantity);
  if (isAccelerator(resource))
    return plural(amount, /gpu/i.test(resource) ? "GPU" : (resource.split("/")[1] ?? resource));
  if (resource === "cpu") return plural(amount, "CPU");
  if (resource === "pods") return plural(amount, "pod");
  return `${ofResource(resource, amount)} of ${resource}`;
}

/** `8 GPUs and 4 CPUs short`; empty where nothing is said. */
export function shortWords(short: Record<string, string> | undefined): string {
  const parts = Object.entries(short ?? {}).map(([resource, quantity]) =>
    amountWords(resource, quantity),
  );
  return parts.length ? `${listWords(parts)} short` : "";
}

/** `a, b and c`. */
export function listWords(parts: string[]): string {
  return parts.length > 1
    ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`
    : (parts[0] ?? "");
}

/** `DoesNotFit` as `does not fit`. */
export function codeWords(code: string): string {
  return code.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
