// Answers that come line by line.

import { Unreachable } from "./client";

/** The whole lines of a stream as they come, empty ones as well, and what is left at its end. */
export async function* linesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<string[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      if (done && rest) lines.push(rest);
      if (lines.length) yield lines;
      if (done) return;
    }
  } catch (fault) {
    // A connection that breaks in the middle is a lost one, whatever the browser calls it.
    throw fault instanceof DOMException ? fault : new Unreachable("The connection broke.");
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
