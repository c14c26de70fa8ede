import { expect, test } from "vitest";
import { partsOf } from "./highlight";

test.each([
  ["name: train", "key plain text"],
  ["  - count: 3", "plain key plain number"],
  ["  held: false", "plain key plain word"],
  ["- --flag=a:b", "plain text"],
  ["labels:", "key plain"],
  ["  echo hello; sleep 3", "plain"],
  ["# a note", "comment"],
  ['"fairway.dev/queue": research', "key plain text"],
])("%s is %s", (line, sorts) => {
  const parts = partsOf(line);
  expect(parts.map((one) => one.sort).join(" ")).toBe(sorts);
  expect(parts.map((one) => one.text).join("")).toBe(line);
});
