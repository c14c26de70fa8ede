import { describe, expect, it } from "vitest";
import { keyOfMention, saidOfMention } from "./mentions";

describe("a workload that another one tells of", () => {
  it("has a name in the same namespace", () => {
    const one = { namespace: "team", name: "train", uid: "1", queue: "research", priority: 5 };
    expect([keyOfMention(one), saidOfMention(one)]).toEqual(["team/train", "train"]);
  });
  it("has none in another, but a queue and a priority", () => {
    const one = { uid: "1", queue: "product", priority: 100 };
    expect([keyOfMention(one), saidOfMention(one)]).toEqual([
      "",
      "a workload of another team in queue product, priority 100",
    ]);
  });
  it("may have nothing at all", () => {
    expect([keyOfMention(undefined), saidOfMention({ uid: "1" })]).toEqual([
      "",
      "a workload of another team",
    ]);
  });
});
