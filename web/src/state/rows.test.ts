import { describe, expect, it } from "vitest";
import cases from "../../../tests/server/data/rows.json";
import type { Workload } from "../api/kinds";
import { type Cells, rowFrom, rowOf } from "./rows";

describe("a row of the hub says what the workload itself does:", () => {
  it.each(cases.map((one) => [one.what, one] as const))("%s", (_, { workload, row }) => {
    expect(rowFrom(row as unknown as Cells)).toEqual(rowOf(workload as unknown as Workload));
  });
});
