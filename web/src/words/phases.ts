// The states of a workload: each has a word, a shape and a colour, so that no one of them is needed
// to tell two states apart. The colours are those of Okabe and Ito, darkened or lightened by theme.

export type Tone = "wait" | "start" | "run" | "stop" | "hold" | "good" | "bad" | "quiet";

export interface Look {
  tone: Tone;
  shape: string;
  order: number;
}

export const PHASES: Record<string, Look> = {
  Running: { tone: "run", shape: "play", order: 0 },
  Claimed: { tone: "start", shape: "half", order: 1 },
  Waiting: { tone: "wait", shape: "ring", order: 2 },
  Stopping: { tone: "stop", shape: "down", order: 3 },
  Held: { tone: "hold", shape: "bars", order: 4 },
  Failed: { tone: "bad", shape: "cross", order: 5 },
  Succeeded: { tone: "good", shape: "tick", order: 6 },
  Cancelled: { tone: "quiet", shape: "slash", order: 7 },
};

const HEALTH: Record<string, Look> = {
  Ready: { tone: "run", shape: "tick", order: 0 },
  Pending: { tone: "start", shape: "half", order: 1 },
  Held: { tone: "hold", shape: "bars", order: 2 },
  Draining: { tone: "stop", shape: "down", order: 2 },
  Unready: { tone: "wait", shape: "ring", order: 3 },
  Lost: { tone: "bad", shape: "cross", order: 4 },
};

export function lookOf(phase: string): Look {
  return PHASES[phase] ?? HEALTH[phase] ?? { tone: "quiet", shape: "ring", order: 9 };
}

/** What people read; the API's name of a phase stays. */
export function wordOf(phase: string): string {
  return phase === "Claimed" ? "Starting" : phase;
}

export const OVER = new Set(["Succeeded", "Failed", "Cancelled"]);
