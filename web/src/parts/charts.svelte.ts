import type uPlot from "uplot";
import { fetched } from "../state/chunks";

/** The library that draws charts, fetched with the first of them; tables say the same without it. */
class Charts {
  Plot = $state.raw<typeof uPlot | null>(null);

  async fetch(): Promise<void> {
    if (this.Plot) return;
    try {
      this.Plot = (await fetched(() => import("uplot"))).default;
    } catch {
      // The next chart tries again.
    }
  }
}

export const charts = new Charts();
