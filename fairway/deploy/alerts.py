"""The alerts as a table; each alert has a runbook of its name in docs/runbooks.

An alert compares a value with a limit; both are kept apart, so that a test can see that the value
exists on a Prometheus that scrapes a real hub. Only the memory of pods is known to the cluster
alone, so that alert uses the metrics of kube-state-metrics and the kubelet, and never fires where
there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from fairway.api.meta import JsonObject
from fairway.deploy.rights import HUB

JOB = f'job="{HUB}"'
_POD = f'container="hub",pod=~"{HUB}-.*"'
RUNBOOKS = "docs/runbooks"
# Where a number of a replica comes from: its pod on Kubernetes, else its address.
_REPLICA = "{{ or $labels.pod $labels.instance }}"
_OBJECTIVE_SECONDS = 4 * 3600  # a queue that has quota of its own left should not wait longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One condition that needs attention."""

    name: str
    value: str  # a query that has series whenever there is something to compare
    limit: str  # what the value is when the alert fires
    lasting: str  # how long it must hold
    severity: str
    summary: str
    description: str

    @property
    def expression(self) -> str:
        return f"{self.value} {self.limit}"

    @property
    def runbook(self) -> str:
        return f"{RUNBOOKS}/{self.name}.md"


_OF_REPLICAS = (
    Alert(
        name="FairwayHubDown",
        value=f"(sum(up{{{JOB}}}) or vector(0))",
        limit="< 1",
        lasting="2m",
        severity="critical",
        summary="No replica of the hub answers: nothing new starts, what runs goes on.",
        description="Prometheus reaches no replica of the hub, or knows of none.",
    ),
    Alert(
        name="FairwayReplicaDown",
        value=f"up{{{JOB}}}",
        limit="== 0",
        lasting="10m",
        severity="warning",
        summary=f"{_REPLICA} does not answer: the next failure may leave no hub.",
        description="Other replicas go on. One of them leads.",
    ),
    Alert(
        name="FairwayNobodyLeads",
        value=f"max(fairway_leads{{{JOB}}})",
        limit="< 1",
        lasting="1m",
        severity="critical",
        summary="No replica leads: nothing is decided.",
        description="Replicas answer, and none of them holds the term. What runs goes on.",
    ),
    Alert(
        name="FairwayRequestsFail",
        value=(
            f'sum(rate(fairway_requests_total{{{JOB},code=~"5.."}}[5m])) '
            f"/ sum(rate(fairway_requests_total{{{JOB}}}[5m]))"
        ),
        limit="> 0.05",
        lasting="10m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of requests fail by a fault of the hub.",
        description="Requests were answered with a code of 500 or more.",
    ),
    Alert(
        name="FairwayRequestsSlow",
        value=(
            "histogram_quantile(0.99, sum by (le) "
            f'(rate(fairway_request_seconds_bucket{{{JOB},verb="get"}}[5m])))'
        ),
        limit="> 1",
        lasting="10m",
        severity="warning",
        summary="One request in a hundred takes more than {{ $value | humanizeDuration }}.",
        description="Single objects are read from memory, which takes milliseconds.",
    ),
    Alert(
        name="FairwayTokensRefused",
        value=f"sum(rate(fairway_failed_authentications_total{{{JOB}}}[5m]))",
        limit="> 1",
        lasting="10m",
        severity="warning",
        summary="{{ $value | humanize }} tokens are refused each second.",
        description="Somebody shows tokens that are wrong, or that have expired.",
    ),
    Alert(
        name="FairwayMemoryShort",
        value=(
            f"max by (namespace, pod) (container_memory_working_set_bytes{{{_POD}}}) "
            "/ on (namespace, pod) max by (namespace, pod) "
            f'(kube_pod_container_resource_limits{{{_POD},resource="memory"}})'
        ),
        limit="> 0.9",
        lasting="10m",
        severity="warning",
        summary="{{ $labels.pod }} uses {{ $value | humanizePercentage }} of its memory.",
        description="At its limit the kernel ends the container, and another replica leads.",
    ),
    Alert(
        name="FairwayHubRestarts",
        value=f"changes(process_start_time_seconds{{{JOB}}}[1h])",
        limit="> 2",
        lasting="0m",
        severity="warning",
        summary=f"{_REPLICA} restarted {{{{ $value }}}} times within an hour.",
        description="A hub that starts reads everything first, and decides nothing meanwhile.",
    ),
)

_OF_THE_STORE = (
    Alert(
        name="FairwayAuditLinesLost",
        value=f"fairway_audit_lines_lost{{{JOB}}}",
        limit="> 0",
        lasting="1m",
        severity="warning",
        summary=f"{_REPLICA} lost {{{{ $value }}}} lines of its audit log.",
        description="Writes went on, and the log does not say who made them.",
    ),
    Alert(
        name="FairwayStoreSlow",
        value=(
            "histogram_quantile(0.9, sum by (le) "
            f"(rate(fairway_store_fsync_seconds_bucket{{{JOB}}}[5m])))"
        ),
        limit="> 0.5",
        lasting="10m",
        severity="warning",
        summary="The disk takes {{ $value | humanizeDuration }} to store a write.",
        description="Every write waits until it is on disk. It does not fire on Kubernetes.",
    ),
    Alert(
        name="FairwayDiskFull",
        value=f"fairway_disk_free_bytes{{{JOB}}} / fairway_disk_bytes{{{JOB}}}",
        limit="< 0.05",
        lasting="5m",
        severity="critical",
        summary=f"{_REPLICA} has {{{{ $value | humanizePercentage }}}} of its disk left.",
        description="When it is full, the hub stores no writes and so decides nothing.",
    ),
)

_OF_THE_FLEET = (
    Alert(
        name="FairwayClusterSilent",
        value=f"max by (cluster) (fairway_agent_age_seconds{{{JOB}}})",
        limit="> 120",
        lasting="1m",
        severity="warning",
        summary="The agent of {{ $labels.cluster }} is silent: its work may be moved.",
        description="Nothing new is sent there. What runs there goes on, as far as anybody knows.",
    ),
    Alert(
        name="FairwayPlannerSlow",
        value=(
            "histogram_quantile(0.9, sum by (le) "
            f"(rate(fairway_plan_seconds_bucket{{{JOB}}}[10m])))"
        ),
        limit="> 10",
        lasting="15m",
        severity="warning",
        summary="A part of a plan takes {{ $value | humanizeDuration }}: starts are late.",
        description="Nothing is admitted while the planner works on a part of a plan.",
    ),
    Alert(
        name="FairwayPlannerFails",
        value=f"sum(increase(fairway_planner_failures_total{{{JOB}}}[30m]))",
        limit="> 2",
        lasting="0m",
        severity="critical",
        summary="The planner failed {{ $value | humanize }} times within half an hour.",
        description="Another planner begins each time, and is fed all objects before it decides.",
    ),
    Alert(
        name="FairwayPlanFaults",
        value=f"sum(increase(fairway_plan_faults_total{{{JOB}}}[1h]))",
        limit="> 0",
        lasting="0m",
        severity="warning",
        summary="A plan broke a rule that every plan must keep.",
        description="The plan was carried out all the same: a quota or a node may be exceeded.",
    ),
    Alert(
        name="FairwayQueueWaits",
        value=(
            f"max by (queue) (fairway_oldest_wait_seconds{{{JOB}}}) * on (queue) min by (queue) "
            f"(fairway_queue_used{{{JOB}}} < bool (fairway_queue_nominal{{{JOB}}} > 0))"
        ),
        limit=f"> {_OBJECTIVE_SECONDS}",
        lasting="30m",
        severity="warning",
        summary="A workload of {{ $labels.queue }} waits for {{ $value | humanizeDuration }}.",
        description="The queue does not use all of its own quota, and still its workloads wait.",
    ),
    Alert(
        name="FairwayBreakerOpen",
        value=f"max by (breaker) (fairway_breaker_open{{{JOB}}})",
        limit="> 0",
        lasting="5m",
        severity="warning",
        summary="The breaker of {{ $labels.breaker }} is open: the hub does no more of it.",
        description="The hub did as much of it within an hour as the Fleet allows.",
    ),
)

ALERTS = (*_OF_REPLICAS, *_OF_THE_STORE, *_OF_THE_FLEET)


def groups() -> list[JsonObject]:
    """The rules as Prometheus reads them."""
    return [{"name": "fairway", "rules": [_rule(alert) for alert in ALERTS]}]


def rules_file() -> str:
    """The rules as a file, for a Prometheus without an operator."""
    text = yaml.safe_dump({"groups": groups()}, sort_keys=False, width=100)
    return "# Made by `make generate` from fairway/deploy/alerts.py.\n" + text


def _rule(alert: Alert) -> JsonObject:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook": alert.runbook,
        },
    }
