// YAML in parts that are drawn apart: names, texts, numbers and words that mean something.

export interface Part {
  text: string;
  sort: "key" | "text" | "number" | "word" | "plain" | "comment";
}

const KEY = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|[^\s"'#:{[][^:]*|)(:)(\s|$)/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** One line; what belongs to a text over several lines is plain. */
export function partsOf(line: string): Part[] {
  if (/^\s*#/.test(line)) return [{ text: line, sort: "comment" }];
  const found = KEY.exec(line);
  if (found?.[2]) {
    const [, lead = "", key = "", colon = ""] = found;
    const rest = line.slice(lead.length + key.length + colon.length);
    return [
      { text: lead, sort: "plain" as const },
      { text: key, sort: "key" as const },
      { text: colon, sort: "plain" as const },
      ...partsOfValue(rest),
    ].filter((one) => one.text);
  }
  const item = /^(\s*- )(.*)$/.exec(line);
  return item
    ? [{ text: item[1]!, sort: "plain" }, ...partsOfValue(item[2]!)]
    : [{ text: line, sort: "plain" }];
}

function partsOfValue(text: string): Part[] {
  const value = text.trim();
  if (!value) return text ? [{ text, sort: "plain" }] : [];
  if (NUMBER.test(value)) return [{ text, sort: "number" }];
  if (
    value === "true" ||
    value === "false" ||
    value === "null" ||
    value === "{}" ||
    value === "[]" ||
    /^[|>]-?$/.test(value)
  )
    return [{ text, sort: "word" }];
  return [{ text, sort: "text" }];
}
