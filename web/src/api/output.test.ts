import { afterEach, expect, test, vi } from "vitest";
import { Output } from "../state/output";
import { Refused } from "./client";
import { readOutput } from "./output";

/** A stream of these texts that ends well, or breaks. */
function body(texts: string[], breaks: boolean): ReadableStream<Uint8Array> {
  const left = texts.map((one) => new TextEncoder().encode(one));
  return new ReadableStream({
    pull(stream) {
      const next = left.shift();
      if (next) stream.enqueue(next);
      else if (breaks) stream.error(new TypeError("network error"));
      else stream.close();
    },
  });
}

async function read(
  answers: (() => Response)[],
  follows = true,
): Promise<{ text: string; said: string[] }> {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", () => Promise.resolve(answers.shift()!()));
  const output = new Output();
  const said: string[] = [];
  const done = readOutput({
    path: "/log",
    query: {},
    follows,
    isAgain: false,
    output,
    signal: new AbortController().signal,
    changed: () => undefined,
    state: (one) => said.push(one),
  });
  done.catch(() => undefined);
  await vi.runAllTimersAsync();
  await done;
  return { text: output.text(), said };
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("after a lost connection it goes on, and no line comes twice", async () => {
  const found = await read([
    () => new Response(body(["one\ntwo\n"], true)),
    () => new Response(JSON.stringify({ message: "the hub is starting" }), { status: 503 }),
    () => new Response(body(["one\ntwo\nthree\n"], false)),
  ]);
  expect(found.text).toBe("one\ntwo\nthree");
  expect(found.said).toEqual([
    "Following",
    "The connection was lost; trying again",
    "the hub is starting; trying again",
    "Following",
    "This is the end of its output.",
  ]);
});

test("one that has not written yet is asked again until it has", async () => {
  const found = await read([
    () => new Response(JSON.stringify({ message: "no pod yet" }), { status: 404 }),
    () => new Response(body(["one\n"], false)),
  ]);
  expect(found.text).toBe("one");
  expect(found.said[0]).toBe("There is no output yet: no pod yet");
});

test("who may not read it is told so at once", async () => {
  await expect(
    read([() => new Response(JSON.stringify({ message: "no" }), { status: 403 })]),
  ).rejects.toBeInstanceOf(Refused);
});
