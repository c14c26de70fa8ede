// GPU lanes: spans stacked in a band as tall as the GPUs that there are.
//
// A span keeps its lanes for as long as it lasts, and takes several pieces where no gap is large
// enough, as real GPUs do; so what stays empty is what was free. What does not fit into the room
// goes above it.

export interface Item {
  key: string;
  from: number;
  to: number;
  gpus: number;
}

export interface Piece {
  low: number;
  high: number;
}

export interface Packing {
  /** The lanes of each item, in the order of the items. */
  pieces: Piece[][];
  /** The highest lane that is taken. */
  peak: number;
}

const TINY = 1e-9;
/** Moments are told in whole seconds by some: who ends so little later has made room. */
const SLACK = 1.5;

/** Lanes for all items; those that had lanes before get them again where these are free. */
export function packed(items: Item[], room: number, before?: Map<string, Piece[]>): Packing {
  const pieces: Piece[][] = items.map(() => []);
  const free: Piece[] =
    room > 0
      ? [
          { low: 0, high: room },
          { low: room, high: Infinity },
        ]
      : [{ low: 0, high: Infinity }];
  const order = items
    .map((item, at) => ({ item, at }))
    .filter(({ item }) => item.gpus > 0 && item.to > item.from)
    .sort(
      (one, other) =>
        one.item.from - other.item.from ||
        other.item.gpus - one.item.gpus ||
        (one.item.key < other.item.key ? -1 : 1),
    );
  const lasting: { to: number; at: number }[] = [];
  let peak = 0;
  for (const { item, at } of order) {
    for (let index = lasting.length - 1; index >= 0; index -= 1) {
      const ended = lasting[index]!;
      if (ended.to > item.from + SLACK) continue;
      for (const piece of pieces[ended.at]!) give(free, piece, room);
      lasting.splice(index, 1);
    }
    const known = before?.get(item.key);
    const found = known && again(free, known, item.gpus, room) ? known : taken(free, item.gpus);
    for (const piece of found) {
      remove(free, piece);
      peak = Math.max(peak, piece.high);
    }
    pieces[at] = found;
    lasting.push({ to: item.to, at });
  }
  return { pieces, peak };
}

/** Whether the lanes that an item had before are free now, and are as many as it needs. */
function again(free: Piece[], known: Piece[], gpus: number, room: number): boolean {
  const sum = known.reduce((total, one) => total + one.high - one.low, 0);
  return (
    Math.abs(sum - gpus) < TINY &&
    !(room > 0 && known.some((one) => one.high > room + TINY)) &&
    known.every((one) =>
      free.some((gap) => gap.low <= one.low + TINY && gap.high >= one.high - TINY),
    )
  );
}

/** The lowest gap that is large enough; else pieces from the lowest on. */
function taken(free: Piece[], gpus: number): Piece[] {
  const whole = free.find((gap) => gap.high < Infinity && gap.high - gap.low >= gpus - TINY);
  if (whole) return [{ low: whole.low, high: whole.low + gpus }];
  const found: Piece[] = [];
  let left = gpus;
  for (const gap of free) {
    if (left <= TINY) break;
    const size = Math.min(left, gap.high - gap.low);
    found.push({ low: gap.low, high: gap.low + size });
    left -= size;
  }
  return joined(found);
}

function joined(pieces: Piece[]): Piece[] {
  const found: Piece[] = [];
  for (const piece of pieces) {
    const last = found.at(-1);
    if (last && Math.abs(last.high - piece.low) < TINY) last.high = piece.high;
    else found.push({ ...piece });
  }
  return found;
}

function remove(free: Piece[], piece: Piece): void {
  for (let at = free.length - 1; at >= 0; at -= 1) {
    const gap = free[at]!;
    const low = Math.max(gap.low, piece.low);
    const high = Math.min(gap.high, piece.high);
    if (high - low <= TINY) continue;
    const rest = [
      { low: gap.low, high: low },
      { low: high, high: gap.high },
    ].filter((one) => one.high - one.low > TINY);
    free.splice(at, 1, ...rest);
  }
}

function give(free: Piece[], piece: Piece, room: number): void {
  // Lanes above the room stay apart from those in it.
  const parts =
    piece.low < room - TINY && piece.high > room + TINY
      ? [
          { low: piece.low, high: room },
          { low: room, high: piece.high },
        ]
      : [{ ...piece }];
  for (const part of parts) {
    const at = free.findIndex((gap) => gap.low >= part.high - TINY);
    const index = at < 0 ? free.length : at;
    const next = free[index];
    const last = free[index - 1];
    const isFirst = Math.abs(part.low - room) < TINY;
    const isLast = Math.abs(part.high - room) < TINY;
    if (last && !isFirst && Math.abs(last.high - part.low) < TINY) {
      last.high = part.high;
      if (next && !isLast && Math.abs(next.low - part.high) < TINY) {
        last.high = next.high;
        free.splice(index, 1);
      }
    } else if (next && !isLast && Math.abs(next.low - part.high) < TINY) next.low = part.low;
    else free.splice(index, 0, part);
  }
}
