// Accounts of the days that are looked at: each is read once, and those that still grow every minute;
// more often until there is one, since a hub that has just begun writes its first one soon.

import { ask, COSTS, hubNow, told } from "../api/client";
import type { CostAccount, List } from "../api/kinds";
import { dayOf } from "./costs";
import { may, session } from "./session.svelte";

const READ_EVERY = 60_000;
const READ_AGAIN = 5_000; // while there is none
const AT_ONCE = 3; // a browser has few connections, and watches hold some of them

class Accounts {
  found = $state.raw<CostAccount[]>([]);
  fault = $state("");
  isRead = $state(false);
  private kept = new Map<string, CostAccount | null>();
  private readBy = "";

  /** Reads these days, and the last ones again, until the function that it gives back is called. */
  follow(days: string[]): () => void {
    const aborting = new AbortController();
    this.isRead = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readOn = async () => {
      if (document.visibilityState === "visible" || !this.isRead)
        await this.read(days, aborting.signal);
      const isEmpty = !this.found.length && !this.fault;
      if (!aborting.signal.aborted)
        timer = setTimeout(() => void readOn(), isEmpty ? READ_AGAIN : READ_EVERY);
    };
    void readOn();
    return () => {
      aborting.abort();
      clearTimeout(timer);
    };
  }

  private async read(days: string[], signal: AbortSignal): Promise<void> {
    if (this.readBy !== session.user) {
      // What another person saw in this tab is not for this one.
      this.kept.clear();
      this.found = [];
      this.fault = "";
    }
    this.readBy = session.user;
    // A day is over once the next has begun; what ended just before midnight is written shortly after.
    const growing = dayOf(hubNow() - 600_000);
    const wanted = days.filter((day) => !this.kept.has(day) || day >= growing);
    try {
      if (!(await may("list", "costaccounts", "", "", "costs.fairway.dev")))
        throw new Error(
          "You may not see what was used: that needs the right to list costaccounts.",
        );
      for (let at = 0; at < wanted.length; at += AT_ONCE)
        await Promise.all(
          wanted
            .slice(at, at + AT_ONCE)
            .map(async (day) => this.kept.set(day, await accountOf(day, signal))),
        );
      if (signal.aborted) return;
      this.found = days.flatMap((day) => this.kept.get(day) ?? []);
      this.fault = "";
    } catch (problem) {
      if (signal.aborted) return;
      this.fault = told(problem);
    }
    this.isRead = true;
  }
}

/** Asked for as a list, since a day without an account is no fault. */
async function accountOf(day: string, signal: AbortSignal): Promise<CostAccount | null> {
  const { items } = await ask<List<CostAccount>>(`${COSTS}/costaccounts`, {
    signal,
    query: { fieldSelector: `metadata.name=${day}` },
  });
  return items[0] ?? null;
}

export const accounts = new Accounts();
