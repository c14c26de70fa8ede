// Native objects: where they are served, and what is allowed with them.

import { ask, ours, patch, pathIn, Refused, SERVING } from "../api/client";
import type { Revision, Rollout, Workload } from "../api/kinds";
import { type Json, type Note, restored, revisionName } from "./rollouts";

export interface Served {
  group: string;
  plural: string;
  path: string;
  hasScale: boolean;
}

type Source = { apiVersion?: string; kind?: string; name: string };

/** Where the object is that a workload stands for. */
export async function servedAs(source: Source, namespace: string): Promise<Served> {
  const version = source.apiVersion ?? "v1";
  const root = version.includes("/") ? `/apis/${version}` : `/api/${version}`;
  const found = await ask<{ resources: { name: string; kind: string }[] }>(root);
  const resource = found.resources.find(
    (one) => one.kind === source.kind && !one.name.includes("/"),
  );
  if (!resource) throw new Refused(404, `${source.kind} is not served`);
  return {
    group: version.includes("/") ? (version.split("/")[0] ?? "") : "",
    plural: resource.name,
    path: pathIn(root, resource.name, namespace, source.name),
    hasScale: found.resources.some((one) => one.name === `${resource.name}/scale`),
  };
}

/** Another number of replicas, written where it belongs. */
export async function scale(workload: Workload, replicas: number): Promise<void> {
  const { namespace = "", name = "" } = workload.metadata ?? {};
  const { source } = workload.spec;
  if (!source) {
    await patch(ours("workloads", namespace, name), { spec: { replicas } });
    return;
  }
  const served = await servedAs(source, namespace);
  if (!served.hasScale) throw new Refused(405, `${source.kind} ${source.name} cannot be scaled`);
  await patch(`${served.path}/scale`, { spec: { replicas } });
}

export async function templateOf(rollout: Rollout, note: Note): Promise<Json[]> {
  const { namespace = "", name = "" } = rollout.metadata ?? {};
  const found = await ask<Revision>(
    pathIn(SERVING, "revisions", namespace, await revisionName(name, note.mark)),
  );
  return (found.spec.template.manifests ?? []) as Json[];
}

/** Gives a service an earlier template again: in the workload, or in the object it stands for. */
export async function undo(workload: Workload, rollout: Rollout, note: Note): Promise<void> {
  const { namespace = "", name = "" } = workload.metadata ?? {};
  const [first = {}, ...others] = await templateOf(rollout, note);
  const { source } = workload.spec;
  if (source) {
    const { path } = await servedAs(source, namespace);
    const native = await ask<Json>(path);
    await ask(path, { method: "PUT", body: restored(native, first) });
    return;
  }
  const path = ours("workloads", namespace, name);
  const now = await ask<Workload>(path);
  const manifests = [restored((now.spec.template?.manifests?.[0] ?? {}) as Json, first), ...others];
  await ask(path, {
    method: "PUT",
    body: { ...now, spec: { ...now.spec, template: { manifests } } },
  });
}
