"""The panels of the dashboard as a table: what people look at first comes first."""

from __future__ import annotations

from typing import NamedTuple

from fairway.deploy.alerts import JOB


class Line(NamedTuple):
    """A query, and the legend of its lines."""

    query: str
    legend: str


class Panel(NamedTuple):
    """One chart."""

    title: str
    unit: str  # as Grafana names it
    lines: tuple[Line, ...]


def _panel(title: str, unit: str, *lines: tuple[str, str]) -> Panel:
    return Panel(title, unit, tuple(Line(*line) for line in lines))


def _quantiles(
    title: str, metric: str, *, by: str = "", over: str = "5m", shares: tuple[float, ...]
) -> Panel:
    """A panel of quantiles of a histogram, for each value of a label or for all together."""
    labels = f"le, {by}" if by else "le"
    rate = f"sum by ({labels}) (rate({metric}_bucket{{{JOB}}}[{over}]))"
    legend = f"{{{{{by}}}}} " if by else ""
    lines = (
        (f"histogram_quantile({share}, {rate})", f"{legend}{share * 100:.0f} %") for share in shares
    )
    return _panel(title, "s", *lines)


def _hourly(title: str, metric: str, by: str, *, unit: str = "short", divided: str = "") -> Panel:
    """A panel of what a counter counted within an hour."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return _panel(
        title, unit, (f"sum by ({by}) (increase({metric}_total{{{JOB}}}[1h])){divided}", legend)
    )


_QUEUES = (
    _panel(
        "Waiting by queue",
        "short",
        (f"sum by (queue) (fairway_workloads_waiting{{{JOB}}})", "{{queue}}"),
    ),
    _panel(
        "Waiting by reason",
        "short",
        (f"sum by (reason) (fairway_workloads_waiting{{{JOB}}})", "{{reason}}"),
    ),
    _panel(
        "Longest wait by queue",
        "s",
        (f"topk(20, max by (queue) (fairway_oldest_wait_seconds{{{JOB}}}))", "{{queue}}"),
    ),
    _panel(
        "Running by queue",
        "short",
        (f"sum by (queue) (fairway_workloads_running{{{JOB}}})", "{{queue}}"),
    ),
    _quantiles(
        "Wait until admission", "fairway_admission_wait_seconds", over="1h", shares=(0.5, 0.9)
    ),
    _quantiles(
        "Wait until start, by queue",
        "fairway_start_wait_seconds",
        by="queue",
        over="1h",
        shares=(0.9,),
    ),
    _panel(
        "Used and nominal by flavor",
        "short",
        *(
            (
                f'sum by (flavor, resource) (fairway_queue_{amount}{{{JOB},parent=""}})',
                f"{amount} {{{{flavor}}}} {{{{resource}}}}",
            )
            for amount in ("used", "nominal")
        ),
    ),
    _panel(
        "Used by queue and flavor",
        "short",
        (
            f"sum by (queue, flavor, resource) (fairway_queue_used{{{JOB}}})",
            "{{queue}} {{flavor}} {{resource}}",
        ),
    ),
    _panel(
        "Part of a flavor that each queue uses",
        "percentunit",
        (
            (
                f"sum by (queue, flavor, resource) (fairway_queue_used{{{JOB}}}) "
                "/ on (flavor, resource) group_left () "
                f'sum by (flavor, resource) (fairway_queue_nominal{{{JOB},parent=""}} > 0)'
            ),
            "{{queue}} {{flavor}} {{resource}}",
        ),
    ),
    _panel(
        "Borrowed by queue and flavor",
        "short",
        (
            f"sum by (queue, flavor, resource) (fairway_queue_borrowed{{{JOB}}})",
            "{{queue}} {{flavor}} {{resource}}",
        ),
    ),
    _panel(
        "Share of queues",
        "short",
        (f"max by (queue) (fairway_queue_share{{{JOB}}})", "{{queue}}"),
    ),
    _panel(
        "What a fair division would give",
        "short",
        (f"sum by (queue) (fairway_queue_fair{{{JOB}}})", "{{queue}}"),
    ),
)

_CLUSTERS = (
    _panel("GPUs by state", "short", (f"sum by (state) (fairway_gpus{{{JOB}}})", "{{state}}")),
    _panel(
        "Idle GPUs by cluster and flavor",
        "short",
        (
            f'sum by (cluster, flavor) (fairway_gpus{{{JOB},state="idle"}})',
            "{{cluster}} {{flavor}}",
        ),
    ),
    _panel(
        "Clusters by phase", "short", (f"max by (phase) (fairway_clusters{{{JOB}}})", "{{phase}}")
    ),
    _panel(
        "Seconds since agents were heard",
        "s",
        (f"max by (cluster) (fairway_agent_age_seconds{{{JOB}}})", "{{cluster}}"),
    ),
)

_HAPPENED = (
    _hourly("Preemptions within an hour", "fairway_preemptions", "queue, reason"),
    _hourly("Moves within an hour", "fairway_moves", "queue, reason"),
    _hourly("Evictions within an hour, by cause", "fairway_evictions", "cause, blame"),
    _hourly(
        "GPU-hours lost within an hour, by cause",
        "fairway_lost_gpu_seconds",
        "cause",
        divided=" / 3600",
    ),
    _quantiles(
        "Error of forecasts",
        "fairway_forecast_error_seconds",
        by="direction",
        over="6h",
        shares=(0.5, 0.9),
    ),
    _panel(
        "Breakers that are open, and pause",
        "short",
        (f"max by (breaker) (fairway_breaker_open{{{JOB}}})", "{{breaker}}"),
        (f"max(fairway_fleet_paused{{{JOB}}})", "paused"),
    ),
)

_PLANNER = (
    _quantiles("Time of a part of a plan", "fairway_plan_seconds", shares=(0.5, 0.99)),
    _panel(
        "Decisions each second",
        "short",
        (f"sum(rate(fairway_plan_steps_sum{{{JOB}}}[5m]))", "decisions"),
    ),
    _panel(
        "Size of what is planned",
        "short",
        (f"max by (kind) (fairway_planner_objects{{{JOB}}})", "{{kind}}"),
    ),
    _panel(
        "Memory of planners",
        "bytes",
        (f"fairway_planner_process_resident_memory_bytes{{{JOB}}}", "{{instance}}"),
    ),
    _panel(
        "Processor of planners",
        "short",
        (f"rate(fairway_planner_process_cpu_seconds_total{{{JOB}}}[5m])", "{{instance}}"),
    ),
    _panel(
        "Failures of planners, and plans that break rules, within an hour",
        "short",
        (f"sum(increase(fairway_planner_failures_total{{{JOB}}}[1h]))", "failures"),
        (f"sum(increase(fairway_plan_faults_total{{{JOB}}}[1h]))", "broken rules"),
    ),
)

_HUB = (
    _panel(
        "Replicas",
        "short",
        (f"sum(up{{{JOB}}})", "answer"),
        (f"sum(fairway_leads{{{JOB}}})", "lead"),
    ),
    _panel(
        "Requests each second",
        "reqps",
        (f"sum by (verb) (rate(fairway_requests_total{{{JOB}}}[5m]))", "{{verb}}"),
    ),
    _panel(
        "Requests that fail each second",
        "reqps",
        (f'sum by (code) (rate(fairway_requests_total{{{JOB},code=~"[45].."}}[5m]))', "{{code}}"),
    ),
    _quantiles("Time to answer", "fairway_request_seconds", shares=(0.5, 0.99)),
    _panel(
        "Requests under way and open watches",
        "short",
        (f"sum(fairway_requests_in_flight{{{JOB}}})", "requests"),
        (f"sum(fairway_watches{{{JOB}}})", "watches"),
    ),
    _panel(
        "Events sent to watchers each second",
        "short",
        (f"sum(rate(fairway_watch_events_total{{{JOB}}}[5m]))", "events"),
    ),
    _quantiles("Time to store a write", "fairway_store_fsync_seconds", shares=(0.5, 0.99)),
    _panel(
        "Room on the disk",
        "percentunit",
        (f"fairway_disk_free_bytes{{{JOB}}} / fairway_disk_bytes{{{JOB}}}", "{{instance}}"),
    ),
    _panel(
        "Processor of the hub, without its planner",
        "short",
        (f"rate(process_cpu_seconds_total{{{JOB}}}[5m])", "{{instance}}"),
    ),
    _panel(
        "Memory of the hub, without its planner",
        "bytes",
        (f"process_resident_memory_bytes{{{JOB}}}", "{{instance}}"),
    ),
)

SECTIONS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Queues", _QUEUES),
    ("Clusters", _CLUSTERS),
    ("What happened", _HAPPENED),
    ("Planner", _PLANNER),
    ("Hub", _HUB),
)
PANELS = tuple(panel for _, panels in SECTIONS for panel in panels)
