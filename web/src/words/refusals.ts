// What is not for somebody: no fault, but how things are.

/** How each of these sentences begins. */
export const REFUSED = "You may not";

export function isRefusal(text: string): boolean {
  return text.startsWith(REFUSED);
}
