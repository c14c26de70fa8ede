import { describe, expect, it } from "vitest";
import { allows, refusalOf, type Rule, wantedOf } from "./rights";

const OURS = "/apis/fairway.dev/v1alpha1";
const rule = (verbs: string, resources: string, more: Partial<Rule> = {}): Rule => ({
  verbs: verbs.split(" "),
  apiGroups: ["fairway.dev"],
  resources: resources.split(" "),
  ...more,
});

describe("what a path asks for", () => {
  it.each([
    ["a list over all namespaces", `${OURS}/workloads?limit=5`, "list workloads", ""],
    ["a list in one", `${OURS}/namespaces/team/workloads`, "list workloads", "team"],
    ["one object", `${OURS}/namespaces/team/workloads/a`, "get workloads", "team"],
    [
      "a question on it",
      `${OURS}/namespaces/team/workloads/a/explain`,
      "get workloads/explain",
      "team",
    ],
    ["a question on the fleet", `${OURS}/fleets/fleet/standing`, "get fleets/standing", ""],
    ["a kind of the core", "/api/v1/namespaces/team/events", "list events", "team"],
    ["all namespaces", "/api/v1/namespaces", "list namespaces", ""],
    ["one namespace", "/api/v1/namespaces/team", "get namespaces", "team"],
  ])("%s", (_, path, asked, namespace) => {
    const found = wantedOf(path)!;
    const whole = [found.resource, found.subresource].filter(Boolean).join("/");
    expect([`${found.verb} ${whole}`, found.namespace]).toEqual([asked, namespace]);
  });

  it("is nothing for the page's own files", () => {
    expect(wantedOf("/page/icon.svg")).toBeNull();
  });
});

describe("what rules allow", () => {
  const list = wantedOf(`${OURS}/workloads`)!;
  it.each([
    ["the very thing", rule("get list", "workloads"), true],
    ["everything", { verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, true],
    ["another verb", rule("get", "workloads"), false],
    ["another kind", rule("list", "queues"), false],
    ["another group", rule("list", "workloads", { apiGroups: ["batch"] }), false],
    ["one of a name", rule("list", "workloads", { resourceNames: ["a"] }), false],
    ["a question on it alone", rule("list get", "workloads/explain"), false],
  ])("%s", (_, held, expected) => {
    expect(allows([held], list)).toBe(expected);
  });

  it("lets a kind be read by the right to a part of it", () => {
    const held = [rule("get list watch", "clusterreports/nodes")];
    expect(allows(held, wantedOf(`${OURS}/clusterreports`)!)).toBe(true);
    expect(allows(held, wantedOf(`${OURS}/clusters`)!)).toBe(false);
  });

  it("knows a question by its own right", () => {
    const asked = wantedOf(`${OURS}/fleets/fleet/standing`)!;
    expect(allows([rule("get", "fleets")], asked)).toBe(false);
    expect(allows([rule("get", "fleets/standing")], asked)).toBe(true);
    expect(allows([rule("get", "*/standing")], asked)).toBe(true);
  });
});

describe("what is said instead", () => {
  it.each([
    [`${OURS}/workloads`, "You may not see workloads of all namespaces."],
    [`${OURS}/clusters`, "You may not see the clusters."],
    [`${OURS}/namespaces/team/workloads`, "You may not see workloads in team."],
    [`${OURS}/fleets/fleet/decisions`, "You may not see what was decided lately."],
  ])("%s", (path, said) => {
    expect(refusalOf(wantedOf(path)!)).toBe(said);
  });
});
