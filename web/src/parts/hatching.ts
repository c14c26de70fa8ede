// Colours and hatchings by place: what lies side by side is told apart without its colour, too.

const TONES = ["--run", "--wait", "--good", "--stop", "--hold", "--start", "--bad", "--quiet"];
/** Lines across a tile of eight by eight; the first is plain. */
const LINES: [number, number, number, number][][] = [[], [[0, 8, 8, 0]], [[0, 0, 8, 8]], [[0, 4, 8, 4]], [[4, 0, 4, 8]], [[0, 8, 8, 0], [0, 0, 8, 8]]];

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

/** The same as a path for a swatch of fourteen by ten. */
export function swatch(at: number): string {
  return LINES[at % LINES.length]!.map(([left, top, right, bottom]) => `M${left * 1.75} ${top * 1.25}L${right * 1.75} ${bottom * 1.25}`).join("");
}
