// What programs write for a terminal, as plain text.

// Colours and movements of a terminal mean nothing on a page.
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal is moved by nothing else.
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** A line as it would look on a terminal: the last of what was written over it. */
export function plain(line: string): string {
  const clean = line.includes("\u001b") ? line.replace(ESCAPES, "") : line;
  if (!clean.includes("\r")) return clean;
  return clean.replace(/\r+$/, "").split("\r").at(-1) ?? "";
}
