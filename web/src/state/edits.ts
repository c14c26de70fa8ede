// Edits of a what-if: what a person puts together, in words, and as the document that the hub takes
// and that `fairway plan --if` reads.

import { plural } from "../words/amounts";

export interface WorkloadEdit {
  kind: "workload";
  sort: "Job" | "Deployment" | "Sweep";
  name: string;
  namespace: string;
  queue: string;
  flavor: string; // empty: any
  resource: string;
  pods: number;
  gpus: number; // of each pod
  priority: number;
  minutes: number; // 0: it does not say
}

export type Edit =
  | WorkloadEdit
  | { kind: "manifests"; text: string }
  | {
      kind: "quota";
      queue: string;
      flavor: string;
      resource: string;
      nominal: string;
      before: string;
    }
  | { kind: "lost"; cluster: string }
  | { kind: "copy"; name: string; of: string; labels: Record<string, string>; priceFactor: string }
  | {
      kind: "cluster";
      name: string;
      flavor: string;
      count: number;
      shape: Record<string, string>;
      labels: Record<string, string>;
      priceFactor: string;
    };

type Plain = Record<string, unknown>;

/** All edits as one document; what is not used is left out. */
export function changeOf(edits: Edit[]): Plain {
  const found: Record<string, unknown[]> = { lose: [], quota: [], clusters: [], apply: [] };
  const texts: string[] = [];
  for (const edit of edits)
    switch (edit.kind) {
      case "workload":
        found.apply!.push(workloadOf(edit));
        break;
      case "manifests":
        texts.push(edit.text.trim());
        break;
      case "quota":
        found.quota!.push({
          queue: edit.queue,
          flavor: edit.flavor,
          resource: edit.resource,
          nominal: edit.nominal,
        });
        break;
      case "lost":
        found.lose!.push(edit.cluster);
        break;
      case "copy":
        found.clusters!.push({ name: edit.name, copyOf: edit.of, ...labelled(edit) });
        break;
      case "cluster":
        found.clusters!.push({
          name: edit.name,
          nodes: [{ flavor: edit.flavor, count: edit.count, shape: edit.shape }],
          ...labelled(edit),
        });
    }
  const used = Object.fromEntries(Object.entries(found).filter(([, many]) => many.length));
  return texts.length ? { ...used, manifests: `${texts.join("\n---\n")}\n` } : used;
}

function labelled(edit: { labels: Record<string, string>; priceFactor: string }): Plain {
  return {
    ...(Object.keys(edit.labels).length ? { labels: edit.labels } : {}),
    ...(edit.priceFactor && Number(edit.priceFactor) !== 1
      ? { priceFactor: edit.priceFactor }
      : {}),
  };
}

function workloadOf(edit: WorkloadEdit): Plain {
  const limits = {
    cpu: "4",
    memory: "16Gi",
    ...(edit.gpus > 0 ? { [edit.resource]: String(edit.gpus) } : {}),
  };
  const containers = [{ name: "main", image: "what-if", resources: { limits } }];
  const isService = edit.sort === "Deployment";
  const manifest = isService
    ? {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: edit.name },
        spec: {
          selector: { matchLabels: { app: edit.name } },
          template: { metadata: { labels: { app: edit.name } }, spec: { containers } },
        },
      }
    : {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: edit.name },
        spec: {
          parallelism: edit.pods,
          completions: edit.pods,
          template: { spec: { restartPolicy: "Never", containers } },
        },
      };
  return {
    apiVersion: "fairway.dev/v1alpha1",
    kind: "Workload",
    metadata: { name: edit.name, namespace: edit.namespace },
    spec: {
      queue: edit.queue,
      ...(edit.priority ? { priority: edit.priority } : {}),
      ...(edit.flavor ? { flavors: [edit.flavor] } : {}),
      ...(isService ? { mode: "Divided", replicas: edit.pods } : {}),
      ...(edit.sort === "Sweep" ? { mode: "Independent", tasks: { count: edit.pods } } : {}),
      ...(edit.minutes > 0 && !isService
        ? { runSeconds: { estimate: Math.round(edit.minutes * 60) } }
        : {}),
      template: { manifests: [manifest] },
    },
  };
}

const SORTS = { Job: "a job of", Deployment: "a service of", Sweep: "a sweep of" };
const PARTS = { Job: "pod", Deployment: "replica", Sweep: "task" };

/** One edit in words. */
export function wordsOf(edit: Edit): string {
  switch (edit.kind) {
    case "workload":
      return `${edit.namespace}/${edit.name}: ${SORTS[edit.sort]} ${plural(edit.pods, PARTS[edit.sort])} with ${plural(edit.gpus, "GPU")}${edit.flavor ? ` ${edit.flavor}` : ""} each, in queue ${edit.queue}${edit.priority ? `, priority ${edit.priority}` : ""}`;
    case "manifests":
      return `manifests: ${
        [...edit.text.matchAll(/^\s*"?kind"?:\s*"?(\w+)/gm)]
          .map((one) => one[1])
          .slice(0, 3)
          .join(", ") || "as written"
      }`;
    case "quota":
      return `${edit.queue} owns ${edit.nominal} ${edit.flavor} instead of ${edit.before || "0"}`;
    case "lost":
      return `${edit.cluster} is lost, with all that runs there`;
    case "copy":
      return `a new cluster ${edit.name} with the nodes of ${edit.of}${aside(edit)}`;
    case "cluster":
      return `a new cluster ${edit.name} with ${plural(edit.count, "node")} of ${edit.flavor}${aside(edit)}`;
  }
}

function aside(edit: { labels: Record<string, string>; priceFactor: string }): string {
  const region = edit.labels["topology.kubernetes.io/region"];
  const price =
    edit.priceFactor && Number(edit.priceFactor) !== 1
      ? `, at ${edit.priceFactor} × the price`
      : "";
  return `${region ? `, in ${region}` : ""}${price}`;
}
