// When those at the head of queues are expected to start, kept up to date while somebody looks.

import { ask, ours, Refused } from "../api/client";
import type { Explanation } from "../api/kinds";

const AGAIN = 15_000;

/** Asks for them one after another, until the function that it gives back is called; null: it is not told. */
export function watchHeads(
  keys: string[],
  show: (key: string, found: Explanation | null) => void,
): () => void {
  const aborting = new AbortController();
  const { signal } = aborting;
  const refused = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function read(): Promise<void> {
    for (const key of keys) {
      // Who is named without a namespace is of another team.
      if (!key.includes("/") || refused.has(key)) continue;
      const [namespace = "", name = ""] = key.split("/");
      try {
        show(
          key,
          await ask<Explanation>(ours("workloads", namespace, name, "explain"), { signal }),
        );
      } catch (fault) {
        if (signal.aborted) return;
        if (!(fault instanceof Refused)) continue;
        refused.add(key);
        show(key, null);
      }
    }
    timer = setTimeout(again, AGAIN);
  }
  function again(): void {
    if (document.visibilityState === "visible") void read();
    else timer = setTimeout(again, AGAIN);
  }
  void read();
  return () => {
    aborting.abort();
    clearTimeout(timer);
  };
}
