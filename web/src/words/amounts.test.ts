import { expect, test } from "vitest";
import { acceleratorsOf, amountOf, isAccelerator, plural, priceOf, short } from "./amounts";

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

test.each([
  "nvidia.com/gpu",
  "amd.com/gpu",
  "huawei.com/Ascend310P",
  "nvidia.com/mig-1g.5gb",
  "nvidia.com/mig-1g.5gb.me",
])("%s counts as a GPU", (resource) => {
  expect(isAccelerator(resource)).toBe(true);
});

test.each([
  "cpu",
  "rdma/hca",
  "rdma/roce_gdr",
  "nvidia.com/hostdev",
  "mellanox.com/cx5_sriov",
  "vpc.amazonaws.com/efa",
  "nvidia.com/gpumem",
  "hugepages-2Mi",
])("%s does not count as a GPU", (resource) => {
  expect(isAccelerator(resource)).toBe(false);
});

test("networks beside GPUs are not added to them", () => {
  expect(acceleratorsOf({ "nvidia.com/gpu": "4", "rdma/hca": "2", cpu: "8" })).toBe(4);
});
