// A band on a canvas: thousands of spans are drawn in a few milliseconds, and nothing of it is kept.
//
// States differ by fill, by pattern and by a mark at their end, so that no colour is needed.

import { endOf, type Band, type Span } from "../../state/spans";

export interface Frame {
  from: number; // seconds
  to: number;
  now: number;
  since: number;
  width: number; // pixels
  height: number;
  ticks: number[];
}

export type Palette = Record<string, string>;

const NAMES = [
  "surface",
  "raised",
  "line",
  "line-strong",
  "text",
  "text-soft",
  "run",
  "run-soft",
  "wait",
  "wait-soft",
  "bad",
  "bad-soft",
  "hold",
  "stop",
  "quiet",
  "good",
];
const LABEL = 11;

export function paletteOf(): Palette {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}

/** Lanes that the height of a band stands for. */
export function lanesOf(band: Band): number {
  return Math.max(band.room, band.packing.peak, 1);
}

const xOf = (frame: Frame, at: number): number =>
  ((at - frame.from) / (frame.to - frame.from)) * frame.width;

/** The rectangles of a span, from its first moment to its last in the picture. */
export function boxesOf(
  band: Band,
  at: number,
  frame: Frame,
): { x: number; y: number; width: number; height: number }[] {
  const span = band.spans[at]!;
  const scale = frame.height / lanesOf(band);
  const x = Math.max(-2, xOf(frame, span.from));
  const end = Math.min(frame.width + 2, xOf(frame, Math.min(endOf(span), frame.to + 1)));
  return (band.packing.pieces[at] ?? []).map((one) => ({
    x,
    y: frame.height - one.high * scale,
    width: Math.max(2, end - x),
    height: (one.high - one.low) * scale,
  }));
}

export function paint(
  context: CanvasRenderingContext2D,
  band: Band,
  frame: Frame,
  colours: Palette,
): void {
  const { width, height } = frame;
  context.clearRect(0, 0, width, height);
  ground(context, band, frame, colours);
  context.font = `${LABEL}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  const dots = pattern(context, "dots", colours.quiet!, colours.raised!);
  const scale = height / lanesOf(band);
  band.sums.forEach((sum, at) => {
    for (const piece of band.packing.pieces[band.spans.length + at] ?? []) {
      context.fillStyle = dots;
      context.fillRect(
        xOf(frame, sum.from),
        height - piece.high * scale,
        xOf(frame, sum.to) - xOf(frame, sum.from) + 0.5,
        (piece.high - piece.low) * scale,
      );
    }
  });
  band.spans.forEach((span, at) => {
    const boxes = boxesOf(band, at, frame);
    boxes.forEach((box, index) => {
      bar(context, span, box, frame, colours, index === largest(boxes));
    });
  });
  const now = Math.round(xOf(frame, frame.now)) + 0.5;
  line(context, now, 0, now, height, colours.bad!, 1.5);
}

function ground(
  context: CanvasRenderingContext2D,
  band: Band,
  frame: Frame,
  colours: Palette,
): void {
  const { width, height } = frame;
  context.fillStyle = colours.surface!;
  context.fillRect(0, 0, width, height);
  const now = xOf(frame, frame.now);
  context.fillStyle = `color-mix(in srgb, ${colours.raised} 60%, transparent)`;
  context.fillRect(now, 0, width - now, height);
  const since = xOf(frame, frame.since);
  if (since > 0) {
    context.fillStyle = pattern(context, "lines", colours.line!, colours.surface!);
    context.fillRect(0, 0, Math.min(since, width), height);
  }
  for (const tick of frame.ticks) {
    const x = Math.round(xOf(frame, tick)) + 0.5;
    line(context, x, 0, x, height, colours.line!, 1);
  }
  if (band.room > 0 && band.packing.peak > band.room) {
    const y = Math.round(height - (band.room * height) / lanesOf(band)) + 0.5;
    line(context, 0, y, width, y, colours["text-soft"]!, 1, [4, 3]);
  }
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function bar(
  context: CanvasRenderingContext2D,
  span: Span,
  whole: Box,
  frame: Frame,
  colours: Palette,
  isNamed: boolean,
): void {
  const gap = whole.height > 5 ? 1 : whole.height > 2.5 ? 0.5 : 0;
  const box = { ...whole, y: whole.y + gap / 2, height: Math.max(0.75, whole.height - gap) };
  if (span.sort === "expected" || span.sort === "reserved") ahead(context, span, box, colours);
  else held(context, span, box, frame, colours);
  if (isNamed) label(context, span, box, frame, colours);
}

function ahead(context: CanvasRenderingContext2D, span: Span, box: Box, colours: Palette): void {
  const isKept = span.sort === "reserved";
  const tone = isKept ? colours.hold! : colours.wait!;
  context.fillStyle = pattern(
    context,
    isKept ? "cross" : "lines",
    `color-mix(in srgb, ${tone} 32%, ${colours.surface})`,
    colours.surface!,
  );
  context.fillRect(box.x, box.y, box.width, box.height);
  outline(context, box, tone, isKept ? [] : [4, 3]);
}

function held(
  context: CanvasRenderingContext2D,
  span: Span,
  box: Box,
  frame: Frame,
  colours: Palette,
): void {
  const end = box.x + box.width;
  const ready = span.ready === undefined ? Infinity : xOf(frame, span.ready);
  const started = Math.min(end, Math.max(box.x, ready));
  const now = Math.min(end, Math.max(started, xOf(frame, frame.now)));
  const isOver = span.sort === "ran";
  if (started > box.x) {
    context.fillStyle = `color-mix(in srgb, ${colours.surface} 70%, transparent)`;
    context.fillRect(box.x, box.y, started - box.x, box.height);
    outline(context, { ...box, width: started - box.x }, colours.run!, [2, 2]);
  }
  if (isOver) {
    context.fillStyle = fillOf(context, span, colours);
    context.fillRect(started, box.y, end - started, box.height);
    outline(
      context,
      { ...box, x: started, width: end - started },
      `color-mix(in srgb, ${toneOf(span, colours)} 55%, ${colours.surface})`,
    );
    mark(context, span, box, colours);
  } else {
    context.fillStyle = colours.run!;
    context.fillRect(started, box.y, now - started, box.height);
    if (end > now) {
      const from = Math.max(box.x, xOf(frame, frame.now));
      context.fillStyle = pattern(
        context,
        "dots",
        `color-mix(in srgb, ${colours.run} 55%, ${colours.surface})`,
        colours["run-soft"]!,
      );
      context.fillRect(from, box.y, end - from, box.height);
      outline(
        context,
        { ...box, x: from, width: end - from },
        `color-mix(in srgb, ${colours.run} 45%, ${colours.surface})`,
        [3, 3],
      );
    }
  }
}

function toneOf(span: Span, colours: Palette): string {
  const tones: Record<string, string> = {
    Failed: "bad",
    Preempted: "stop",
    Cancelled: "quiet",
    Stopped: "hold",
    Moved: "wait",
  };
  return colours[tones[span.ended ?? ""] ?? "run"]!;
}

function fillOf(
  context: CanvasRenderingContext2D,
  span: Span,
  colours: Palette,
): string | CanvasPattern {
  const tone = toneOf(span, colours);
  const soft = `color-mix(in srgb, ${tone} 20%, ${colours.surface})`;
  if (span.ended === "Failed" || span.ended === "Preempted")
    return pattern(context, "lines", `color-mix(in srgb, ${tone} 40%, ${colours.surface})`, soft);
  return soft;
}

/** How it ended, as a shape at its end: cross, wedge, arrow, slash. */
function mark(context: CanvasRenderingContext2D, span: Span, box: Box, colours: Palette): void {
  if (!span.ended || span.ended === "Succeeded" || span.ended === "Resized") return;
  const size = Math.min(9, box.height - 2, box.width - 2);
  context.fillStyle = context.strokeStyle = toneOf(span, colours);
  const right = box.x + box.width;
  context.fillRect(right - 2, box.y, 2, box.height);
  if (size < 5) return;
  const x = right - size - 4;
  const y = box.y + box.height / 2 - size / 2;
  context.lineWidth = 1.6;
  context.setLineDash([]);
  context.beginPath();
  if (span.ended === "Failed") {
    context.moveTo(x, y);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y);
    context.lineTo(x, y + size);
    context.stroke();
  } else if (span.ended === "Preempted") {
    context.moveTo(x, y + 1);
    context.lineTo(x + size, y + 1);
    context.lineTo(x + size / 2, y + size);
    context.fill();
  } else if (span.ended === "Moved") {
    context.moveTo(x, y + size / 2);
    context.lineTo(x + size, y + size / 2);
    context.lineTo(x + size / 2, y);
    context.moveTo(x + size, y + size / 2);
    context.lineTo(x + size / 2, y + size);
    context.stroke();
  } else if (span.ended === "Stopped") {
    context.rect(x, y, size / 3, size);
    context.rect(x + (2 * size) / 3, y, size / 3, size);
    context.fill();
  } else {
    context.moveTo(x, y + size);
    context.lineTo(x + size, y);
    context.stroke();
  }
}

function label(
  context: CanvasRenderingContext2D,
  span: Span,
  box: Box,
  frame: Frame,
  colours: Palette,
): void {
  const isLive = span.sort === "runs";
  // The name of one that runs stands where it has run, if there is room; else where it will.
  const now = xOf(frame, frame.now);
  const begun =
    span.ready === undefined
      ? box.x
      : Math.min(box.x + box.width, Math.max(box.x, xOf(frame, span.ready)));
  const isPast = isLive && now - Math.max(0, begun) > 56;
  const left = (isLive && !isPast ? Math.max(now, begun, 0) : Math.max(0, begun)) + 4;
  const split = isPast ? now : Math.min(frame.width, box.x + box.width);
  const room = split - left - (span.ended && span.ended !== "Succeeded" ? 14 : 4);
  if (box.height < LABEL || room < 22 || frame.width < 60) return;
  const name = span.workload?.split("/")[1] ?? "another's";
  const text = fitted(context, span.gpus ? `${name} · ${span.gpus}` : name, room);
  if (!text) return;
  const isDark = isPast;
  context.fillStyle = isDark ? colours.surface! : colours.text!;
  if (!isDark && (span.sort === "expected" || span.sort === "reserved" || isLive)) {
    const size = context.measureText(text).width;
    context.save();
    context.fillStyle = `color-mix(in srgb, ${colours.surface} 80%, transparent)`;
    context.fillRect(left - 2, box.y + box.height / 2 - 7, size + 4, 14);
    context.restore();
  }
  context.fillText(text, left, box.y + box.height / 2 + 0.5);
}

function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const letters = Math.floor((room / context.measureText(text).width) * text.length) - 1;
  return letters >= 3 ? `${text.slice(0, letters)}…` : "";
}

function largest(boxes: Box[]): number {
  let best = 0;
  boxes.forEach((one, at) => {
    if (one.height > boxes[best]!.height) best = at;
  });
  return best;
}

function outline(
  context: CanvasRenderingContext2D,
  box: Box,
  colour: string,
  dash: number[] = [],
): void {
  if (box.height < 3 || box.width < 2) return;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash(dash);
  context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  context.setLineDash([]);
}

function line(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  toX: number,
  toY: number,
  colour: string,
  thickness: number,
  dash: number[] = [],
): void {
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
  context.setLineDash([]);
}

const patterns = new Map<string, HTMLCanvasElement>();

function pattern(
  context: CanvasRenderingContext2D,
  sort: "dots" | "lines" | "cross",
  ink: string,
  paper: string,
): CanvasPattern | string {
  const key = `${sort} ${ink} ${paper}`;
  let tile = patterns.get(key);
  if (!tile) {
    tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const brush = tile.getContext("2d")!;
    brush.fillStyle = paper;
    brush.fillRect(0, 0, 6, 6);
    brush.fillStyle = brush.strokeStyle = ink;
    brush.lineWidth = 1.4;
    if (sort === "dots") {
      brush.fillRect(1, 1, 1.4, 1.4);
      brush.fillRect(4, 4, 1.4, 1.4);
    } else {
      brush.beginPath();
      for (const at of [-3, 3, 9]) {
        brush.moveTo(at - 4, 7);
        brush.lineTo(at + 4, -1);
      }
      if (sort === "cross")
        for (const at of [-3, 3, 9]) {
          brush.moveTo(at - 4, -1);
          brush.lineTo(at + 4, 7);
        }
      brush.stroke();
    }
    patterns.set(key, tile);
  }
  return context.createPattern(tile, "repeat") ?? ink;
}
