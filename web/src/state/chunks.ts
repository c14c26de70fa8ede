// Parts of the page that are fetched when they are needed. Their names carry a digest of what is in
// them, so after an upgrade of the hub a page that was open before asks for files that are gone.

const LEFT = "fairway.left";

/** Fetches a part; where the hub serves another page by now, that one is loaded, once. */
export async function fetched<Part>(fetch: () => Promise<Part>): Promise<Part> {
  try {
    return await fetch();
  } catch (problem) {
    if (await isOutdated()) {
      sessionStorage.setItem(LEFT, entry());
      location.reload();
    }
    throw problem;
  }
}

/** Replicas of two versions may answer in turns: a page that was left once is not left again. */
async function isOutdated(): Promise<boolean> {
  if (!entry() || sessionStorage.getItem(LEFT) === entry()) return false;
  try {
    const answer = await fetch(import.meta.env.BASE_URL, { cache: "no-store" });
    return answer.ok && !(await answer.text()).includes(entry());
  } catch {
    return false; // The hub cannot be reached: what is shown is better than nothing.
  }
}

/** The script that this page began with. */
function entry(): string {
  return document.querySelector('script[type="module"]')?.getAttribute("src") ?? "";
}
