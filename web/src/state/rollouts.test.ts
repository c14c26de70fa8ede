import { expect, test } from "vitest";
import type { Rollout } from "../api/kinds";
import {
  approved,
  earlier,
  isApprovable,
  isResumable,
  keyOfRollout,
  restored,
  resumed,
  revisionName,
  saidOfRollout,
} from "./rollouts";

function rollout(status: object, spec: object = {}): Rollout {
  return {
    metadata: { name: "chat", namespace: "team" },
    spec: { workload: { kind: "Deployment", name: "chat" }, paused: false, ...spec },
    status,
  } as unknown as Rollout;
}

test("a rollout of a native object is that of the workload which stands for it", () => {
  expect(keyOfRollout(rollout({}))).toBe("team/deployment-chat");
  expect(keyOfRollout(rollout({}, { workload: { kind: "Workload", name: "chat" } }))).toBe(
    "team/chat",
  );
});

test.each([
  [
    { phase: "AwaitingApproval", revision: 3, currentBatch: 1, batches: 4 },
    "revision 3, batch 2 of 4, waiting for approval",
  ],
  [{ phase: "Completed", revision: 3, currentBatch: 3, batches: 4 }, "revision 3, , rolled out"],
  [{ phase: "RolledBack", revision: 3, stableRevision: 2 }, "revision 2, , rolled back"],
  [
    { phase: "Paused", revision: 3, batches: 2, failure: "GateFailed" },
    "revision 3, batch 1 of 2, stopped",
  ],
])("%o is said as %s", (status, words) => {
  const said = saidOfRollout(rollout(status));
  expect(`${said.revision}, ${said.batch}, ${said.word}`).toBe(words);
});

test("an approval names the revision and the batch, so that it is for no other", () => {
  const one = rollout({ phase: "AwaitingApproval", revision: 3, currentBatch: 1 });
  expect([isApprovable(one), approved(one)]).toEqual([
    true,
    { metadata: { annotations: { "serving.fairway.dev/approved": "3.1" } } },
  ]);
});

test("who resumes lifts a pause, and forgives a failure", () => {
  expect(isResumable(rollout({}))).toBe(false);
  expect(resumed(rollout({}, { paused: true }))).toEqual({ spec: { paused: false } });
  expect(resumed(rollout({ failure: "GateFailed", revision: 2, failures: 1 }))).toEqual({
    metadata: { annotations: { "serving.fairway.dev/resumed": "2.1" } },
  });
});

test("an undo keeps the count and the pace, and brings back what pods are made from", () => {
  const current = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "chat" },
    spec: { replicas: 9, paused: true, template: "new", selector: "new" },
  };
  const revision = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    spec: { replicas: 1, strategy: "old", template: "old" },
  };
  expect(restored(current, revision)).toEqual({
    ...current,
    spec: { template: "old", replicas: 9, paused: true },
  });
});

test("what is wanted now is no earlier revision", () => {
  const history = [
    { revision: 1, mark: "a" },
    { revision: 2, mark: "b" },
    { revision: 3, mark: "c" },
  ];
  expect(earlier(rollout({ history, target: "c" })).map((one) => one.revision)).toEqual([2, 1]);
});

test("a name that would be too long ends in a digest", async () => {
  expect(await revisionName("chat", "a1")).toBe("chat-a1");
  const long = await revisionName("x".repeat(250), "0123456789");
  expect([long.length, long.slice(0, 4)]).toEqual([253, "xxxx"]);
});
