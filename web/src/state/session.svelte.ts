// Who is signed in. The token lives in this tab alone and goes with it.

import { ask, Refused, speakWith, told, Unreachable } from "../api/client";

const KEY = "fairway.token";

interface Review {
  status: { userInfo?: { username?: string; groups?: string[] } };
}

class Session {
  user = $state("");
  groups = $state.raw<string[]>([]);
  isKnown = $state(false);
  fault = $state("");
  /** Empty: all namespaces, as far as one may look. */
  namespace = $state(sessionStorage.getItem("fairway.namespace") ?? "");

  constructor() {
    speakWith(sessionStorage.getItem(KEY) ?? "", () => this.signOut("Your token is not valid any more."));
  }

  /** Goes on with the token of this tab, if there is one. */
  async begin(): Promise<void> {
    const token = sessionStorage.getItem(KEY);
    if (token) await this.signIn(token);
    this.isKnown = true;
  }

  async signIn(given: string): Promise<void> {
    const token = given.trim();
    this.fault = "";
    // A token is one word of plain letters; anything else could not even be sent.
    if (!/^[\x21-\x7e]+$/.test(token)) {
      this.fault = "That is not a token.";
      return;
    }
    speakWith(token, () => undefined);
    try {
      const review = await ask<Review>("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        method: "POST",
        body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
      });
      sessionStorage.setItem(KEY, token);
      this.user = review.status.userInfo?.username ?? "";
      this.groups = review.status.userInfo?.groups ?? [];
      speakWith(token, () => this.signOut("Your token is not valid any more."));
    } catch (fault) {
      if (fault instanceof Unreachable) this.fault = "The hub does not answer. Is it running?";
      else if (fault instanceof Refused && fault.code === 401) {
        this.fault = "The hub does not know this token.";
        sessionStorage.removeItem(KEY);
      } else this.fault = told(fault);
    }
  }

  signOut(why = ""): void {
    sessionStorage.removeItem(KEY);
    speakWith("", () => undefined);
    this.user = "";
    this.groups = [];
    this.fault = why;
  }

  choose(namespace: string): void {
    this.namespace = namespace;
    sessionStorage.setItem("fairway.namespace", namespace);
  }
}

export const session = new Session();

/** Whether one may do something; asked once for each question. */
const rights = new Map<string, Promise<boolean>>();

export function may(verb: string, resource: string, namespace = "", subresource = "", group = "fairway.dev"): Promise<boolean> {
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
