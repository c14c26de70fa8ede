"""A large fleet as it stands on one day, put into the log of a store before a hub opens it.

Objects written one by one pass admission, which takes minutes for 50,000; what is measured here is
how they are read. They are whole all the same: claims name clusters that there are, reports have
the pods of what runs, and no node has more pods than it can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from fairway.api.names import report_name, work_name
from fairway.store.embedded.journal import Row, SqliteJournal

Object = dict[str, Any]

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MODELS = {"h100": "4.1", "a100": "1.9", "l40s": "0.8"}
REGIONS = ("hangzhou", "beijing", "frankfurt", "singapore", "virginia", "oregon", "tokyo", "mumbai")
PROVIDERS = ("on-premises", "cloud-a", "cloud-b")
TEAMS = 40
USERS = 120
_GPUS = 8  # of a node
_PODS = (1, 1, 2, 4, 1, 8, 2, 1)
_GPUS_EACH = (8, 4, 8, 1, 2, 8, 3)
# What comes of a hundred workloads, in the order of their numbers.
_FATES = ("Running",) * 14 + ("Claimed",) * 2 + ("Waiting",) * 54 + ("Held",) * 2
_ENDS = ("Succeeded",) * 22 + ("Failed",) * 4 + ("Cancelled",) * 2


def phase_of(number: int) -> str:
    """What became of a workload, by its number alone."""
    return (*_FATES, *_ENDS)[number * 37 % 100]


def _mixed(number: int) -> int:
    """A number without the patterns of the one it is made from, and the same every time."""
    return crc32(str(number).encode())


def nodes_of(cluster: int) -> int:
    return 16 + cluster * 7 % 49


def cluster_name(cluster: int) -> str:
    return f"{REGIONS[cluster % len(REGIONS)]}-{cluster:03d}"


def workload_name(number: int) -> str:
    return f"{('train', 'tune', 'sweep', 'embed')[number % 4]}-{number:06d}"


async def fill(data: Path, *, clusters: int, workloads: int) -> None:
    """Writes a fleet into the data folder of a hub that has none yet."""
    data.mkdir(parents=True, exist_ok=True)
    journal = SqliteJournal(data / "fairway.db", is_inline=True)
    rows: list[Row] = []
    for version, (plural, body) in enumerate(_objects(clusters, workloads), start=1):
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(version)
        namespace = metadata.get("namespace", "")
        value = msgspec.json.encode(body)
        rows.append(Row(version, "fairway.dev", plural, namespace, metadata["name"], False, value))
    await journal.append(rows, ())
    await journal.close()


def _objects(clusters: int, workloads: int) -> Iterator[tuple[str, Object]]:
    for model, price in MODELS.items():
        spec = {"nodeLabels": {"accelerator": model}, "prices": {"nvidia.com/gpu": price}}
        yield "flavors", _made("Flavor", model, spec)
    board = [_Board(number) for number in range(clusters)]
    for number in range(workloads):
        yield "workloads", _workload(number, board)
    for item in board:
        yield "clusters", _cluster(item)
        yield "clusterreports", _report(item)


@dataclass(slots=True)
class _Board:
    """A cluster while it is filled: what each node has left, and who is on it."""

    number: int
    free: list[int] = field(default_factory=list)
    works: list[Object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = [_GPUS] * nodes_of(self.number)

    @property
    def model(self) -> str:
        return tuple(MODELS)[self.number % len(MODELS)]

    def takes(self, pods: int, gpus: int) -> list[int] | None:
        """Nodes for some pods, the fullest first; None where they do not all fit."""
        found: list[int] = []
        for at in sorted(range(len(self.free)), key=lambda at: (self.free[at], at)):
            found += [at] * min(pods - len(found), self.free[at] // gpus)
        if len(found) < pods:
            return None
        for at in found:
            self.free[at] -= gpus
        return found


def _workload(number: int, board: list[_Board]) -> Object:
    team, mixed = number % TEAMS, _mixed(number)
    pods, gpus = _PODS[mixed % len(_PODS)], _GPUS_EACH[mixed // 8 % len(_GPUS_EACH)]
    place = board[mixed // 64 % len(board)] if board else None
    namespace, name, phase = f"team-{team:02d}", workload_name(number), phase_of(number)
    created = NOW - timedelta(seconds=number % 90_000)
    status: Object = {"phase": phase, "queue": f"queue-{team:02d}", "queuedAt": _stamp(created)}
    if phase in ("Running", "Claimed") and place:
        claim = _claim(place, number, (namespace, name), pods, gpus)
        status |= claim or {"phase": "Waiting", "reason": "DoesNotFit"}
    elif phase == "Waiting":
        status["reason"] = ("QuotaExceeded", "DoesNotFit", "BehindReservation")[number % 3]
    elif phase in _ENDS:
        status |= _ending(created, place, phase)
    spec = {
        "queue": f"queue-{team:02d}",
        "priority": 100 * (number % 5),
        "runSeconds": {"estimate": 3600},
        "template": {"manifests": [_manifest(name, pods, gpus)]},
    }
    made = _made("Workload", name, spec, status)
    made["metadata"] |= {
        "namespace": namespace,
        "creationTimestamp": _stamp(created),
        "labels": {"team": f"team-{team:02d}", "app.kubernetes.io/part-of": "research"},
        "annotations": {"fairway.dev/created-by": f"user-{number % USERS:03d}@example.com"},
        "managedFields": _MANAGED,
    }
    return made


def _claim(board: _Board, number: int, who: tuple[str, str], pods: int, gpus: int) -> Object | None:
    """What a decision says of one that runs or is about to; None: there is no room for it."""
    nodes = board.takes(pods, gpus)
    if nodes is None:
        return None
    is_running = phase_of(number) == "Running"
    decided = _stamp(NOW - timedelta(seconds=600 + number % 7_000))
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
    if is_running:
        counts = {at: nodes.count(at) for at in nodes}
        bound = {"nodes": list(counts), "counts": list(counts.values())}
        board.works.append(
            {"work": work_name(*who), "podSet": "main", "requests": requests, "bound": bound}
        )
    flavors = {"nvidia.com/gpu": board.model, "cpu": board.model}
    placed = {"name": "main", "count": pods, "requests": requests, "flavors": flavors}
    claim: Object = {
        "attempt": 1,
        "term": 1,
        "decidedAt": decided,
        "queue": f"queue-{number % TEAMS:02d}",
        "summary": cluster_name(board.number),
        "placements": [{"cluster": cluster_name(board.number), "attempt": 1, "podSets": [placed]}],
    }
    if not is_running:
        return {"claim": claim, "pods": {"wanted": pods}}
    return {
        "claim": claim | {"readyAt": decided},
        "startedAt": decided,
        "pods": {"wanted": pods, "ready": pods},
    }


def _ending(created: datetime, board: _Board | None, phase: str) -> Object:
    ended = _stamp(created + timedelta(hours=1))
    past = {
        "attempt": 1,
        "clusters": [cluster_name(board.number)] if board else [],
        "startedAt": _stamp(created + timedelta(minutes=5)),
        "endedAt": ended,
        "reason": phase,
    }
    return {"startedAt": past["startedAt"], "finishedAt": ended, "history": [past]}


def _manifest(name: str, pods: int, gpus: int) -> Object:
    container = {
        "name": "main",
        "image": "registry.example.com/research/training:2026-02",
        "command": ["python", "-m", "train", "--config", f"configs/{name}.yaml"],
        "env": [{"name": "NCCL_DEBUG", "value": "WARN"}, {"name": "RUN", "value": name}],
        "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": gpus}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _cluster(board: _Board) -> Object:
    at, nodes = board.number, len(board.free)
    phase = {7: "Lost", 13: "Unready"}.get(at % 41, "Ready")
    pool = {
        "name": "burst",
        "countMax": 16,
        "shape": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": _GPUS},
        "labels": {"accelerator": board.model},
        "pricePerHour": str(12 + at % 5),
        "stock": at % 9,
    }
    spec: Object = {"kubernetes": {"connection": "Pull"}}
    if PROVIDERS[at % 3] != "on-premises":
        spec["elasticPools"] = [pool]
    why = {"Lost": "it was not heard of for 4 min", "Unready": "its API server does not answer"}
    ready = {
        "type": "Ready",
        "status": "True" if phase == "Ready" else "False",
        "reason": phase,
        "message": why.get(phase, ""),
        "lastTransitionTime": _stamp(NOW - timedelta(minutes=at)),
    }
    status: Object = {
        "phase": phase,
        "driverVersion": f"v1.3{at % 4}.2",
        "agent": {"version": "0.5.0", "lastSeenAt": _stamp(NOW)},
        "nodes": nodes,
        "readyNodes": nodes,
        "workloads": len(board.works),
        "conditions": [ready],
    }
    made = _made("Cluster", cluster_name(at), spec, status)
    made["metadata"]["labels"] = {
        "topology.kubernetes.io/region": REGIONS[at % len(REGIONS)],
        "fairway.dev/provider": PROVIDERS[at % len(PROVIDERS)],
        "tier": ("gold", "silver")[at % 2],
    }
    return made


def _report(board: _Board) -> Object:
    nodes = len(board.free)
    columns = {
        "names": [f"{board.model}-{at:04d}" for at in range(nodes)],
        "unready": [nodes - 1] if board.number % 10 == 3 else [],
        "labels": [
            {"key": "accelerator", "values": [board.model] * nodes},
            {"key": "topology.fairway.dev/rack", "values": [f"r{at // 8}" for at in range(nodes)]},
        ],
        "amounts": [
            {"resource": "cpu", "unit": "1m", "allocatable": [96_000] * nodes},
            {"resource": "memory", "unit": "1Mi", "allocatable": [1 << 20] * nodes},
            {"resource": "nvidia.com/gpu", "unit": "1", "allocatable": [_GPUS] * nodes},
        ],
    }
    spec = {
        "cluster": cluster_name(board.number),
        "agentEpoch": 1,
        "sequence": 1,
        "seenAt": _stamp(NOW),
        "nodes": columns,
        "works": board.works,
    }
    return _made("ClusterReport", report_name(cluster_name(board.number), 0), spec)


def _made(kind: str, name: str, spec: Object, status: Object | None = None) -> Object:
    made: Object = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": f"{kind.lower()}-{name}",
            "generation": 1,
            "creationTimestamp": _stamp(NOW - timedelta(days=30)),
        },
        "spec": spec,
    }
    return made if status is None else made | {"status": status}


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


# Who set which field, as a store keeps it of whatever came over its API.
_MANAGED: list[Object] = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "fairway.dev/v1alpha1",
        "time": _stamp(NOW),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    for manager, fields in (
        (
            "fairway",
            {
                "f:metadata": {"f:labels": {"f:team": {}, "f:app.kubernetes.io/part-of": {}}},
                "f:spec": {"f:queue": {}, "f:priority": {}, "f:runSeconds": {"f:estimate": {}}},
            },
        ),
        ("fairway-hub", {"f:status": {"f:phase": {}, "f:queue": {}, "f:claim": {}, "f:pods": {}}}),
    )
]
