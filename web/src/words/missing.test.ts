import { expect, test } from "vitest";
import { plainly } from "./missing";

test.each([
  ["queue research is 8 nvidia.com/gpu short of h100", "queue research is 8 GPUs short of h100"],
  ["needs 1 amd.com/gpu", "needs 1 GPU"],
  ["1.5 nvidia.com/gpu short", "1.5 GPUs short"],
  ["4 cpu short", "4 cpu short"],
  ["asks for nvidia.com/gpu", "asks for nvidia.com/gpu"],
  ["2 nvidia.com/gpu.shared short", "2 nvidia.com/gpu.shared short"],
])("%s is said as %s", (said, plain) => expect(plainly(said)).toBe(plain));
