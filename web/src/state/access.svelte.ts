// What this person may see: told by the hub when they sign in, and asked once for each namespace.

import { ask, guardBy, ours } from "../api/client";
import { allows, refusalOf, type Rule, wantedOf } from "./rights";

interface Access {
  all: boolean;
  namespaces: string[];
  rules: Rule[];
}

interface Review {
  status: { resourceRules?: Rule[]; incomplete?: boolean };
}

class Seen {
  /** Whether the workloads of every namespace are theirs to see. */
  isAll = $state(true);
  namespaces = $state.raw<string[]>([]);
  private everywhere: Rule[] | null = null;
  private byNamespace = new Map<string, Promise<Rule[] | null>>();

  constructor() {
    guardBy((path) => this.refusal(path));
  }

  /** Learns what somebody may see who has just signed in. */
  async begin(): Promise<void> {
    this.everywhere = null;
    this.byNamespace.clear();
    try {
      const found = await ask<Access>(ours("fleets", "", "fleet", "access"));
      this.isAll = found.all;
      this.namespaces = found.namespaces;
      this.everywhere = found.rules;
    } catch {
      // A hub that does not tell is asked for everything, and refuses what it will.
      this.isAll = true;
      this.namespaces = [];
    }
  }

  /** Where somebody looks first: where they were, else into the first namespace of theirs. */
  home(before: string): string {
    if (this.isAll || this.namespaces.includes(before)) return before;
    return this.namespaces[0] ?? before;
  }

  /** Why a path need not even be asked for; empty: it may be. */
  private async refusal(path: string): Promise<string> {
    const wanted = wantedOf(path);
    if (!wanted || !this.everywhere || allows(this.everywhere, wanted)) return "";
    const within = wanted.namespace ? await this.within(wanted.namespace) : [];
    return within === null || allows(within, wanted) ? "" : refusalOf(wanted);
  }

  private within(namespace: string): Promise<Rule[] | null> {
    let found = this.byNamespace.get(namespace);
    if (!found) {
      found = ask<Review>("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        method: "POST",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectRulesReview",
          spec: { namespace },
        },
      }).then(
        (review) => (review.status.incomplete ? null : (review.status.resourceRules ?? [])),
        () => null,
      );
      this.byNamespace.set(namespace, found);
    }
    return found;
  }
}

export const access = new Seen();
