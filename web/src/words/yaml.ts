// Plain JSON as YAML for reading; what YAML could take for something else is quoted.

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./:@%+=-]*(?: [A-Za-z0-9_./@%+=,()-]+)*$/;
const MEANS_MORE = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i;

export function yaml(value: unknown, depth = 0): string {
  const pad = "  ".repeat(depth);
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return value.map((one) => `${pad}- ${item(one, depth + 1)}`).join("\n");
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).filter(([, one]) => one !== undefined);
    if (!entries.length) return "{}";
    return entries.map(([key, one]) => `${pad}${scalar(key)}:${below(one, depth)}`).join("\n");
  }
  return scalar(value, pad);
}

function below(value: unknown, depth: number): string {
  if (isFull(value)) return `\n${yaml(value, Array.isArray(value) ? depth : depth + 1)}`;
  return ` ${yamlLeaf(value, depth + 1)}`;
}

function item(value: unknown, depth: number): string {
  return isFull(value) ? yaml(value, depth).trimStart() : yamlLeaf(value, depth);
}

function yamlLeaf(value: unknown, depth: number): string {
  return Array.isArray(value)
    ? "[]"
    : value && typeof value === "object"
      ? "{}"
      : scalar(value, "  ".repeat(depth));
}

function isFull(value: unknown): boolean {
  return Array.isArray(value)
    ? value.length > 0
    : value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function scalar(value: unknown, pad = ""): string {
  if (typeof value !== "string") return String(value);
  if (value.includes("\n") && !/[^\S\n]\n|\t/.test(value) && !/^\s/.test(value)) {
    const keeps = value.endsWith("\n") ? "|" : "|-";
    return `${keeps}\n${value
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => (line ? pad + line : ""))
      .join("\n")}`;
  }
  return PLAIN.test(value) &&
    !MEANS_MORE.test(value) &&
    !value.endsWith(":") &&
    !value.includes(": ")
    ? value
    : JSON.stringify(value);
}
