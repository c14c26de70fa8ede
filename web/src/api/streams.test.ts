import { expect, test } from "vitest";
import { linesIn } from "./streams";

test("lines come whole, empty ones and the last without an end as well", async () => {
  const parts = ["one\n\ntw", "o\nthr", "ee"].map((one) => new TextEncoder().encode(one));
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      for (const one of parts) stream.enqueue(one);
      stream.close();
    },
  });
  const found: string[] = [];
  for await (const lines of linesIn(body)) found.push(...lines);
  expect(found).toEqual(["one", "", "two", "three"]);
});
