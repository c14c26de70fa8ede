// The ladder of a service: clusters in order of preference, what each could take, and why the next
// one is used or not. The hub decides; this says what it goes by.

import type {
  Cluster,
  Explanation,
  Flavor,
  Fleet,
  PlacementPolicy,
  Queue,
  Workload,
} from "../api/kinds";
import { acceleratorsOf, amountOf, isAccelerator } from "../words/amounts";
import { nodesLeft } from "./capacity";
import { flavorOf, type Node } from "./nodes";
import type { ServicePlace } from "./services";

export interface Step {
  cluster: string;
  place: ServicePlace | null;
  /** More replicas that its idle nodes, and nodes that could come, have room for; null: not known. */
  room: number | null;
  elasticRoom: number;
  /** For one replica an hour; null: nobody said. */
  price: number | null;
  why: string;
}

export interface Group {
  name: string;
  /** Chosen by a rule that only the hub evaluates, so clusters without replicas may be missing. */
  isByRule: boolean;
  most: number | null;
  steps: Step[];
}

export interface Known {
  workload: Workload;
  places: ServicePlace[];
  policy: PlacementPolicy | null;
  clusters: Cluster[];
  /** Nodes by cluster; null where they are too many to be read. */
  nodes: Map<string, Node[]> | null;
  flavors: Flavor[];
  why: Explanation | null;
  now: number;
}

type Selector = NonNullable<NonNullable<PlacementPolicy["spec"]>["selector"]>;

/** Whether a selector chooses a cluster, as far as labels and names say. */
export function chooses(selector: Selector | undefined, cluster: Cluster): boolean {
  const name = cluster.metadata?.name ?? "";
  const labels = (cluster.metadata?.labels ?? {}) as Record<string, string>;
  if (!selector) return true;
  if (selector.exclude?.includes(name)) return false;
  if (selector.names?.length && !selector.names.includes(name)) return false;
  for (const [key, value] of Object.entries(selector.labels?.matchLabels ?? {}))
    if (labels[key] !== value) return false;
  return (selector.labels?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === "Exists") return value !== undefined;
    if (operator === "DoesNotExist") return value === undefined;
    const isIn = value !== undefined && values.includes(value);
    return operator === "In" ? isIn : !isIn;
  });
}

/** The policy of a workload: its own, else that of its queue or a parent, else the fleet's. */
export function policyOf(
  named: string,
  namespace: string,
  queue: string,
  known: {
    policies: Map<string, PlacementPolicy>;
    queues: Map<string, Queue>;
    fleet: Fleet | null;
  },
): PlacementPolicy | null {
  const system = known.fleet?.spec?.systemNamespace ?? "fairway-system";
  const { policies } = known;
  if (named)
    return policies.get(`${namespace}/${named}`) ?? policies.get(`${system}/${named}`) ?? null;
  for (
    let at = known.queues.get(queue), steps = 0;
    at && steps < 64;
    at = known.queues.get(at.spec?.parent ?? ""), steps += 1
  )
    if (at.spec?.defaults?.policy)
      return policies.get(`${system}/${at.spec.defaults.policy}`) ?? null;
  return policies.get(`${system}/${known.fleet?.spec?.defaults?.policy ?? ""}`) ?? null;
}

export function ladderOf(known: Known): Group[] {
  const { policy, clusters, places } = known;
  const spec = policy?.spec;
  const listed = spec?.groups?.length
    ? spec.groups
    : [{ name: "", selector: undefined, replicasMax: undefined }];
  const taken = new Set<string>();
  const found: Group[] = [];
  for (const group of listed) {
    const isByRule = [spec?.selector, group.selector].some((one) => one?.expressions?.length);
    const chosen = clusters.filter((cluster) => {
      const name = cluster.metadata?.name ?? "";
      if (taken.has(name)) return false;
      const isThere = places.some((one) => one.cluster === name && one.group === group.name);
      return (
        isThere ||
        (!isByRule && chooses(spec?.selector, cluster) && chooses(group.selector, cluster))
      );
    });
    for (const one of chosen) taken.add(one.metadata?.name ?? "");
    const steps = chosen
      .map((cluster) => stepOf(cluster, known))
      .filter(
        (one) => one.place || one.room !== 0 || one.elasticRoom || hasHardware(one.cluster, known),
      );
    steps.sort(
      (one, other) =>
        (other.place?.replicas ?? 0) - (one.place?.replicas ?? 0) ||
        (one.cluster < other.cluster ? -1 : 1),
    );
    found.push({ name: group.name, isByRule, most: group.replicasMax ?? null, steps });
  }
  explainSteps(found, known);
  return found;
}

/** What one replica asks for, and on which flavors it may be. */
function shapeOf(workload: Workload): { gpus: number; flavors: readonly string[] } {
  const placement = workload.status?.claim?.placements?.find((one) => one.replicas);
  let gpus = 0;
  for (const set of placement?.podSets ?? [])
    gpus += (set.count * acceleratorsOf(set.requests)) / (placement?.replicas ?? 1);
  return { gpus, flavors: workload.spec.flavors ?? [] };
}

function stepOf(cluster: Cluster, known: Known): Step {
  const name = cluster.metadata?.name ?? "";
  const { gpus, flavors } = shapeOf(known.workload);
  const isWelcome = (flavor: string) => !flavors.length || flavors.includes(flavor);
  const place = known.places.find((one) => one.cluster === name) ?? null;
  const factor = cluster.spec.priceFactor === undefined ? 1 : amountOf(cluster.spec.priceFactor);
  const nodes = known.nodes?.get(name) ?? null;
  const prices: number[] = [];
  const here = new Set(
    (nodes ?? []).filter((one) => one.gpus && isWelcome(one.flavor)).map((one) => one.flavor),
  );
  for (const flavor of known.flavors)
    if (here.has(flavor.metadata?.name ?? ""))
      for (const [resource, price] of Object.entries(flavor.spec?.prices ?? {}))
        if (isAccelerator(resource)) prices.push(amountOf(price) * factor * gpus);
  let elasticRoom = 0;
  for (const pool of poolsOf(cluster)) {
    const each = acceleratorsOf(pool.shape);
    if (
      !gpus ||
      each < gpus ||
      !isWelcome(flavorOf((pool.labels ?? {}) as Record<string, string>, known.flavors))
    )
      continue;
    elasticRoom +=
      nodesLeft(cluster, pool.name, pool.countMax, pool.stock) * Math.floor(each / gpus);
    if (!prices.length && pool.pricePerHour !== undefined)
      prices.push((amountOf(pool.pricePerHour) / each) * gpus);
  }
  const room =
    !nodes || !gpus
      ? null
      : nodes.reduce(
          (sum, one) => sum + (isWelcome(one.flavor) ? Math.floor(one.free / gpus) : 0),
          0,
        );
  return {
    cluster: name,
    place,
    room,
    elasticRoom,
    price: prices.length ? Math.min(...prices) : null,
    why: "",
  };
}

/** Elastic pools of a cluster: those that it lists, and others that its agent found. */
export function poolsOf(cluster: Cluster) {
  const listed = cluster.spec.elasticPools ?? [];
  const names = new Set(listed.map((one) => one.name));
  return [...listed, ...(cluster.status?.offeredPools ?? []).filter((one) => !names.has(one.name))];
}

/** Whether a cluster has nodes of a flavor that the service may use, full or not. */
function hasHardware(name: string, known: Known): boolean {
  const { gpus, flavors } = shapeOf(known.workload);
  const nodes = known.nodes?.get(name);
  return (
    !nodes ||
    !gpus ||
    nodes.some((one) => one.gpus >= gpus && (!flavors.length || flavors.includes(one.flavor)))
  );
}

function explainSteps(groups: Group[], known: Known): void {
  const { workload, now } = known;
  const lacks =
    (workload.spec.replicas ?? 1) -
    known.places.reduce((sum, one) => sum + (one.leaves ? 0 : one.replicas), 0);
  const home = known.policy?.spec?.returnHome;
  const avoid = workload.status?.requeue;
  const isAvoiding = avoid?.avoidUntil ? Date.parse(avoid.avoidUntil) > now : false;
  let hasRoomBefore = false;
  groups.forEach((group, rank) => {
    for (const step of group.steps) {
      const cluster = known.clusters.find((one) => one.metadata?.name === step.cluster);
      const said = [
        ...new Set(
          (known.why?.reasons ?? [])
            .filter((one) => one.cluster === step.cluster)
            .map((one) => one.message.replace(`${step.cluster}: `, "")),
        ),
      ];
      step.why =
        standing(cluster) ||
        (isAvoiding && avoid?.avoid?.includes(step.cluster)
          ? "kept away from for a while: it failed there"
          : "") ||
        step.place?.leaves ||
        (step.place
          ? placedWords(rank, hasRoomBefore, home)
          : lacks > 0
            ? said.join("; ") || "nothing more fits"
            : "not needed: every replica has a place");
      if (step.place && lacks > 0 && said.length) step.why += `; ${said.join("; ")}`;
    }
    const isFull =
      group.most !== null &&
      group.steps.reduce((sum, one) => sum + (one.place?.replicas ?? 0), 0) >= group.most;
    hasRoomBefore ||= !isFull && group.steps.some((one) => (one.room ?? 0) > 0);
  });
}

interface Home {
  enabled?: boolean;
  afterSeconds?: number;
}

function placedWords(rank: number, hasRoomBefore: boolean, home: Home | undefined): string {
  if (rank === 0) return "preferred, so it is filled first";
  if (!hasRoomBefore) return "takes what the groups before it have no room for";
  return home?.enabled
    ? `comes home once there has been room for ${home.afterSeconds ?? 600} s`
    : "stays, though there is room before it: its policy moves nothing home";
}

function standing(cluster: Cluster | undefined): string {
  if (!cluster) return "gone from the fleet";
  const phase = cluster.status?.phase || "Pending";
  if (cluster.spec.accepted === false) return "not accepted into the fleet yet";
  if (cluster.spec.mode && cluster.spec.mode !== "Manage")
    return `only looked at (mode ${cluster.spec.mode})`;
  if ((cluster.spec.hold ?? "None") !== "None") return "held: it takes nothing new";
  return (
    { Lost: "lost", Unready: "not heard of lately", Pending: "not heard of yet", Held: "held" }[
      phase
    ] ?? ""
  );
}
