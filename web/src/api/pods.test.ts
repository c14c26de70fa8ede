import { expect, test } from "vitest";
import type { Pod } from "./kinds";
import { withPage } from "./pods";

const pod = (name: string): Pod => ({
  cluster: "east",
  name,
  podSet: "worker",
  attempt: 1,
  phase: "Ready",
});

test("a pod on two pages is there once", () => {
  expect(
    withPage([pod("a")], { clusters: [], pods: [pod("a"), pod("b")] }).map((one) => one.name),
  ).toEqual(["a", "b"]);
});
