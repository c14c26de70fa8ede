// What all charts have in common: colours of the theme, and axes.

import type uPlot from "uplot";
import { momentsOf } from "../state/charting";

/** What a CSS variable is now: a canvas does not know them. */
export function look(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** The axis of time, and that of values. */
export function axesOf(format: (value: number) => string, size: number): uPlot.Axis[] {
  const axis = {
    stroke: look("--text-soft"),
    grid: { stroke: look("--line"), width: 1 },
    ticks: { stroke: look("--line") },
    font: "12px system-ui",
  };
  return [
    { ...axis, values: (_chart, ticks) => momentsOf(ticks), space: 80, size: 30 },
    { ...axis, values: (_chart, ticks) => ticks.map(format), size },
  ];
}
