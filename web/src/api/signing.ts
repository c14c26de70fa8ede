// What the page asks of the hub around signing in. The way to the company's provider and back is by
// code and PKCE: the hub exchanges the code, so no token is ever part of an address.

import { Refused, refusal, Unreachable } from "./client";

export interface Settings {
  /** The company's provider, if people can sign in there. */
  oidc: { name: string } | null;
  /** The page is for looking only, whoever signs in. */
  readOnly: boolean;
}

export interface SignedIn {
  token: string;
  lastsSeconds: number;
  isRenewable: boolean;
  isLookOnly: boolean;
}

/** What a tab has to remember while its person is at the provider. */
export interface Began {
  state: string;
  nonce: string;
  verifier: string;
  hash: string;
}

/** With what somebody comes back from the provider. */
export type CameBack = { code: string; state: string } | { fault: string; state: string };

export async function settings(): Promise<Settings> {
  const response = await reached(
    fetch("/page/settings.json", { cache: "no-store", credentials: "omit" }),
  );
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as Settings;
}

export async function begin(hash: string): Promise<{ began: Began; location: string }> {
  const began = { state: word(), nonce: word(), verifier: word(), hash };
  const challenge = encoded(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(began.verifier)),
  );
  const { location } = await post<{ location: string }>("begin", {
    state: began.state,
    nonce: began.nonce,
    challenge,
  });
  return { began, location };
}

export function exchange(tab: string, code: string, began: Began): Promise<SignedIn> {
  return post("exchange", { tab, code, verifier: began.verifier, nonce: began.nonce });
}

export function renew(tab: string): Promise<SignedIn> {
  return post("renew", { tab });
}

export function end(tab: string): Promise<{ location: string | null }> {
  return post("end", { tab });
}

export function forLooking(token: string, tab: string): Promise<{ token: string }> {
  return post("look-only", { tab }, token);
}

/** What an address says of somebody who comes back; null for any other address. */
export function cameBack(search: string): CameBack | null {
  const query = new URLSearchParams(search);
  const state = query.get("state") ?? "";
  const code = query.get("code");
  const error = query.get("error");
  if (error) {
    const said = (query.get("error_description") ?? error).slice(0, 300);
    return { fault: error === "access_denied" ? `You were not let in: ${said}` : said, state };
  }
  return code ? { code, state } : null;
}

/** When to renew what still lasts: a minute before its end, or sooner if it lasts but minutes; never at once, so that nobody is asked in a circle. */
export function renewIn(lastsSeconds: number): number {
  return Math.max(lastsSeconds - Math.min(60, lastsSeconds / 4), 5);
}

/** A word that nobody guesses. */
export function word(): string {
  return encoded(crypto.getRandomValues(new Uint8Array(32)).buffer);
}

function encoded(bytes: ArrayBuffer): string {
  const text = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** Where a tab asks: a place of its own, so that the cookies of other tabs stay away. */
export async function placeOf(tab: string): Promise<string> {
  if (!tab) return "";
  const digest = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(tab)),
  );
  return `${Array.from(digest.slice(0, 8), (one) => one.toString(16).padStart(2, "0")).join("")}/`;
}

async function post<T>(
  what: string,
  body: { tab?: string; [field: string]: unknown },
  token = "",
): Promise<T> {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    Accept: "application/json",
  };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await reached(
    fetch(`/page/session/${await placeOf(body.tab ?? "")}${what}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      credentials: "same-origin", // what renews a sign-in is a cookie that no script reads
      cache: "no-store",
      redirect: "error",
    }),
  );
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

async function reached(asking: Promise<Response>): Promise<Response> {
  try {
    return await asking;
  } catch {
    throw new Unreachable("The hub does not answer.");
  }
}

/** Whether it may pass: nobody answered, or somebody on the way is away or busy. */
export function mayPass(fault: unknown): boolean {
  return (
    fault instanceof Unreachable ||
    (fault instanceof Refused && (fault.code >= 500 || fault.code === 429))
  );
}
