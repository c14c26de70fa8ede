// Who may know of whom: words know nobody, calls to the hub know words, state knows both.

import { expect, test } from "vitest";

const BELOW: Record<string, string[]> = {
  words: ["words"],
  api: ["api", "words"],
  state: ["state", "api", "words"],
  parts: ["parts", "state", "api", "words"],
};
const files = import.meta.glob<string>("./{words,api,state,parts}/*.{ts,svelte}", {
  query: "?raw",
  import: "default",
  eager: true,
});

test.each(Object.keys(BELOW))("%s imports from its own layer and those below", (layer) => {
  const own = Object.entries(files).filter(
    ([path]) => path.startsWith(`./${layer}/`) && !path.endsWith(".test.ts"),
  );
  expect(own.length).toBeGreaterThan(3);
  const wrong = own.flatMap(([path, text]) =>
    // The shapes of what the hub says are everybody's.
    [...text.matchAll(/from "\.\.\/([a-z]+)\/(?!kinds")/g)].flatMap(([, other = ""]) =>
      BELOW[layer]!.includes(other) ? [] : [`${path}: ${other}`],
    ),
  );
  expect(wrong).toEqual([]);
});
