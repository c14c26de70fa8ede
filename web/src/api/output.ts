// The output of a pod, read to its end. A connection that is lost is made again, and what was read
// before is not read twice.

import { plain } from "../words/terminal";
import { open, Refused } from "./client";
import { linesIn } from "./streams";

/** Where lines go, and how many there ever were. */
export interface Output {
  readonly count: number;
  add: (lines: string[]) => void;
  /** Takes lines of a new connection: those that are here already are left out. */
  join: (fresh: string[]) => void;
}

export interface Reading {
  path: string;
  query: Record<string, string | number | boolean | undefined>;
  follows: boolean;
  /** Whether the output has lines of an earlier connection. */
  isAgain: boolean;
  output: Output;
  signal: AbortSignal;
  changed: () => void;
  state: (said: string) => void;
}

const QUIET = 300;
const RETRY_FIRST = 1000;
const RETRY_MOST = 10_000;
const PASSING = new Set([404, 502, 503, 504]);

export async function readOutput(reading: Reading): Promise<void> {
  let isAgain = reading.isAgain;
  let retry = RETRY_FIRST;
  for (;;) {
    try {
      const response = await open(reading.path, {
        signal: reading.signal,
        query: { ...reading.query, follow: reading.follows },
      });
      reading.state(reading.follows ? "Following" : "");
      retry = RETRY_FIRST;
      await take(reading, response, isAgain);
      if (reading.signal.aborted) return;
      reading.state(reading.output.count ? "This is the end of its output." : "It wrote nothing.");
      return;
    } catch (fault) {
      if (reading.signal.aborted) return;
      const isPassing = !(fault instanceof Refused) || PASSING.has(fault.code);
      if (!reading.follows || !isPassing) throw fault;
      isAgain = isAgain || reading.output.count > 0;
      const why = fault instanceof Refused ? fault.message : "The connection was lost";
      reading.state(isAgain ? `${why}; trying again` : `There is no output yet: ${why}`);
      await pause(retry, reading.signal);
      if (reading.signal.aborted) return;
      retry = Math.min(retry * 2, RETRY_MOST);
    }
  }
}

async function take(reading: Reading, response: Response, isAgain: boolean): Promise<void> {
  if (!response.body) return;
  const { output } = reading;
  // What comes first after a lost connection is compared with what was read before.
  let fresh: string[] | null = isAgain ? [] : null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const settle = () => {
    if (fresh) output.join(fresh);
    fresh = null;
    reading.changed();
  };
  try {
    for await (const read of linesIn(response.body)) {
      if (reading.signal.aborted) return;
      const lines = read.map(plain);
      if (fresh) {
        fresh.push(...lines);
        clearTimeout(timer);
        timer = setTimeout(settle, QUIET);
      } else {
        output.add(lines);
        reading.changed();
      }
    }
  } finally {
    clearTimeout(timer);
    if (!reading.signal.aborted) settle();
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
