import type { Component } from "svelte";
import { fetched } from "./state/chunks";

interface View {
  title: string;
  load: () => Promise<{ default: Component }>;
}

/** The views in the order of the header. */
export const VIEWS: Record<string, View> = {
  fleet: { title: "Fleet", load: () => import("./views/Fleet.svelte") },
  queues: { title: "Queues", load: () => import("./views/Queues.svelte") },
  workloads: { title: "Workloads", load: () => import("./views/Workloads.svelte") },
  timeline: { title: "Timeline", load: () => import("./views/Timeline.svelte") },
  services: { title: "Services", load: () => import("./views/Services.svelte") },
  whatif: { title: "What if", load: () => import("./views/WhatIf.svelte") },
  cost: { title: "Cost", load: () => import("./views/Cost.svelte") },
};
// Where most people go next, whatever they look at.
const LIKELY = ["workloads", "fleet"];

/** The views that have been fetched. */
class Views {
  private known = $state.raw<Record<string, Component>>({});
  private failed = $state.raw<Record<string, boolean>>({});

  of(name: string): Component | undefined {
    return this.known[name];
  }

  hasFailed(name: string): boolean {
    return this.failed[name] ?? false;
  }

  async show(name: string): Promise<void> {
    try {
      await fetched(() => this.fetch(name));
    } catch {
      this.failed = { ...this.failed, [name]: true };
    }
  }

  /** The rest, one after the other while nothing else is done: an open page outlives its hub. */
  async fetchAhead(): Promise<void> {
    for (const name of new Set([...LIKELY, ...Object.keys(VIEWS)])) {
      await idle();
      await this.fetch(name).catch(() => undefined); // Whoever goes there tries again, and is told.
    }
  }

  private async fetch(name: string): Promise<void> {
    if (this.known[name]) return;
    const { default: view } = await VIEWS[name]!.load();
    this.known = { ...this.known, [name]: view };
  }
}

export const views = new Views();

function idle(): Promise<void> {
  return new Promise((go) => {
    if ("requestIdleCallback" in window) requestIdleCallback(() => go());
    else setTimeout(go, 200);
  });
}
