import { expect, test } from "vitest";
import { plain } from "./terminal";

test("colours and progress bars of a terminal become plain lines", () => {
  expect(plain("\u001b[31mred\u001b[0m")).toBe("red");
  expect(plain("10%\r50%\r100%\r")).toBe("100%");
});
