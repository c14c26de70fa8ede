import { beforeEach, expect, test, vi } from "vitest";
import { fetched } from "./chunks";

const reload = vi.fn();
const gone = () => Promise.reject(new TypeError("Failed to fetch dynamically imported module"));

function serves(entry: string): void {
  vi.stubGlobal("fetch", () =>
    Promise.resolve(new Response(`<script type="module" src="/page/assets/${entry}"></script>`)),
  );
}

beforeEach(() => {
  const kept = new Map<string, string>();
  reload.mockClear();
  vi.stubGlobal("document", {
    querySelector: () => ({ getAttribute: () => "/page/assets/index-old.js" }),
  });
  vi.stubGlobal("location", { reload });
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
  });
});

test("a part that is there is handed on", async () => {
  expect(await fetched(() => Promise.resolve("part"))).toBe("part");
  expect(reload).not.toHaveBeenCalled();
});

test("a part that is gone after an upgrade loads the new page, once", async () => {
  serves("index-new.js");
  await expect(fetched(gone)).rejects.toThrow("Failed to fetch");
  expect(reload).toHaveBeenCalledTimes(1);
  await expect(fetched(gone)).rejects.toThrow("Failed to fetch");
  expect(reload).toHaveBeenCalledTimes(1);
});

test("a part that fails while the hub serves the same page leaves the page as it is", async () => {
  serves("index-old.js");
  await expect(fetched(gone)).rejects.toThrow("Failed to fetch");
  expect(reload).not.toHaveBeenCalled();
});

test("a part that fails while the hub cannot be reached leaves the page as it is", async () => {
  vi.stubGlobal("fetch", gone);
  await expect(fetched(gone)).rejects.toThrow("Failed to fetch");
  expect(reload).not.toHaveBeenCalled();
});
