import { expect, test } from "vitest";
import { amountOf, plural, priceOf, short } from "./amounts";

test.each([
  ["8", 8],
  ["500m", 0.5],
  ["2k", 2000],
  ["1Gi", 2 ** 30],
])("%s is the amount %d", (quantity, amount) => {
  expect(amountOf(quantity)).toBe(amount);
});

test("large numbers are grouped, and one of something is singular", () => {
  expect(short(12_000)).toBe("12,000");
  expect([plural(1, "GPU"), plural(2, "GPU")]).toEqual(["1 GPU", "2 GPUs"]);
});

test.each([
  ["USD", "$1,234.50"],
  ["EUR", "€1,234.50"],
  ["credits", "1234.50 credits"],
])("prices in %s", (currency, words) => {
  expect(priceOf(1234.5, currency)).toBe(words);
});
