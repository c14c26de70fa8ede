// A kind kept up to date: listed page by page, then watched from where the list was taken.
//
// A watch that ends is resumed at the last version seen; one that is too old is listed again. While
// nobody looks at the page the watch is closed, so that a tab in the background costs nothing and
// leaves the browser's few connections to the tabs in front.

import { ask, open, Refused, Unreachable } from "./client";
import type { List, Named } from "./kinds";
import { linesIn } from "./streams";

export type State = "idle" | "loading" | "live" | "lost" | "refused";

/** How objects are asked for, and where they stand in the answer. */
export interface Form<T> {
  accept: string;
  many: (page: unknown) => T[];
  one: (object: unknown) => T;
}

export interface Following<T> {
  path: string;
  /** How much the first page has, so that something is seen soon, and how much each further one. */
  pageSizes?: [number, number];
  itemsMax?: number;
  query?: Record<string, string>;
  /** Not told: whole objects. */
  form?: Form<T>;
  /** The list begins anew: what was known may be out of date. */
  began: () => void;
  /** Objects of the list or of the watch. */
  put: (objects: T[]) => void;
  removed: (objects: T[]) => void;
  /** The list is whole; what was not put since it began is gone. */
  listed: (isCut: boolean) => void;
  state: (state: State, fault?: unknown) => void;
}

interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T & Named & { code?: number; message?: string };
}

interface Page {
  metadata: { resourceVersion?: string; continue?: string };
}

const PAGE_SIZES: [number, number] = [500, 500];
const RETRY_FIRST = 500;
const RETRY_MOST = 10_000;
/** A watch that ends sooner was hardly one: the next is not opened at once. */
const BRIEF = 1000;

export function follow<T>(wanted: Following<T>): () => void {
  const { accept, many, one } = wanted.form ?? whole<T>();
  let ended = false;
  let version = ""; // of a whole list; empty until there is one
  let retry = RETRY_FIRST;
  let current: AbortController | null = null;
  let wake: () => void = () => undefined;

  const pause = (milliseconds: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const seen = () =>
    document.visibilityState === "visible"
      ? Promise.resolve()
      : new Promise<void>((resolve) => (wake = resolve));

  async function list(signal: AbortSignal): Promise<void> {
    wanted.state("loading");
    wanted.began();
    let more: string | undefined;
    let count = 0;
    let isCut = false;
    let taken = "";
    do {
      const limit = (wanted.pageSizes ?? PAGE_SIZES)[count ? 1 : 0];
      const page: Page = await ask(wanted.path, {
        signal,
        accept,
        query: { ...wanted.query, limit, continue: more },
      });
      const items = many(page);
      taken = page.metadata.resourceVersion ?? "";
      count += items.length;
      wanted.put(items);
      more = page.metadata.continue || undefined;
      isCut = more !== undefined && count >= (wanted.itemsMax ?? Infinity);
    } while (more && !isCut);
    version = taken;
    wanted.listed(isCut);
  }

  async function watch(signal: AbortSignal): Promise<void> {
    const response = await open(wanted.path, {
      signal,
      accept,
      query: {
        ...wanted.query,
        watch: 1,
        allowWatchBookmarks: true,
        resourceVersion: version,
      },
    });
    wanted.state("live");
    retry = RETRY_FIRST;
    if (!response.body) return;
    for await (const lines of linesIn(response.body)) take(lines.filter(Boolean));
  }

  /** Events that follow each other and do the same are told together, and all in their order. */
  function take(lines: string[]): void {
    let same: T[] = [];
    let goes = false;
    const tell = () => {
      if (same.length) (goes ? wanted.removed : wanted.put)(same);
      same = [];
    };
    for (const line of lines) {
      const event = JSON.parse(line) as WatchEvent<T>;
      if (event.type === "ERROR") {
        tell();
        throw new Refused(event.object.code ?? 500, event.object.message ?? "the watch ended");
      }
      version = event.object.metadata?.resourceVersion ?? version;
      if (event.type === "BOOKMARK") continue;
      if (goes !== (event.type === "DELETED")) {
        tell();
        goes = !goes;
      }
      same.push(one(event.object));
    }
    tell();
  }

  async function run(): Promise<void> {
    while (!ended) {
      await seen();
      if (ended) return;
      current = new AbortController();
      try {
        if (!version) await list(current.signal);
        const began = Date.now();
        await watch(current.signal);
        if (Date.now() - began < BRIEF) await pause(RETRY_FIRST);
      } catch (fault) {
        if (ended) return;
        if (current.signal.aborted) continue;
        if (fault instanceof Refused) {
          if (fault.code === 410 && version) {
            version = "";
            continue;
          }
          if (fault.code === 403 || fault.code === 404) {
            wanted.state("refused", fault);
            return;
          }
        }
        wanted.state("lost", fault instanceof Error ? fault : new Unreachable(String(fault)));
        await pause(retry * (0.75 + Math.random() / 2));
        retry = Math.min(retry * 2, RETRY_MOST);
      }
    }
  }

  const looked = () => {
    if (document.visibilityState === "visible") wake();
    else if (version) current?.abort();
  };
  const online = () => wake();
  document.addEventListener("visibilitychange", looked);
  window.addEventListener("online", online);
  void run();
  return () => {
    ended = true;
    document.removeEventListener("visibilitychange", looked);
    window.removeEventListener("online", online);
    current?.abort();
    wake();
  };
}

function whole<T>(): Form<T> {
  return {
    accept: "application/json",
    many: (page) => (page as List<T>).items,
    one: (object) => object as T,
  };
}
