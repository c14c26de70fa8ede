// Calls to the hub. The token travels in a header only: no address, no cookie, no log has it.

import { isRefusal, REFUSED } from "../words/refusals";
import { isLooking } from "./looking";

export const OURS = "/apis/fairway.dev/v1alpha1";
export const SERVING = "/apis/serving.fairway.dev/v1alpha1";
export const COSTS = "/apis/costs.fairway.dev/v1alpha1";

export class Refused extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly reason = "",
  ) {
    super(message);
  }
}

/** The hub cannot be reached at all, as opposed to one that answers with a refusal. */
export class Unreachable extends Error {}

let token = "";
let looksOnly = false;
/** What to do when the token is not taken any more: true if there is a new one. */
let whenRefused: () => Promise<boolean> = () => Promise.resolve(false);

export function speakWith(given: string, refused: () => Promise<boolean>): void {
  token = given;
  whenRefused = refused;
}

/** From now on nothing is sent that changes anything; the hub would refuse it as well. */
export function lookOnly(is: boolean): void {
  looksOnly = is;
}

/** Milliseconds that the hub's clock is ahead of ours. */
let ahead = 0;
/** Less is the way here, and what a date in whole seconds leaves out. */
const AHEAD_LEAST = 10_000;

/** The time by the hub's clock: whatever it tells of moments is compared with this. */
export function hubNow(): number {
  return Date.now() + ahead;
}

function compare(date: string | null): void {
  const by = date ? Date.parse(date) - Date.now() : NaN;
  if (!Number.isNaN(by)) ahead = Math.abs(by) < AHEAD_LEAST ? 0 : by;
}

let guard: (path: string) => Promise<string> = () => Promise.resolve("");

/** Asks, before anything is read, why it need not be: what is known to be refused is not sent. */
export function guardBy(asked: (path: string) => Promise<string>): void {
  guard = asked;
}

export interface Asking {
  method?: string;
  body?: unknown;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal;
  query?: Record<string, string | number | boolean | undefined>;
}

export async function open(path: string, asking: Asking = {}): Promise<Response> {
  const refused = (asking.method ?? "GET") === "GET" ? await guard(path) : "";
  if (refused) throw new Refused(403, refused, "Forbidden");
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asking.query ?? {}))
    if (value !== undefined && value !== "") query.set(key, String(value));
  const address = query.size ? `${path}?${query}` : path;
  if (looksOnly && !isLooking(asking.method ?? "GET", path))
    throw new Refused(403, "this tab is for looking only, and changes nothing");
  const response = await sentInTurn(address, asking);
  if (response.status !== 401) return answered(response);
  return answered((await whenRefused()) ? await sentInTurn(address, asking) : response);
}

const TRIES_MOST = 5;
const WAIT_SECONDS_MOST = 30;

/** How long a hub that is asked too much wants to be left alone, in milliseconds. */
export function waitOf(response: Response): number {
  const seconds = Number(response.headers.get("Retry-After") ?? NaN);
  return 1000 * (seconds > 0 ? Math.min(seconds, WAIT_SECONDS_MOST) : 1);
}

/** Sends again what the hub did not look at, after the time that it names. */
async function sentInTurn(address: string, asking: Asking): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await sent(address, asking);
    if (response.status !== 429 || tries >= TRIES_MOST) return response;
    await new Promise((resolve) => setTimeout(resolve, waitOf(response)));
    asking.signal?.throwIfAborted();
  }
}

async function sent(address: string, asking: Asking): Promise<Response> {
  const headers: Record<string, string> = { Accept: asking.accept ?? "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (asking.body !== undefined) headers["Content-Type"] = asking.contentType ?? "application/json";
  try {
    const response = await fetch(address, {
      method: asking.method ?? "GET",
      headers,
      body: asking.body === undefined ? undefined : JSON.stringify(asking.body),
      signal: asking.signal,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
    compare(response.headers.get("Date"));
    return response;
  } catch (fault) {
    if (asking.signal?.aborted) throw fault;
    throw new Unreachable("The hub does not answer.");
  }
}

async function answered(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw await refusal(response);
}

export async function ask<T>(path: string, asking: Asking = {}): Promise<T> {
  const response = await open(path, asking);
  const found = (await response.json()) as T;
  asking.signal?.throwIfAborted();
  return found;
}

export async function refusal(response: Response): Promise<Refused> {
  try {
    const status = (await response.json()) as { message?: string; reason?: string };
    return new Refused(response.status, status.message || response.statusText, status.reason);
  } catch {
    return new Refused(response.status, response.statusText || `HTTP ${response.status}`);
  }
}

export function patch<T>(path: string, body: unknown): Promise<T> {
  return ask<T>(path, { method: "PATCH", body, contentType: "application/merge-patch+json" });
}

/** The path of a kind of ours, in a namespace or over all. */
export function ours(plural: string, namespace = "", name = "", more = ""): string {
  return pathIn(OURS, plural, namespace, name, more);
}

/** The path of a kind of any group. */
export function pathIn(root: string, plural: string, namespace = "", name = "", more = ""): string {
  const within = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  const one = name ? `/${encodeURIComponent(name)}` : "";
  return `${root}${within}/${plural}${one}${more ? `/${more}` : ""}`;
}

/** A sentence for a person, whatever went wrong. */
export function told(fault: unknown): string {
  if (fault instanceof Refused && fault.code === 403 && !isRefusal(fault.message))
    return `${REFUSED} see or do this: ${fault.message}`;
  return fault instanceof Error ? fault.message : String(fault);
}
