import { expect, test } from "vitest";
import { isLooking, isLookingBy } from "./looking";

const OURS = "/apis/fairway.dev/v1alpha1";

test.each([
  ["GET", `${OURS}/workloads`, true],
  ["POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true],
  ["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true],
  ["POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", true],
  ["POST", `${OURS}/fleets/fleet/whatif`, true],
  ["POST", `${OURS}/namespaces/a/workloads`, false],
  ["POST", `${OURS}/namespaces/a/workloads/fleets/fleet/whatif`, false],
  ["PATCH", `${OURS}/namespaces/a/workloads/b`, false],
  ["PUT", `${OURS}/fleets/fleet`, false],
  ["DELETE", `${OURS}/namespaces/a/workloads/b`, false],
  ["PATCH", `${OURS}/fleets/fleet/whatif`, false],
])("%s %s only looks: %s", (method, path, is) => {
  expect(isLooking(method, path)).toBe(is);
});

test("asking what if is looking, making a workload is not", () => {
  expect(isLookingBy("list", "workloads", "")).toBe(true);
  expect(isLookingBy("create", "fleets", "whatif")).toBe(true);
  expect(isLookingBy("create", "workloads", "")).toBe(false);
  expect(isLookingBy("patch", "workloads", "")).toBe(false);
  expect(isLookingBy("get", "works", "")).toBe(false);
});
