// Moments and spans for people.

export function moment(text: string | undefined | null): number | null {
  if (!text) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** `45 s`, `12 min`, `3.5 h`, `2 d`. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 360) / 10} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** `14:05:09`, with the day where it is another one than today. */
export function clock(at: number, now = Date.now()): string {
  const time = CLOCK.format(at);
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? time : `${DAY.format(at)} ${time}`;
}

export function whole(at: number): string {
  return new Date(at)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z/, " UTC");
}
