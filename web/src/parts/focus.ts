// Where one is after a dialog.

import { tick } from "svelte";

/** The browser goes back to what opened it; where that cannot be pressed any more, to the first beside it that can. */
export async function focusAfter(dialog: HTMLDialogElement | undefined): Promise<void> {
  await tick();
  if (document.activeElement?.matches(":enabled, a")) return;
  dialog?.previousElementSibling?.querySelector<HTMLElement>("button:enabled")?.focus();
}
