// Autoscalers: what they look at, what they decided, and why, in words.

import type { FleetAutoscaler } from "../api/kinds";
import { amountOf, short } from "../words/amounts";
import { span } from "../words/times";
import { serviceKey } from "./rollouts";

type Spec = FleetAutoscaler["spec"];
type Status = NonNullable<FleetAutoscaler["status"]>;
type Metric = NonNullable<Spec["metrics"]>[number];
type Current = NonNullable<Status["currentMetrics"]>[number];

export function keyOfAutoscaler(autoscaler: FleetAutoscaler): string {
  const { kind, name } = autoscaler.spec.target;
  return serviceKey(autoscaler.metadata?.namespace ?? "", kind, name);
}

/** `6 → 9, 2 to 12`: what was asked for, what is, and between which limits. */
export function countsOf(autoscaler: FleetAutoscaler): {
  now: number;
  wanted: number;
  least: number;
  most: number;
} {
  const { spec, status } = autoscaler;
  const isLookedAt = !!status?.observedGeneration;
  return {
    now: status?.currentReplicas ?? 0,
    wanted: status?.desiredReplicas ?? 0,
    least: (isLookedAt ? status?.minReplicas : undefined) ?? spec.minReplicas ?? 1,
    most: (isLookedAt ? status?.maxReplicas : undefined) ?? spec.maxReplicas,
  };
}

/** Why nothing is scaled; empty where all is well. */
export function troubleOfAutoscaler(autoscaler: FleetAutoscaler): string {
  for (const type of ["AbleToScale", "ScalingActive"]) {
    const found = autoscaler.status?.conditions?.find((one) => one.type === type);
    if (found?.status === "False") return found.message || found.reason || type;
  }
  return "";
}

export interface Gauge {
  name: string;
  current: string;
  target: string;
  /** Measured over wanted; null where nothing was measured. */
  ratio: number | null;
}

const PROCESSOR = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
} as unknown as Metric;

/** Each metric with what it was found to be; without any it is the processor, at 80%. */
export function gaugesOf(autoscaler: FleetAutoscaler): Gauge[] {
  const metrics = autoscaler.spec.metrics?.length ? autoscaler.spec.metrics : [PROCESSOR];
  const currents = autoscaler.status?.currentMetrics ?? [];
  return metrics.map((metric, at) => gaugeOf(metric, currents[at]));
}

interface Target {
  type: string;
  averageUtilization?: number;
  averageValue?: unknown;
  value?: unknown;
}

const OVERALL = new Set(["KVCacheUse", "TimeToFirstToken"]);

function gaugeOf(metric: Metric, current: Current | undefined): Gauge {
  const target = targetOf(metric);
  const [wanted, unit] = amountIn(target);
  const [found] = current ? foundIn(current, target.type) : [null];
  const words = (amount: number) =>
    target.type === "Utilization" ? `${short(amount)}%` : short(amount);
  return {
    name: nameOf(metric),
    current: found === null || found === undefined ? "not measured" : words(found),
    target: `${words(wanted)}${unit}`,
    ratio: found === null || found === undefined || !wanted ? null : found / wanted,
  };
}

function targetOf(metric: Metric): Target {
  const { serving } = metric;
  if (serving) {
    const type = OVERALL.has(serving.signal) ? "Value" : "AverageValue";
    return type === "Value"
      ? { type, value: serving.target }
      : { type, averageValue: serving.target };
  }
  const found =
    metric.resource ?? metric.containerResource ?? metric.pods ?? metric.object ?? metric.external;
  return (found?.target ?? { type: "Value", value: 0 }) as Target;
}

function amountIn(target: Target): [number, string] {
  if (target.type === "Utilization")
    return [target.averageUtilization ?? 0, " of what pods request"];
  if (target.type === "AverageValue") return [amountOf(target.averageValue), " for each replica"];
  return [amountOf(target.value), ""];
}

function foundIn(current: Current, type: string): [number | null] {
  const found =
    type === "Utilization"
      ? current.averageUtilization
      : type === "AverageValue"
        ? current.averageValue
        : current.value;
  return [found === undefined || found === null ? null : amountOf(found)];
}

function nameOf(metric: Metric): string {
  if (metric.serving) return `${metric.serving.engine} ${metric.serving.signal}`;
  if (metric.containerResource)
    return `${metric.containerResource.name} of container ${metric.containerResource.container}`;
  if (metric.resource) return metric.resource.name;
  if (metric.object)
    return `${metric.object.metric.name} of ${metric.object.describedObject.kind} ${metric.object.describedObject.name}`;
  return metric.pods?.metric.name ?? metric.external?.metric.name ?? metric.type;
}

type Rules = NonNullable<NonNullable<Spec["behavior"]>["scaleUp"]>;

/** How fast the count may change in one direction, as a sentence. */
export function paceOf(autoscaler: FleetAutoscaler, direction: "up" | "down"): string {
  const rules = autoscaler.spec.behavior?.[direction === "up" ? "scaleUp" : "scaleDown"] as
    Partial<Rules> | undefined;
  if (rules?.selectPolicy === "Disabled") return "never";
  const policies = rules?.policies?.length ? rules.policies : DEFAULTS[direction];
  const listed = policies.map(
    (one) =>
      `${short(one.value)}${one.type === "Percent" ? "%" : ""} in ${span(one.periodSeconds * 1000)}`,
  );
  const joined = listed.join(rules?.selectPolicy === "Min" ? " and " : " or ");
  const window = rules?.stabilizationWindowSeconds ?? (direction === "up" ? 0 : 300);
  const held = window ? `, held back for ${span(window * 1000)}` : "";
  return `at most ${joined}${held}`;
}

const DEFAULTS = {
  up: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
  down: [{ type: "Percent", value: 100, periodSeconds: 15 }],
};
