"""Small fleets in a line each: defaults are complete, only what matters is named.

Everything is a plain manifest, as a user would write it, so a table of small fleets tests the way
from manifests to a plan. `told` says a plan in lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.api.reasons import sentence
from fairway.clock import timestamp
from fairway.core.cycle import plan
from fairway.core.plan import Admit, Move, Plan, Preempt, Provision
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects

NOW = 1_794_729_600.0  # 2026-11-15 08:00 UTC
GPU = "nvidia.com/gpu"
Plain = dict[str, Any]


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Plain:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }


def flavor(name: str, **spec: Any) -> Plain:
    return _object("Flavor", name, {"nodeLabels": {"accelerator": name}, **spec})


def cluster(
    name: str,
    *gpus: int,
    model: str = "h100",
    labels: Mapping[str, str] | None = None,
    racks: int = 0,
    extra: Mapping[str, str] | None = None,
    pools: Sequence[Plain] = (),
    pods: int | None = 110,
    **spec: Any,
) -> Plain:
    """A simulated cluster with one node for each number of GPUs; `extra` labels all of them.

    Each node takes this number of pods; None: it does not say how many.
    """
    most = {} if pods is None else {"pods": pods}
    node_pools = [
        {
            "name": f"n{number}",
            "count": 1,
            "shape": {"cpu": "64", "memory": "512Gi", GPU: count, **most},
            "labels": {
                "accelerator": model,
                **(extra or {}),
                **({"rack": f"r{number // racks}"} if racks else {}),
            },
        }
        for number, count in enumerate(gpus)
    ]
    topology = [{"name": "rack", "nodeLabel": "rack"}] if racks else []
    return _object(
        "Cluster",
        name,
        {
            "simulated": {"nodePools": node_pools},
            "elasticPools": list(pools),
            "topology": topology,
            **spec,
        },
        labels=dict(labels or {}),
    )


def pool(
    name: str, gpus: int, *, stock: int, model: str = "h100", pods: int | None = 110, **more: Any
) -> Plain:
    shape = {"cpu": "64", "memory": "512Gi", GPU: gpus}
    shape |= {} if pods is None else {"pods": pods}
    return {
        "name": name,
        "shape": shape,
        "labels": {"accelerator": model},
        "countMax": 100,
        "stock": stock,
        **more,
    }


def queue(name: str, nominal: int | None = None, *, parent: str = "", **spec: Any) -> Plain:
    """A queue that owns so many H100, or nothing of its own."""
    quota = spec.pop("quotas", {"h100": nominal} if nominal is not None else {})
    limits = {key: spec.pop(key) for key in ("borrowingLimit", "lendingLimit") if key in spec}
    groups = [
        {
            "resources": [GPU],
            "flavors": [
                {"name": value, "quotas": [{"resource": GPU, "nominal": count, **limits}]}
                for value, count in quota.items()
            ],
        }
    ]
    return _object(
        "Queue",
        name,
        {
            **({"parent": parent} if parent else {}),
            "uncovered": "Unlimited",
            "resourceGroups": groups if quota else [],
            **spec,
        },
    )


def workload(
    name: str,
    in_queue: str,
    *,
    count: int = 1,
    gpus: int = 1,
    running: str | Mapping[str, int] = "",
    holds: int | None = None,
    on: str = "h100",
    since: int = 7200,
    waited: int = 60,
    pod_sets: Sequence[Plain] | None = None,
    **spec: Any,
) -> Plain:
    """A gang of equal pods; `running` names the cluster where it holds a claim.

    A service holds as many replicas as it asks for, unless `holds` says how many, or `running` how
    many in which cluster.
    """
    requests = {"cpu": "1", GPU: gpus}
    sets = pod_sets or [{"name": "worker", "count": count, "requests": requests}]
    for key in ("leastCount", "topology", "memberSize"):
        if key in spec and pod_sets is None:
            sets[0] = {**sets[0], key: spec.pop(key)}
    made = _object(
        "Workload",
        name,
        {"queue": in_queue, "podSets": list(sets), **spec},
        namespace="team",
        creationTimestamp=_moment(NOW - (since if running else waited)),
    )
    if running:
        replicas = spec.get("replicas") if holds is None else holds
        made["status"] = _claimed(sets, running, on, in_queue, since, replicas)
    return made


def _claimed(
    sets: Sequence[Plain],
    where: str | Mapping[str, int],
    on: str,
    in_queue: str,
    since: int,
    replicas: int | None,
) -> Plain:
    counts = {where: replicas} if isinstance(where, str) else where
    placements = [
        {
            "cluster": cluster,
            "podSets": [
                {
                    "name": set_["name"],
                    "count": set_.get("count", 1) * (many or 1),
                    "requests": set_["requests"],
                    "flavors": {GPU: on},
                }
                for set_ in sets
            ],
            **({} if many is None else {"replicas": many}),
        }
        for cluster, many in counts.items()
    ]
    moment = _moment(NOW - since)
    return {
        "phase": "Running",
        "startedAt": moment,
        "claim": {
            "attempt": 1,
            "term": 1,
            "decidedAt": moment,
            "readyAt": moment,
            "queue": in_queue,
            "placements": placements,
        },
    }


def leaving(made: Plain, attempt: int = 1) -> Plain:
    """A workload that held a place and is on its way out."""
    held = made["status"].pop("claim")["placements"][0]
    made["status"] |= {"phase": "Stopping", "releasing": [{**held, "attempt": attempt}]}
    return made


def policy(name: str, *groups: Sequence[str], **spec: Any) -> Plain:
    """A policy of the system with groups of named clusters, in order."""
    listed = [
        {"name": f"g{number}", "selector": {"names": list(names)}}
        for number, names in enumerate(groups)
    ]
    return _object("PlacementPolicy", name, {"groups": listed, **spec}, namespace="fairway-system")


def fleet_policy(name: str, **spec: Any) -> Plain:
    made = _object("FleetPolicy", name, spec)
    return {**made, "apiVersion": "governance.fairway.dev/v1alpha1"}


def namespace(name: str, **labels: str) -> Plain:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def fleet(**spec: Any) -> Plain:
    return _object("Fleet", "fleet", spec)


def _moment(seconds: float) -> str:
    return timestamp(seconds)


H100 = flavor("h100")


def plan_of(*objects: Plain, now: float = NOW) -> Plan:
    made, _ = plan(Snapshot(Objects.of([H100, *objects]).facts(now)))
    return made


def told(made: Plan) -> list[str]:
    """A plan in lines: every step, then who waits and the codes of why, then warnings."""
    return (
        [_step(step) for step in made.steps]
        + [
            f"{item.workload.removeprefix('team/')} waits: "
            + ", ".join(dict.fromkeys(reason.code.value for reason in item.reasons))
            for item in made.waiting
        ]
        + [f"warning: {sentence(warning)}" for warning in made.warnings]
    )


def _step(step: Admit | Preempt | Provision | Move) -> str:
    name = step.workload.removeprefix("team/")
    match step:
        case Admit():
            places = " + ".join(_place(item) for item in step.placed)
            form = f" as {step.form}" if step.form else ""
            after = ", ".join(item.removeprefix("team/") for item in step.waits_for)
            left = ", ".join(f"{why.count} in {why.cluster}" for why in step.reasons)
            verb = f"leaves {left}, is" if step.leaving else "starts"
            verb = "is rebalanced" if step.is_rebalanced else verb
            return f"{name} {verb}{form} in {places}" + (f" after {after}" if after else "")
        case Preempt():
            return f"{name} yields to {step.for_.removeprefix('team/')}"
        case Provision():
            return f"{name} gets {step.count} of {step.cluster}/{step.pool}"
        case Move() if step.stops_first:
            return (
                f"{name} stops {step.count} in {step.source}, then moves to {step.placed.cluster}"
            )
        case Move():
            return f"{name} moves {step.count} from {step.source} to {step.placed.cluster}"


def _place(placed: Any) -> str:
    pods = "+".join(
        f"{pod.count}@{','.join(sorted({f for _, f in pod.flavors if f})) or '-'}"
        for pod in placed.pods
    )
    return f"{placed.cluster or 'nowhere'}:{pods}"
