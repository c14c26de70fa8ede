import { expect, test } from "vitest";
import type { Pod, Workload } from "../api/kinds";
import { gpusOf, sorted, stateOf } from "./pods";

const pod = (name: string, phase = "Ready"): Pod => ({
  cluster: "east",
  name,
  podSet: "worker",
  attempt: 1,
  phase,
});

test("pods in trouble come first, the others stay in order", () => {
  const found = sorted([
    pod("w-0"),
    pod("w-1", "Succeeded"),
    pod("w-2", "Failed"),
    pod("w-3", "Bound"),
    pod("w-4"),
  ]);
  expect(found.map((one) => one.name)).toEqual(["w-2", "w-3", "w-0", "w-1", "w-4"]);
  expect(stateOf(found[1]!)).toBe("Starting");
});

test("what a pod holds is told by the claim of its cluster", () => {
  const claim = {
    placements: [
      {
        cluster: "east",
        podSets: [{ name: "worker", count: 2, requests: { "nvidia.com/gpu": 8 } }],
      },
    ],
  };
  const workload = { spec: {}, status: { claim } } as unknown as Workload;
  expect(gpusOf(pod("a"), workload)).toBe(8);
  expect(gpusOf({ ...pod("a"), cluster: "west" }, workload)).toBeNull();
});
