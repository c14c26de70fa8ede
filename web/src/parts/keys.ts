// Keys that do something anywhere on a page, unless somebody types or has a dialog before them.
// Those that are a single character can be turned off: who speaks to a machine types them unawares.

const KEY = "fairway.keys";

export function areSingleKeysOn(): boolean {
  return localStorage.getItem(KEY) !== "off";
}

export function turnSingleKeys(isOn: boolean): void {
  if (isOn) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, "off");
}

export function isFree(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return false;
  return !(
    event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog")
  );
}

/** Whether a single character is meant as a command. */
export function isCommand(event: KeyboardEvent): boolean {
  return isFree(event) && areSingleKeysOn();
}

/** `/` goes to the field to search in. */
export function toSearch(event: KeyboardEvent, field: HTMLElement | undefined): void {
  if (event.key !== "/" || !field || !isCommand(event)) return;
  event.preventDefault();
  field.focus();
}
