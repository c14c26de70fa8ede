// Services: workloads whose replicas are divided over clusters, with what scales and updates them.

import type { Cluster, FleetAutoscaler, PlacementPolicy, Rollout, Workload } from "../api/kinds";
import type { Tone } from "../words/phases";
import { plural } from "../words/amounts";
import { keyOfAutoscaler, troubleOfAutoscaler } from "./autoscalers";
import { keyOfRollout, saidOfRollout } from "./rollouts";
import type { Row } from "./rows";

export interface ServicePlace {
  cluster: string;
  group: string;
  replicas: number;
  ready: number;
  weight: number;
  /** Why it is still there though it leaves; empty: it stays. */
  leaves: string;
}

/** What a row keeps of a service. */
export interface ServicePart {
  wanted: number;
  surge: number;
  placed: number;
  ready: number;
  policy: string;
  places: ServicePlace[];
  isNative: boolean;
}

const LEAVES: Record<string, string> = {
  Now: "leaves now",
  WhenReplaced: "leaves when it is replaced",
  WithinBudget: "leaves as the disruption budget allows",
  AfterTraffic: "leaves after its traffic",
};

/** What is read of a service, of the workload itself or of its row. */
interface Read {
  wanted: number;
  surge: number;
  policy: string;
  isNative: boolean;
  pods: { wanted: number; ready: number };
  placements: { cluster: string; group: string; replicas: number }[];
  releasing: {
    cluster: string;
    group: string;
    replicas: number;
    leaves: string;
    givesWayTo: string;
  }[];
  traffic: { cluster: string; ready: number; weight: number }[];
}

/** The last cell of a row: surge, policy, native, pods ready, placements, what leaves, traffic. */
export type ServiceCell = [
  surge: number,
  policy: string,
  isNative: boolean,
  ready: number,
  placements: [string, string, number][],
  releasing: [string, string, number, string, string][],
  traffic: [string, number, number][],
];

export function servicePartFrom(
  cell: ServiceCell,
  replicas: number | null,
  pods: number,
): ServicePart {
  const [surge, policy, isNative, ready, placements, releasing, traffic] = cell;
  return partOf({
    wanted: replicas ?? 1,
    surge,
    policy,
    isNative,
    pods: { wanted: pods, ready },
    placements: placements.map(([cluster, group, count]) => ({ cluster, group, replicas: count })),
    releasing: releasing.map(([cluster, group, count, leaves, givesWayTo]) => ({
      cluster,
      group,
      replicas: count,
      leaves,
      givesWayTo,
    })),
    traffic: traffic.map(([cluster, there, weight]) => ({ cluster, ready: there, weight })),
  });
}

export function servicePartOf({ spec, status = {} }: Workload): ServicePart {
  const named = (one: { cluster: string; group?: string; replicas?: number | null }) => ({
    cluster: one.cluster,
    group: one.group ?? "",
    replicas: one.replicas ?? 0,
  });
  return partOf({
    wanted: spec.replicas ?? 1,
    surge: status.surgeReplicas ?? 0,
    policy: spec.policy ?? "",
    isNative: !!spec.source,
    pods: { wanted: status.pods?.wanted ?? 0, ready: status.pods?.ready ?? 0 },
    placements: (status.claim?.placements ?? []).map(named),
    releasing: (status.releasing ?? []).map((one) => ({
      ...named(one),
      leaves: one.leaves ?? "Now",
      givesWayTo: one.givesWayTo ?? "",
    })),
    traffic: (status.traffic ?? []).map((one) => ({
      cluster: one.cluster,
      ready: one.ready ?? 0,
      weight: one.weight ?? 0,
    })),
  });
}

function partOf(read: Read): ServicePart {
  const shares = new Map(read.traffic.map((one) => [one.cluster, one]));
  const placed = read.placements.reduce((sum, one) => sum + one.replicas, 0);
  const each = placed && read.pods.wanted > placed ? read.pods.wanted / placed : 1;
  const ready = Math.floor(read.pods.ready / each);
  const place = ({ cluster, group, replicas }: Read["placements"][number]): ServicePlace => {
    const share = shares.get(cluster);
    // Shares are written seldom, and not at once: where all or one place is ready, that says more.
    const here =
      ready >= placed ? replicas : read.placements.length === 1 ? ready : (share?.ready ?? 0);
    return {
      cluster,
      group,
      replicas,
      ready: Math.min(replicas, here),
      weight: share?.weight ?? 0,
      leaves: "",
    };
  };
  const leaving = ({
    cluster,
    group,
    replicas,
    leaves,
    givesWayTo,
  }: Read["releasing"][number]): ServicePlace => ({
    cluster,
    group,
    replicas,
    ready: 0,
    weight: 0,
    leaves: givesWayTo ? `gives way to ${givesWayTo}` : (LEAVES[leaves] ?? "leaves"),
  });
  const { wanted, surge, policy, isNative } = read;
  return {
    wanted,
    surge,
    placed,
    ready,
    policy,
    isNative,
    places: [...read.placements.map(place), ...read.releasing.map(leaving)],
  };
}

/** The same with shares that were worked out just now. */
export function withShares(
  part: ServicePart,
  shares: { cluster: string; weight: number; ready: number }[],
): ServicePart {
  const known = new Map(shares.map((one) => [one.cluster, one]));
  const places = part.places.map((one) => {
    const share = one.leaves ? undefined : known.get(one.cluster);
    return share
      ? { ...one, ready: Math.min(one.replicas, share.ready), weight: share.weight }
      : one;
  });
  return { ...part, places };
}

export interface Service {
  key: string;
  row: Row;
  part: ServicePart;
  autoscaler: FleetAutoscaler | null;
  rollout: Rollout | null;
  trouble: { tone: Tone; text: string } | null;
  /** Replicas beyond the first group of its policy. */
  burst: number;
}

/** What else is known when services are put together. */
export interface Around {
  autoscalers: FleetAutoscaler[];
  rollouts: Rollout[];
  clusters: Cluster[];
  policyOf: (row: Row) => PlacementPolicy | null;
}

export function servicesOf(rows: Row[], around: Around): Service[] {
  const autoscalers = new Map(around.autoscalers.map((one) => [keyOfAutoscaler(one), one]));
  const rollouts = new Map(around.rollouts.map((one) => [keyOfRollout(one), one]));
  const phases = new Map(
    around.clusters.map((one) => [one.metadata?.name ?? "", one.status?.phase ?? "Pending"]),
  );
  const found: Service[] = [];
  for (const row of rows) {
    if (!row.service) continue;
    const policy = around.policyOf(row);
    const groups = groupsOf(policy);
    const places = row.service.places.toSorted(byPreference(groups));
    // Replicas that count for their speed are fewer than asked for where they are fast.
    const isBySpeed = policy?.spec?.division?.countBy === "Speed";
    const part = {
      ...row.service,
      places,
      wanted: isBySpeed ? Math.min(row.service.wanted, row.service.placed) : row.service.wanted,
    };
    const autoscaler = autoscalers.get(row.key) ?? null;
    const rollout = rollouts.get(row.key) ?? null;
    found.push({
      key: row.key,
      row,
      part,
      autoscaler,
      rollout,
      trouble: troubleOf(row, part, autoscaler, rollout, phases),
      burst:
        groups.length > 1
          ? places.reduce((sum, one) => sum + (one.group !== groups[0] ? one.replicas : 0), 0)
          : 0,
    });
  }
  return found;
}

/** The groups of a policy, in order of preference. */
export function groupsOf(policy: PlacementPolicy | null): string[] {
  return (policy?.spec?.groups ?? []).map((one) => one.name);
}

/** Places in the order in which their groups are preferred; in a group, the largest first. */
function byPreference(groups: string[]): (one: ServicePlace, other: ServicePlace) => number {
  const rank = (place: ServicePlace) =>
    groups.includes(place.group) ? groups.indexOf(place.group) : groups.length;
  return (one, other) =>
    Number(!!one.leaves) - Number(!!other.leaves) ||
    rank(one) - rank(other) ||
    other.replicas - one.replicas ||
    (one.cluster < other.cluster ? -1 : 1);
}

const OVER = new Set(["Held", "Cancelled", "Failed", "Stopping"]);

/** What is wrong with a service, in words; the worst of it. */
function troubleOf(
  row: Row,
  part: ServicePart,
  autoscaler: FleetAutoscaler | null,
  rollout: Rollout | null,
  phases: Map<string, string>,
): Service["trouble"] {
  if (OVER.has(row.phase))
    return {
      tone: row.phase === "Failed" ? "bad" : "hold",
      text: `It is ${row.phase.toLowerCase()}`,
    };
  const lost = part.places.filter((one) => one.replicas && phases.get(one.cluster) === "Lost");
  if (lost.length)
    return { tone: "bad", text: `${lost.map((one) => one.cluster).join(", ")} is lost` };
  if (rollout) {
    const said = saidOfRollout(rollout);
    if (said.tone === "bad")
      return {
        tone: "bad",
        text: `New version ${said.word}: ${rollout.status?.message || rollout.status?.reason || rollout.status?.failure || ""}`,
      };
  }
  if (part.wanted && !part.ready)
    return {
      tone: part.placed ? "wait" : "bad",
      text: part.placed ? "None is ready yet" : "None has a place",
    };
  const fault = autoscaler ? troubleOfAutoscaler(autoscaler) : "";
  if (fault) return { tone: "wait", text: `Not scaled: ${fault}` };
  if (part.placed < part.wanted)
    return {
      tone: "wait",
      text: `${plural(part.wanted - part.placed, "more replica is", "more replicas are")} pending`,
    };
  if (part.ready < part.placed)
    return {
      tone: "start",
      text: `${plural(part.placed - part.ready, "replica is", "replicas are")} not ready yet`,
    };
  return null;
}

export const SHOWN: Record<string, { word: string; holds: (one: Service) => boolean }> = {
  trouble: {
    word: "In trouble",
    holds: (one) => one.trouble !== null && one.trouble.tone !== "start",
  },
  rollout: {
    word: "Rolling out",
    holds: (one) => !!one.rollout && saidOfRollout(one.rollout).isUnderWay,
  },
  approval: {
    word: "Waiting for approval",
    holds: (one) => one.rollout?.status?.phase === "AwaitingApproval",
  },
  autoscaled: { word: "Autoscaled", holds: (one) => one.autoscaler !== null },
  burst: { word: "Bursting", holds: (one) => one.burst > 0 },
};

const WORST: Record<string, number> = { bad: 0, wait: 1, hold: 2, start: 3 };
const byKey = (one: Service, other: Service) => (one.key < other.key ? -1 : 1);
const worst = (one: Service) => WORST[one.trouble?.tone ?? ""] ?? 9;

export const SORTS: Record<string, (one: Service, other: Service) => number> = {
  name: byKey,
  trouble: (one, other) => worst(one) - worst(other) || byKey(one, other),
  wanted: (one, other) => other.part.wanted - one.part.wanted || byKey(one, other),
  lacking: (one, other) =>
    other.part.wanted - other.part.ready - (one.part.wanted - one.part.ready) || byKey(one, other),
  burst: (one, other) => other.burst - one.burst || byKey(one, other),
};
