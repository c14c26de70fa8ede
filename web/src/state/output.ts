// Output of a pod as lines in blocks: the last 10,000 are kept, and only the last block changes.

export const LINES_MAX = 10_000;
const BLOCK = 200;
const OVERLAP_MAX = 500;

export interface Block {
  first: number; // the number of its first line, from the first that was ever read
  lines: string[];
}

export class Output {
  blocks: Block[] = [];
  count = 0; // lines that were ever read
  dropped = 0; // of these, that are not kept

  constructor(private readonly most = LINES_MAX) {}

  get kept(): number {
    return this.count - this.dropped;
  }

  add(lines: string[]): void {
    for (const line of lines) {
      const last = this.blocks.at(-1);
      if (last && last.lines.length < BLOCK) last.lines.push(line);
      else this.blocks.push({ first: this.count, lines: [line] });
      this.count += 1;
    }
    while (this.kept > this.most && this.blocks.length > 1) {
      this.dropped += this.blocks[0]!.lines.length;
      this.blocks.shift();
    }
    // Another object where something changed, so that whoever draws blocks sees it.
    const last = this.blocks.at(-1);
    if (lines.length && last)
      this.blocks[this.blocks.length - 1] = { ...last, lines: [...last.lines] };
  }

  /** Takes lines of a new connection: those that are here already are left out. */
  join(fresh: string[]): void {
    const known = this.last(OVERLAP_MAX);
    const from = after(known, fresh);
    if (from === 0 && known.length && fresh.length)
      this.add(["… the connection was lost here, and lines may be missing …"]);
    this.add(fresh.slice(from));
  }

  last(count: number): string[] {
    const found: string[] = [];
    for (let at = this.blocks.length - 1; at >= 0 && found.length < count; at -= 1)
      found.unshift(...this.blocks[at]!.lines);
    return found.slice(-count);
  }

  text(): string {
    return this.blocks.flatMap((one) => one.lines).join("\n");
  }
}

/** Where in `fresh` the first line is that does not repeat the end of `known`. */
export function after(known: string[], fresh: string[]): number {
  let best = 0;
  let length = 0;
  for (let end = fresh.length; end > 0; end -= 1) {
    let same = 0;
    while (
      same < end &&
      same < known.length &&
      fresh[end - 1 - same] === known[known.length - 1 - same]
    )
      same += 1;
    // A match must reach back to the begin of either, or it is a line that only looks alike.
    if ((same === end || same === known.length) && same > length) {
      best = end;
      length = same;
    }
  }
  return best;
}
