// Keys that do something anywhere on a page, unless somebody types or has a dialog before them.

export function isFree(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return false;
  return !(event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog"));
}

/** `/` goes to the field to search in. */
export function toSearch(event: KeyboardEvent, field: HTMLElement | undefined): void {
  if (event.key !== "/" || !field || !isFree(event)) return;
  event.preventDefault();
  field.focus();
}
