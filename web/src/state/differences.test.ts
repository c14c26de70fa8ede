import { expect, test } from "vitest";
import { differences } from "./differences";

const said = (before: string, after: string) =>
  differences(before, after)
    .map((one) => one.sign + one.text)
    .join(" ");

test.each([
  ["a\nb\nc", "a\nb\nc", " a  b  c"],
  ["a\nb\nc", "a\nx\nc", " a -b +x  c"],
  ["a", "a\nb", " a +b"],
  ["a\nb", "b", "-a  b"],
])("%j becomes %j", (before, after, expected) => {
  expect(said(before, after)).toBe(expected);
});

test("what is too long is shown as it is", () => {
  expect(differences("a", "x\n".repeat(2000)).every((one) => one.sign === " ")).toBe(true);
});
