// Who is signed in, and for what. The token lives in this tab alone and goes with it.

import { ask, lookOnly, Refused, speakWith, told, Unreachable } from "../api/client";
import { isLookingBy } from "../api/looking";
import {
  begin,
  cameBack,
  end,
  exchange,
  forLooking,
  mayPass,
  renew,
  renewIn,
  settings,
  word,
} from "../api/signing";
import type { Began, CameBack, Settings, SignedIn } from "../api/signing";
import { access } from "./access.svelte";

const TOKEN = "fairway.token";
const LASTING = "fairway.lasting"; // until when, of a sign-in by the provider
const TAB = "fairway.tab"; // what this tab alone knows, and without which nobody renews its sign-in
const BEGAN = "fairway.began";
const NAMESPACE = "fairway.namespace";
const LOOK_ONLY = "fairway.dev/look-only";
const AGAIN_SECONDS = 15;
const TIMER_MOST = 2 ** 31 - 1;

interface Review {
  status: { userInfo?: { username?: string; groups?: string[]; extra?: Record<string, string[]> } };
}
/** Until when, by the browser's own clock. */
interface Lasting {
  expiresAt: number;
  isRenewable: boolean;
}

class Session {
  user = $state("");
  groups = $state.raw<string[]>([]);
  isKnown = $state(false);
  isLookOnly = $state(false);
  fault = $state("");
  /** What the hub offers; null until it has said. */
  settings = $state.raw<Settings | null>(null);
  /** Empty: all namespaces, as far as one may look. */
  namespace = $state(sessionStorage.getItem(NAMESPACE) ?? "");
  private timer = 0;
  private renewing: Promise<boolean> | null = null;

  /** Goes on with the token of this tab, or with what somebody brings back from the provider. */
  async begin(): Promise<void> {
    const back = this.takeFromAddress();
    const token = sessionStorage.getItem(TOKEN);
    try {
      this.settings = await settings();
    } catch (fault) {
      this.fault = told(fault);
    }
    // An address that anybody may have made up ends no sign-in that there is.
    if (back && (!token || isOurs(back))) await this.finish(back);
    else if (token) await this.signIn(token);
    const lasting = this.lasting;
    if (this.user && lasting) this.plan(lasting);
    this.isKnown = true;
  }

  async signIn(given: string): Promise<void> {
    let token = given.trim();
    this.fault = "";
    // A token is one word of plain letters; anything else could not even be sent.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      this.fault = "That is not a token.";
      return;
    }
    try {
      this.settings ??= await settings();
      // What was typed is forgotten at once where nothing is to be changed.
      if (this.settings.readOnly) ({ token } = await forLooking(token, this.tab));
      speakWith(token, () => Promise.resolve(false));
      const review = await ask<Review>("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        method: "POST",
        body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
      });
      await access.begin();
      this.choose(access.home(this.namespace));
      const who = review.status.userInfo;
      this.take(token, LOOK_ONLY in (who?.extra ?? {}));
      this.groups = who?.groups ?? [];
      this.user = who?.username ?? "";
    } catch (fault) {
      if (fault instanceof Unreachable) this.fault = "The hub does not answer. Is it running?";
      else if (fault instanceof Refused && fault.code === 401) {
        this.forget();
        this.fault = "The hub does not know this token.";
      } else this.fault = told(fault);
    }
  }

  /** Goes to the company's provider; the page is left. */
  async goToProvider(): Promise<void> {
    this.fault = "";
    try {
      const { began, location: place } = await begin(location.hash);
      sessionStorage.setItem(BEGAN, JSON.stringify(began));
      sessionStorage.setItem(TAB, word());
      location.assign(place);
    } catch (fault) {
      this.fault = told(fault);
    }
  }

  /** From now on this tab only looks, until somebody signs in again. */
  async look(): Promise<void> {
    try {
      const { token } = await forLooking(sessionStorage.getItem(TOKEN) ?? "", this.tab);
      this.take(token, true);
    } catch (fault) {
      this.fault = told(fault);
    }
  }

  async signOut(): Promise<void> {
    const isByProvider = this.lasting !== null;
    const tab = this.tab;
    this.leave();
    if (!isByProvider) return;
    try {
      const { location: place } = await end(tab);
      if (place) location.assign(place);
    } catch {
      // This tab has forgotten everything; the provider may remember.
    }
  }

  choose(namespace: string): void {
    this.namespace = namespace;
    sessionStorage.setItem(NAMESPACE, namespace);
  }

  private get tab(): string {
    return sessionStorage.getItem(TAB) ?? "";
  }

  private get lasting(): Lasting | null {
    return JSON.parse(sessionStorage.getItem(LASTING) ?? "null") as Lasting | null;
  }

  /** A code leaves the address before anything else happens; where one was comes back. */
  private takeFromAddress(): { back: CameBack; began: Began | null } | null {
    const back = cameBack(location.search);
    if (!back) return null;
    const began = JSON.parse(sessionStorage.getItem(BEGAN) ?? "null") as Began | null;
    sessionStorage.removeItem(BEGAN);
    history.replaceState(null, "", `${location.pathname}${began?.hash ?? location.hash}`);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    return { back, began };
  }

  private async finish({ back, began }: { back: CameBack; began: Began | null }): Promise<void> {
    const name = this.settings?.oidc?.name ?? "the provider";
    if (!began || !isOurs({ back, began })) {
      this.fault = "This sign-in was not begun in this tab; sign in again.";
    } else if ("fault" in back) {
      this.fault = `${name} says: ${back.fault}`;
    } else {
      try {
        const found = await exchange(this.tab, back.code, began);
        await this.signIn(found.token);
        if (this.user) this.last(found);
      } catch (fault) {
        this.fault = `You are not signed in: ${told(fault)}`;
      }
    }
    if (!this.user) this.forget();
  }

  private take(token: string, isLookOnly: boolean): void {
    sessionStorage.setItem(TOKEN, token);
    this.isLookOnly = isLookOnly;
    lookOnly(isLookOnly);
    speakWith(token, () => this.renewed());
  }

  private last({ lastsSeconds, isRenewable }: SignedIn): void {
    const lasting: Lasting = { expiresAt: Date.now() / 1000 + lastsSeconds, isRenewable };
    sessionStorage.setItem(LASTING, JSON.stringify(lasting));
    this.plan(lasting);
  }

  private plan({ expiresAt, isRenewable }: Lasting): void {
    const lasts = expiresAt - Date.now() / 1000;
    this.wake(isRenewable ? renewIn(lasts) : lasts);
  }

  private wake(seconds: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(
      () => void this.renewed(),
      Math.min(Math.max(seconds, 0) * 1000, TIMER_MOST),
    );
  }

  /** A new token before or after the old one has expired; false: there is none. */
  private renewed(): Promise<boolean> {
    this.renewing ??= this.renew().finally(() => (this.renewing = null));
    return this.renewing;
  }

  private async renew(): Promise<boolean> {
    const lasting = this.lasting;
    if (!lasting?.isRenewable) {
      this.leave(
        lasting ? "Your sign-in has ended; sign in again." : "Your token is not valid any more.",
      );
      return false;
    }
    const tab = this.tab;
    try {
      // A tab that was duplicated has the same word: one at a time, since what renews is used once.
      const found = await navigator.locks.request(`fairway.${tab}`, () => renew(tab));
      this.take(found.token, found.isLookOnly);
      this.last(found);
      return true;
    } catch (fault) {
      if (mayPass(fault) && Date.now() / 1000 < lasting.expiresAt) this.wake(AGAIN_SECONDS);
      else this.leave(`Your sign-in has ended: ${told(fault)}`);
      return false;
    }
  }

  private leave(why = ""): void {
    this.forget();
    // Whoever comes next learns not even where this one looked.
    sessionStorage.removeItem(NAMESPACE);
    this.namespace = "";
    this.user = "";
    this.groups = [];
    this.fault = why;
  }

  private forget(): void {
    clearTimeout(this.timer);
    for (const key of [TOKEN, LASTING, TAB]) sessionStorage.removeItem(key);
    rights.clear();
    speakWith("", () => Promise.resolve(false));
    this.isLookOnly = false;
    lookOnly(false);
  }
}

/** Whether somebody comes back from where this tab sent them. */
function isOurs({ back, began }: { back: CameBack; began: Began | null }): boolean {
  return began !== null && back.state === began.state;
}

export const session = new Session();

/** Whether one may do something; asked once for each question. */
const rights = new Map<string, Promise<boolean>>();

export function may(
  verb: string,
  resource: string,
  namespace = "",
  subresource = "",
  group = "fairway.dev",
): Promise<boolean> {
  if (session.isLookOnly && !isLookingBy(verb, resource, subresource))
    return Promise.resolve(false);
  const key = [session.user, verb, group, resource, namespace, subresource].join(" ");
  let found = rights.get(key);
  if (!found) {
    const attributes = { verb, group, resource, namespace, subresource };
    found = ask<{ status: { allowed: boolean } }>(
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      {
        method: "POST",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: attributes },
        },
      },
    ).then((review) => review.status.allowed);
    found.catch(() => rights.delete(key));
    rights.set(key, found);
  }
  return found;
}
