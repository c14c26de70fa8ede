// Where one is: the part of the address behind #, so that links and the back button work.

/** What is no code is meant as it stands: an address may be typed by hand. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Route {
  parts = $state.raw<string[]>([]);
  query = $state.raw(new URLSearchParams());

  constructor() {
    this.read();
    window.addEventListener("hashchange", () => this.read());
  }

  private read(): void {
    const address = location.hash.replace(/^#\/?/, "");
    const end = address.includes("?") ? address.indexOf("?") : address.length;
    this.parts = address.slice(0, end).split("/").filter(Boolean).map(decoded);
    this.query = new URLSearchParams(address.slice(end + 1));
  }

  get view(): string {
    return this.parts[0] ?? "fleet";
  }

  /** Changes parts of the query in place: filters are no steps to go back through. */
  set(changes: Record<string, string>): void {
    const query = new URLSearchParams(this.query);
    for (const [key, value] of Object.entries(changes))
      if (value) query.set(key, value);
      else query.delete(key);
    const path = this.parts.map(encodeURIComponent).join("/");
    history.replaceState(null, "", `#/${path}${query.size ? `?${query}` : ""}`);
    this.query = query;
  }
}

export const route = new Route();

export function to(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function workloadLink(key: string): string {
  const [namespace = "", name = ""] = key.split("/");
  return to("workloads", namespace, name);
}
