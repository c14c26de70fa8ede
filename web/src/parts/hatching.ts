// Colours and hatchings by place: what lies side by side is told apart without its colour, too.

const TONES = ["--run", "--wait", "--good", "--stop", "--hold", "--start", "--bad", "--quiet"];
/** Lines across a tile of eight by eight; the first is plain. */
const LINES: [number, number, number, number][][] = [
  [],
  [[0, 8, 8, 0]],
  [[0, 0, 8, 8]],
  [[0, 4, 8, 4]],
  [[4, 0, 4, 8]],
  [
    [0, 8, 8, 0],
    [0, 0, 8, 8],
  ],
];

export function toneOf(at: number): string {
  return TONES[at % TONES.length]!;
}

export function hatched(colour: string, ground: string, at: number): CanvasPattern | string {
  const lines = LINES[at % LINES.length]!;
  if (!lines.length) return colour;
  const tile = document.createElement("canvas");
  const size = 8 * devicePixelRatio;
  tile.width = tile.height = size;
  const context = tile.getContext("2d");
  if (!context) return colour;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.fillStyle = colour;
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = ground;
  context.lineWidth = 1.2;
  for (const [left, top, right, bottom] of lines) {
    context.moveTo(left, top);
    context.lineTo(right, bottom);
  }
  context.stroke();
  return context.createPattern(tile, "repeat") ?? colour;
}

const ANGLES = [0, 135, 45, 180, 90, 135];

/** The same as a background of CSS; what is pale is there and not ready. */
export function background(at: number, isPale = false): string {
  const tone = `var(${toneOf(at)})`;
  const colour = isPale ? `color-mix(in srgb, ${tone} 32%, var(--surface))` : tone;
  if (!LINES[at % LINES.length]!.length) return colour;
  const line = isPale ? "var(--surface)" : `color-mix(in srgb, ${tone} 45%, var(--surface))`;
  return `repeating-linear-gradient(${ANGLES[at % ANGLES.length]}deg, ${colour} 0 5px, ${line} 5px 7px)`;
}
