// What the page knows of the fleet, kept up to date while somebody is signed in and looks.
//
// Workloads may be many, so they are kept as short rows outside the reactive world; views see a new
// list a few times a second at most.

import { ask, hubNow, ours, told } from "../api/client";
import { follow, type State } from "../api/live";
import type { Cluster, Fleet as Settings, Flavor, List, Standing } from "../api/kinds";
import { keyOf, ROWS, type Row } from "./rows";

const SHOWN_EVERY = 200;
const SHOWN_EVERY_OF_MANY = 500;
const MANY = 10_000;
const FEW = 50;
const STANDING_EVERY = 2000;
const SETTINGS_EVERY = 60_000;
const PAGE_SIZES: [number, number] = [250, 5000];
export const ROWS_MAX = 200_000;

interface Link {
  state: State;
  fault: string;
}

class Fleet {
  rows = $state.raw<Row[]>([]);
  /** Rises whenever rows change. */
  revision = $state(0);
  loaded = $state(0);
  isComplete = $state(false);
  isCut = $state(false);
  clusters = $state.raw<Cluster[]>([]);
  flavors = $state.raw<Flavor[]>([]);
  standings = $state.raw<Standing[]>([]);
  standingFault = $state("");
  /** Whether the hub has said how queues stand, so that none means none. */
  isStandingKnown = $state(false);
  /** Of all prices. */
  currency = $state("USD");
  links = $state<Record<string, Link>>({});
  /** By the hub's clock, every second while somebody looks. */
  now = $state(hubNow());

  /** Keys of the rows that came, changed or went with this revision; not reactive by itself. */
  changes: ReadonlySet<string> = new Set();

  private touched = new Set<string>();
  private byKey = new Map<string, Row>();
  private stale: Set<string> | null = null;
  private stops: (() => void)[] = [];
  private timer: ReturnType<typeof setTimeout> | null = null;
  private standingTimer: ReturnType<typeof setTimeout> | null = null;
  private standingAt = 0;
  private settingsAt = 0;
  private asking: AbortController | null = null;
  private isDue = false;

  /** Whether what is shown may be out of date. */
  get isLost(): boolean {
    return Object.values(this.links).some((one) => one.state === "lost");
  }

  start(namespace: string): void {
    this.stop();
    const ticking = setInterval(() => {
      if (document.visibilityState === "visible") this.now = hubNow();
    }, 1000);
    this.stops.push(() => clearInterval(ticking));
    this.followWorkloads(namespace);
    this.stops.push(
      followAll<Cluster>("clusters", (objects) => (this.clusters = objects), this.link("clusters")),
    );
    void this.ask();
  }

  stop(): void {
    for (const stop of this.stops.splice(0)) stop();
    if (this.timer) clearTimeout(this.timer);
    if (this.standingTimer) clearTimeout(this.standingTimer);
    this.timer = this.standingTimer = null;
    this.asking?.abort();
    this.asking = null;
    this.isDue = false;
    this.settingsAt = 0;
    this.byKey.clear();
    this.changes = this.touched = new Set();
    this.stale = null;
    // Nothing of it is for whoever signs in next.
    this.rows = [];
    this.revision += 1;
    this.clusters = [];
    this.flavors = [];
    this.standings = [];
    this.standingFault = "";
    this.isStandingKnown = false;
    this.links = {};
    this.loaded = 0;
    this.isComplete = this.isCut = false;
  }

  get(key: string): Row | undefined {
    void this.revision;
    return this.byKey.get(key);
  }

  link(name: string): (state: State, fault?: unknown) => void {
    return (state, fault) => {
      this.links[name] = { state, fault: fault ? told(fault) : "" };
    };
  }

  unlink(name: string): void {
    delete this.links[name];
  }

  private followWorkloads(namespace: string): void {
    this.stops.push(
      follow<Row>({
        path: ours("workloads", namespace),
        pageSizes: PAGE_SIZES,
        form: ROWS,
        itemsMax: ROWS_MAX,
        began: () => {
          this.stale = new Set(this.byKey.keys());
          this.isComplete = false;
        },
        put: (rows) => {
          for (const row of rows) {
            this.byKey.set(row.key, row);
            this.stale?.delete(row.key);
            this.touched.add(row.key);
          }
          this.changed();
        },
        removed: (rows) => {
          for (const { key } of rows) this.drop(key);
          this.changed();
        },
        listed: (isCut) => {
          for (const key of this.stale ?? []) this.drop(key);
          this.stale = null;
          this.isCut = isCut;
          this.isComplete = true;
          this.changed();
        },
        state: this.link("workloads"),
      }),
    );
  }

  private drop(key: string): void {
    this.byKey.delete(key);
    this.touched.add(key);
  }

  private changed(): void {
    this.timer ??= setTimeout(
      () => {
        this.timer = null;
        this.changes = this.touched;
        this.touched = new Set();
        this.rows = [...this.byKey.values()];
        this.loaded = this.rows.length;
        this.revision += 1;
        this.askLater();
      },
      this.rows.length > MANY ? SHOWN_EVERY_OF_MANY : this.rows.length ? SHOWN_EVERY : 0,
    );
  }

  /** How queues stand is worked out when asked, so it is asked when something has changed. */
  askLater(): void {
    if (this.standingTimer || document.visibilityState !== "visible") return;
    if (this.asking) {
      this.isDue = true;
      return;
    }
    const wait = Math.max(0, this.standingAt + STANDING_EVERY - Date.now());
    this.standingTimer = setTimeout(() => {
      this.standingTimer = null;
      void this.ask();
    }, wait);
  }

  /** One question at a time, so that no late answer comes over a newer one. */
  private async ask(): Promise<void> {
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.standingAt = Date.now();
    this.isDue = false;
    if (this.standingAt - this.settingsAt > SETTINGS_EVERY) this.askSettings(signal);
    try {
      const { queues } = await ask<{ queues: Standing[] }>(
        ours("fleets", "", "fleet", "standing"),
        { signal },
      );
      if (signal.aborted) return;
      this.standings = queues;
      this.standingFault = "";
      this.isStandingKnown = true;
    } catch (fault) {
      if (signal.aborted) return;
      this.standingFault = told(fault);
    }
    this.asking = null;
    if (this.isDue) this.askLater();
  }

  /** What seldom changes; who may not read it does without. */
  private askSettings(signal: AbortSignal): void {
    this.settingsAt = Date.now();
    const read = <T>(path: string, show: (found: T) => void) =>
      ask<T>(path, { signal }).then(
        (found) => {
          if (!signal.aborted) show(found);
        },
        () => undefined,
      );
    void read<List<Flavor>>(ours("flavors"), ({ items }) => {
      // Nodes are told by their flavors: the same ones leave everything as it is.
      if (JSON.stringify(items) !== JSON.stringify(this.flavors)) this.flavors = items;
    });
    // As a list, since a fleet without settings is no fault.
    void read<List<Settings>>(
      ours("fleets"),
      ({ items }) => (this.currency = items[0]?.spec?.currency ?? "USD"),
    );
  }
}

export const fleet = new Fleet();

/** A small kind as a whole, kept up to date: one of ours by its plural, or any by its path. */
export function followAll<T extends { metadata?: { name?: string; namespace?: string } }>(
  plural: string,
  show: (objects: T[]) => void,
  state: (state: State, fault?: unknown) => void,
): () => void {
  let known = new Map<string, T>();
  let fresh: Map<string, T> | null = null;
  let waiting: ReturnType<typeof setTimeout> | null = null;
  const shown = () => show([...known.entries()].sort(byName).map(([, one]) => one));
  // Of many that change all the time, what changed meanwhile is shown together.
  const later = () => {
    if (known.size <= FEW) shown();
    else
      waiting ??= setTimeout(() => {
        waiting = null;
        shown();
      }, SHOWN_EVERY_OF_MANY);
  };
  const stop = follow<T>({
    path: plural.startsWith("/") ? plural : ours(plural),
    began: () => (fresh = new Map()),
    put: (objects) => {
      for (const one of objects) (fresh ?? known).set(keyOf(one), one);
      if (!fresh) later();
    },
    removed: (objects) => {
      for (const one of objects) known.delete(keyOf(one));
      later();
    },
    listed: () => {
      known = fresh ?? known;
      fresh = null;
      shown();
    },
    state,
  });
  return () => {
    stop();
    if (waiting) clearTimeout(waiting);
  };
}

function byName(one: [string, unknown], other: [string, unknown]): number {
  return one[0] < other[0] ? -1 : 1;
}
