import { expect, test } from "vitest";
import { Refused, Unreachable } from "./client";
import { cameBack, mayPass, placeOf, renewIn, word } from "./signing";

test.each([
  ["", null],
  ["?namespace=a", null],
  ["?code=c&state=s", { code: "c", state: "s" }],
  ["?code=c", { code: "c", state: "" }],
  [
    "?error=access_denied&error_description=ask+your+lead&state=s",
    { fault: "You were not let in: ask your lead", state: "s" },
  ],
  ["?error=server_error", { fault: "server_error", state: "" }],
  ["?error=server_error&code=c&state=s", { fault: "server_error", state: "s" }],
])("the address %j says who came back", (search, found) => {
  expect(cameBack(search)).toEqual(found);
});

test("what a provider says is cut where it is long", () => {
  const found = cameBack(`?error=e&error_description=${"x".repeat(5000)}`);
  expect(found && "fault" in found && found.fault.length).toBe(300);
});

test.each([
  [3600, 3540],
  [240, 180],
  [100, 75],
  [1, 5],
  [-100, 5],
])("what lasts %d seconds is renewed after %d", (lasts, after) => {
  expect(renewIn(lasts)).toBe(after);
});

test("no two words are the same, and each fits into an address", () => {
  const many = Array.from({ length: 50 }, word);
  expect(new Set(many).size).toBe(50);
  for (const one of many) expect(one).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test("a hub that is away may come back, and a refusal stays one", () => {
  expect(
    [new Unreachable("x"), new Refused(503, "x"), new Refused(429, "x"), new Refused(401, "x")].map(
      mayPass,
    ),
  ).toEqual([true, true, true, false]);
});

test("a tab asks at a place that tells nothing of its word", async () => {
  expect(await placeOf("a-tab-that-knows-its-own-name")).toBe("0aded40bb4ab8993/");
  expect(await placeOf("")).toBe("");
});
