import { expect, test } from "vitest";
import type { Decision, Workload } from "../api/kinds";
import { rowOf } from "./rows";
import { storyOf } from "./story";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 5, 10, minute)).toISOString();
const seconds = (minute: number) => Date.parse(at(minute)) / 1000;
const NOW = Date.parse(at(60));

function workload(status: object, spec: object = {}): Workload {
  return {
    metadata: { name: "w", namespace: "team", creationTimestamp: at(0) },
    spec: { queue: "q", ...spec },
    status: { queue: "q", ...status },
  } as unknown as Workload;
}

function told(found: Workload, decisions: Decision[] = []) {
  const story = storyOf({ workload: found, row: rowOf(found), now: NOW, decisions });
  const start = Date.parse(at(0));
  return {
    words: story.moments.map((one) => one.word),
    bands: story.bands.map((one) => [
      one.lane,
      one.sort,
      (one.from - start) / 60_000,
      (one.to - start) / 60_000,
    ]),
    story,
  };
}

test("one that was preempted and moved keeps its whole story", () => {
  const found = told(
    workload({
      phase: "Running",
      startedAt: at(6),
      history: [
        {
          attempt: 1,
          clusters: ["east"],
          startedAt: at(6),
          endedAt: at(20),
          reason: "PreemptedToReclaim",
          preemptedBy: { namespace: "other", name: "boss" },
          lostSeconds: 600,
        },
      ],
      claim: {
        attempt: 2,
        term: 1,
        decidedAt: at(30),
        readyAt: at(35),
        rung: "Provision",
        placements: [{ cluster: "west", podSets: [] }],
      },
    }),
    [{ now: seconds(4), steps: [{ action: "Admit", workload: "team/w" }] }],
  );
  expect(found.bands).toEqual([
    ["", "wait", 0, 4],
    ["east", "start", 4, 6],
    ["east", "run", 6, 20],
    ["", "wait", 20, 30],
    ["west", "start", 30, 35],
    ["west", "run", 35, 60],
  ]);
  expect(found.words).toEqual([
    "Submitted",
    "Starting",
    "Running",
    "Preempted",
    "Starting",
    "Moved",
  ]);
  expect(found.story.lanes).toEqual(["", "east", "west"]);
  expect(found.story.moments[3]).toMatchObject({
    whom: "other/boss",
    more: "for boss, 10 min of work lost",
  });
});

test("one that ended tells its end once", () => {
  const found = told(
    workload({
      phase: "Succeeded",
      startedAt: at(5),
      finishedAt: at(25),
      history: [
        {
          attempt: 1,
          clusters: ["east"],
          startedAt: at(5),
          endedAt: at(25),
          reason: "Succeeded",
          blame: "Program",
        },
      ],
    }),
  );
  expect(found.words).toEqual(["Submitted", "Running", "Succeeded"]);
  expect(found.bands).toEqual([
    ["", "wait", 0, 5],
    ["east", "run", 5, 25],
  ]);
  expect(found.story.to).toBe(Date.parse(at(25)));
});

test("one that was suspended while it ran waits as such", () => {
  const found = told(
    workload({
      phase: "Held",
      reason: "Held",
      startedAt: at(5),
      history: [
        {
          attempt: 1,
          clusters: ["east"],
          startedAt: at(5),
          endedAt: at(15),
          reason: "Drained",
          lostSeconds: 60,
        },
      ],
      conditions: [
        { type: "Claimed", status: "False", reason: "Held", lastTransitionTime: at(15) },
      ],
    }),
  );
  expect(found.words).toEqual(["Submitted", "Running", "Stopped", "Suspended"]);
  expect(found.bands.at(-1)).toEqual(["", "hold", 15, 60]);
});

test("what is expected is ahead of now, with who must end first", () => {
  const waiting = workload({ phase: "Waiting" });
  const why = {
    now: seconds(60),
    workload: "team/w",
    state: "Waits" as const,
    queue: "q",
    message: "",
    expected: { start: seconds(70), latest: seconds(80), because: "other/long" },
  };
  const story = storyOf({ workload: waiting, row: rowOf(waiting), now: NOW, why });
  expect(story.to).toBe(Date.parse(at(80)));
  expect(story.moments.at(-1)).toMatchObject({
    word: "Expected to start",
    isAhead: true,
    whom: "other/long",
  });
});

test("a service that grew into one place and left another is drawn in both, each for its time", () => {
  const found = told(
    workload(
      {
        phase: "Running",
        startedAt: at(5),
        claim: {
          attempt: 1,
          term: 1,
          decidedAt: at(30),
          readyAt: at(32),
          placements: [
            { cluster: "home", podSets: [] },
            { cluster: "west", podSets: [] },
          ],
        },
      },
      { mode: "Divided" },
    ),
    [
      {
        now: seconds(4),
        steps: [
          {
            action: "Admit",
            workload: "team/w",
            placements: [{ cluster: "home" }, { cluster: "east" }],
          },
        ],
      },
      {
        now: seconds(30),
        steps: [
          {
            action: "Move",
            workload: "team/w",
            from: "east",
            count: 2,
            placements: [{ cluster: "west" }],
          },
        ],
      },
    ],
  );
  expect(found.bands).toEqual([
    ["", "wait", 0, 4],
    ["home", "start", 4, 5],
    ["home", "run", 5, 60],
    ["east", "start", 4, 5],
    ["east", "run", 5, 30],
    ["west", "run", 30, 60],
  ]);
  expect(found.story.moments.find((one) => one.word === "Moved")!.more).toBe(
    "2 replicas from east to west",
  );
});

test("a service that lost one of its clusters ran on in the others", () => {
  const found = told(
    workload(
      {
        phase: "Running",
        startedAt: at(5),
        history: [
          {
            attempt: 1,
            clusters: ["east"],
            startedAt: at(5),
            endedAt: at(20),
            reason: "ClusterLost",
          },
        ],
        claim: {
          attempt: 2,
          term: 1,
          decidedAt: at(40),
          readyAt: at(41),
          placements: [{ cluster: "home", podSets: [] }],
        },
      },
      { mode: "Divided" },
    ),
    [
      {
        now: seconds(4),
        steps: [{ action: "Admit", workload: "team/w", placements: [{ cluster: "home" }] }],
      },
      {
        now: seconds(10),
        steps: [
          {
            action: "Admit",
            workload: "team/w",
            placements: [{ cluster: "home" }, { cluster: "east" }],
          },
        ],
      },
    ],
  );
  expect(found.bands).toEqual([
    ["", "wait", 0, 4],
    ["home", "start", 4, 5],
    ["home", "run", 5, 60],
    ["east", "run", 10, 20],
  ]);
  expect(found.words).toEqual(["Submitted", "Starting", "Running", "Spread", "Left"]);
  expect(found.story.moments.at(-1)!.more).toBe("east: cluster lost");
});
