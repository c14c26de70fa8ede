"""The metrics of a fleet, as a table: their names and labels are part of what the hub promises.

The leader's controllers give the numbers, the server serves them, alerts and the dashboard query
them, and docs/guides/metrics.md lists them. A workload is never a label. Every other label has a
limit; what is beyond it is counted as `other`, and so is every label of a metric that has too many
series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

OTHER: Final = "other"
SERIES_MOST: Final = 5_000  # sets of labels of one metric; one more has `other` in every label

# How many values of a label are shown; labels that are not here have a closed set of values.
VALUES_MOST: Final[Mapping[str, int]] = {
    "queue": 500,
    "parent": 500,
    "cluster": 500,
    "flavor": 50,
    "resource": 16,
    "reason": 200,
    "cause": 200,
}
# What each label says, for readers of the guide.
MEANINGS: Final[Mapping[str, str]] = {
    "queue": "name of a queue",
    "parent": "the queue above; empty for a root, so that a sum over roots counts everything once",
    "cluster": "name of a cluster",
    "flavor": "name of a flavor; `-` if a node or a pod has none",
    "resource": "a resource, such as `nvidia.com/gpu`",
    "reason": "a reason code, as in `fairway why`; `NotYetKnown` until the first decision",
    "cause": "a reason code, or a cause of a failure",
    "blame": "`Place`, `Program`, `Decision` (of the hub or a user) or `Unknown`",
    "state": (
        "`allocated`; `starting`: claimed, and not ready yet; `idle`; `closed`: free in a cluster "
        "that takes nothing now; `unready`: on nodes that take no pods"
    ),
    "phase": "phase of a cluster",
    "breaker": "`Preemptions`, `Moves`, `Deletions` or `Price`",
    "kind": "`workloads`, `queues`, `clusters` or `nodes`",
    "direction": "`early`: it started before the time forecast; `late`: after it",
}

_WAIT_SECONDS = (1, 5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 259_200)
_ERROR_SECONDS = (5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 259_200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. The name of a counter is without `_total`, which Prometheus sees."""

    name: str
    type: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    folds: Literal["sum", "max"] = "sum"  # how series that are shown as `other` become one


_HOLDING = ("queue", "parent", "flavor", "resource")

WAITING = Metric(
    name="fairway_workloads_waiting",
    type="gauge",
    help="Pending workloads of a queue itself, by why they wait.",
    labels=("queue", "reason"),
)
OLDEST_WAIT = Metric(
    name="fairway_oldest_wait_seconds",
    type="gauge",
    help="How long the oldest pending workload of a queue itself has waited; 0 if none waits.",
    labels=("queue",),
    folds="max",
)
RUNNING = Metric(
    name="fairway_workloads_running",
    type="gauge",
    help="Workloads that run, of a queue and all below it.",
    labels=("queue", "parent"),
)
NOMINAL = Metric(
    name="fairway_queue_nominal",
    type="gauge",
    help="Nominal quota of a queue and all below it: GPUs, or other resources if it has no GPUs.",
    labels=_HOLDING,
)
USED = Metric(
    name="fairway_queue_used",
    type="gauge",
    help="What a queue and all below it use of a flavor.",
    labels=_HOLDING,
)
BORROWED = Metric(
    name="fairway_queue_borrowed",
    type="gauge",
    help="What a queue uses of a flavor beyond its own quota.",
    labels=_HOLDING,
)
SHARE = Metric(
    name="fairway_queue_share",
    type="gauge",
    help="Weighted dominant share of a queue among its siblings: what it borrows of what may be "
    "lent, divided by its weight; +Inf for a queue of weight 0 that borrows.",
    labels=("queue", "parent"),
    folds="max",
)
FAIR = Metric(
    name="fairway_queue_fair",
    type="gauge",
    help="What a queue would have of all that is in use in a fair division, in GPUs.",
    labels=("queue", "parent"),
)
GPUS = Metric(
    name="fairway_gpus",
    type="gauge",
    help="GPUs that the fleet's pods may use.",
    labels=("cluster", "flavor", "state"),
)
CLUSTERS = Metric(
    name="fairway_clusters", type="gauge", help="Clusters by phase.", labels=("phase",)
)
AGENT_AGE = Metric(
    name="fairway_agent_age_seconds",
    type="gauge",
    help="How long the agent of a cluster has been silent, while a leader was there to hear it.",
    labels=("cluster",),
    folds="max",
)
BREAKER_OPEN = Metric(
    name="fairway_breaker_open",
    type="gauge",
    help="Whether a breaker is open (1); only breakers that have a limit.",
    labels=("breaker",),
)
PAUSED = Metric(
    name="fairway_fleet_paused", type="gauge", help="Whether the fleet is paused (1) or not (0)."
)
PLANNER_OBJECTS = Metric(
    name="fairway_planner_objects",
    type="gauge",
    help="Size of what the planner plans.",
    labels=("kind",),
)
ADMISSION_WAIT = Metric(
    name="fairway_admission_wait_seconds",
    type="histogram",
    help="Time from pending to the claim, once for each claim.",
    labels=("queue",),
    buckets=_WAIT_SECONDS,
)
START_WAIT = Metric(
    name="fairway_start_wait_seconds",
    type="histogram",
    help="Time from pending until all pods were ready, once for each claim.",
    labels=("queue",),
    buckets=_WAIT_SECONDS,
)
FORECAST_ERROR = Metric(
    name="fairway_forecast_error_seconds",
    type="histogram",
    help="Difference between the first forecast of a start and the start.",
    labels=("direction",),
    buckets=_ERROR_SECONDS,
)
PREEMPTIONS = Metric(
    name="fairway_preemptions",
    type="counter",
    help="Workloads preempted, by their queue and why.",
    labels=("queue", "reason"),
)
MOVES = Metric(
    name="fairway_moves",
    type="counter",
    help="Moves to another cluster: of replicas that run, and of workloads whose place failed them "
    "or was closed.",
    labels=("queue", "reason"),
)
EVICTIONS = Metric(
    name="fairway_evictions",
    type="counter",
    help="Attempts, or parts of one, that ended before their work was done.",
    labels=("queue", "cause", "blame"),
)
LOST_WORK = Metric(
    name="fairway_lost_gpu_seconds",
    type="counter",
    help="Work lost: GPU-seconds since the last checkpoint, or the start, of attempts that ended "
    "before their work was done.",
    labels=("queue", "cause"),
)

FLEET_METRICS: Final = (
    WAITING,
    OLDEST_WAIT,
    RUNNING,
    NOMINAL,
    USED,
    BORROWED,
    SHARE,
    FAIR,
    GPUS,
    CLUSTERS,
    AGENT_AGE,
    BREAKER_OPEN,
    PAUSED,
    PLANNER_OBJECTS,
    ADMISSION_WAIT,
    START_WAIT,
    FORECAST_ERROR,
    PREEMPTIONS,
    MOVES,
    EVICTIONS,
    LOST_WORK,
)
