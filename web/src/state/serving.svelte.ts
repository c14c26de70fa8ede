// What belongs to services, followed only while somebody looks at them. Autoscalers and rollouts are
// watched; what seldom changes (policies, queues, the fleet) is read, so that connections stay free.

import { ask, ours, pathIn, SERVING } from "../api/client";
import type {
  Fleet,
  FleetAutoscaler,
  List,
  Named,
  PlacementPolicy,
  Queue,
  Rollout,
} from "../api/kinds";
import { fleet, followAll } from "./fleet.svelte";
import { policyOf } from "./preferences";
import { keyOf, type Row } from "./rows";
import { may } from "./session.svelte";

const READ_EVERY = 60_000;
export const GROUP = "serving.fairway.dev";

class Serving {
  autoscalers = $state.raw<FleetAutoscaler[]>([]);
  rollouts = $state.raw<Rollout[]>([]);
  fleet = $state.raw<Fleet | null>(null);
  private policies = $state.raw(new Map<string, PlacementPolicy>());
  private queues = $state.raw(new Map<string, Queue>());

  /** Until the function that it gives back is called. */
  start(namespace: string): () => void {
    const stops: (() => void)[] = [];
    const aborting = new AbortController();
    const { signal } = aborting;
    const followed = async <T extends Named>(plural: string, show: (found: T[]) => void) => {
      if (!(await allowed(plural, namespace, GROUP)) || signal.aborted) return;
      stops.push(followAll<T>(pathIn(SERVING, plural, namespace), show, fleet.link(plural)), () =>
        fleet.unlink(plural),
      );
    };
    void followed<FleetAutoscaler>("fleetautoscalers", (found) => (this.autoscalers = found));
    void followed<Rollout>("rollouts", (found) => (this.rollouts = found));
    void this.read(signal);
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void this.read(signal);
    }, READ_EVERY);
    return () => {
      aborting.abort();
      for (const stop of stops) stop();
      clearInterval(timer);
      this.autoscalers = [];
      this.rollouts = [];
      this.policies = new Map();
      this.queues = new Map();
      this.fleet = null;
    };
  }

  policyOf(row: Row): PlacementPolicy | null {
    return policyOf(row.service?.policy ?? "", row.namespace, row.queue, {
      policies: this.policies,
      queues: this.queues,
      fleet: this.fleet,
    });
  }

  /** Whoever may not read one of these sees services without it. */
  private async read(signal: AbortSignal): Promise<void> {
    const all = async <T extends Named>(plural: string, show: (found: T[]) => void) => {
      if (await allowed(plural)) show((await ask<List<T>>(ours(plural), { signal })).items);
    };
    await Promise.allSettled([
      all<PlacementPolicy>(
        "placementpolicies",
        (found) => (this.policies = new Map(found.map((one) => [keyOf(one), one]))),
      ),
      all<Queue>(
        "queues",
        (found) => (this.queues = new Map(found.map((one) => [one.metadata?.name ?? "", one]))),
      ),
      all<Fleet>("fleets", (found) => (this.fleet = found[0] ?? null)),
    ]);
  }
}

async function allowed(plural: string, namespace = "", group = "fairway.dev"): Promise<boolean> {
  return may("list", plural, namespace, "", group).catch(() => false);
}

export const serving = new Serving();
