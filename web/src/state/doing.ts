// Wishes carried out. A workload that stands for a native object gets its queue and its priority
// from that object, so they are changed there, where they last.

import { ask, ours, patch, Refused } from "../api/client";
import type { Workload } from "../api/kinds";
import { servedAs } from "./natives";
import type { Row } from "./rows";
import { specOf, type Wish } from "./wishes";

export interface Given {
  priority: number;
  queue: string;
  hold: string;
}

export interface Done {
  said: string;
  workload?: Workload; // as it is now
  made?: string; // a new one
}

const LABELS: Record<string, string> = {
  priority: "fairway.dev/priority",
  queue: "fairway.dev/queue",
};

export async function carryOut(
  wish: Wish,
  given: Given,
  workload: Workload,
  row: Row,
): Promise<Done> {
  if (wish.what === "resubmit") return { said: "", made: await again(workload, row) };
  const label = LABELS[wish.what];
  const said = saidOf(wish, given, row);
  if (
    label &&
    (await isMarked(
      workload,
      row,
      label,
      String(wish.what === "queue" ? given.queue : given.priority),
    ))
  )
    return { said };
  return {
    said,
    workload: await patch<Workload>(ours("workloads", row.namespace, row.name), {
      spec: specOf(wish, workload, given),
    }),
  };
}

function saidOf(wish: Wish, given: Given, row: Row): string {
  switch (wish.what) {
    case "priority":
      return `Its priority is ${given.priority}.`;
    case "queue":
      return `It waits in queue ${given.queue}.`;
    case "cancel":
      return "It is cancelled.";
    case "flavor":
      return `It accepts ${wish.name} as well.`;
    case "smaller":
      return `It asks for ${wish.pods} pods.`;
    default:
      return given.hold === "None"
        ? "It goes on."
        : given.hold === "Hold" && row.places.length
          ? "It runs on, and does not start again."
          : "It is suspended.";
  }
}

async function isMarked(
  workload: Workload,
  row: Row,
  label: string,
  value: string,
): Promise<boolean> {
  const source = workload.spec.source;
  if (!source) return false;
  try {
    const { path } = await servedAs(source, row.namespace);
    await patch(path, { metadata: { labels: { [label]: value } } });
    return true;
  } catch (problem) {
    if (!(problem instanceof Refused && problem.code === 404)) throw problem;
    return false;
  }
}

async function again(workload: Workload, row: Row): Promise<string> {
  const { source: _source, cancelled: _cancelled, hold: _hold, ...spec } = workload.spec;
  const made = await ask<Workload>(ours("workloads", row.namespace), {
    method: "POST",
    body: {
      apiVersion: "fairway.dev/v1alpha1",
      kind: "Workload",
      metadata: {
        generateName: `${row.name.replace(/-again-\w+$/, "").slice(0, 200)}-again-`,
        namespace: row.namespace,
        labels: workload.metadata?.labels,
      },
      spec,
    },
  });
  return `${made.metadata?.namespace}/${made.metadata?.name}`;
}
