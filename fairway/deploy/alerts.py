"""The alerts as a table; each alert has a runbook of its name in docs/runbooks.

The hub's own metrics come from its `/metrics`. Leadership and agent liveness are recorded in
leases, and memory is known to the cluster, so those alerts use the metrics of kube-state-metrics
and the kubelet.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.api.meta import JsonObject
from fairway.api.names import AGENT_LEASE
from fairway.controllers import terms
from fairway.deploy.rights import HUB

JOB = f'job="{HUB}"'
_POD = f'container="hub",pod=~"{HUB}-.*"'
RUNBOOKS = "docs/runbooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One condition that needs attention."""

    name: str
    expression: str
    lasting: str  # how long it must hold
    severity: str
    summary: str

    @property
    def runbook(self) -> str:
        return f"{RUNBOOKS}/{self.name}.md"


ALERTS = (
    Alert(
        name="FairwayHubDown",
        expression=f"absent(up{{{JOB}}} == 1)",
        lasting="2m",
        severity="critical",
        summary="No replica of the hub answers: nothing new starts, what runs goes on.",
    ),
    Alert(
        name="FairwayReplicaDown",
        expression=f"up{{{JOB}}} == 0",
        lasting="10m",
        severity="warning",
        summary="{{ $labels.pod }} does not answer: the next failure may leave no hub.",
    ),
    Alert(
        name="FairwayNobodyLeads",
        expression=f'time() - max(kube_lease_renew_time{{lease="{terms.NAME}"}}) > 60',
        lasting="1m",
        severity="critical",
        summary="No replica has led for {{ $value | humanizeDuration }}: nothing is decided.",
    ),
    Alert(
        name="FairwayClusterSilent",
        expression=f'time() - kube_lease_renew_time{{lease="{AGENT_LEASE}"}} > 120',
        lasting="1m",
        severity="warning",
        summary="The agent of {{ $labels.namespace }} is silent: its work may be moved.",
    ),
    Alert(
        name="FairwayRequestsFail",
        expression=(
            f'sum(rate(fairway_requests_total{{{JOB},code=~"5.."}}[5m])) '
            f"/ sum(rate(fairway_requests_total{{{JOB}}}[5m])) > 0.05"
        ),
        lasting="10m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of requests fail by a fault of the hub.",
    ),
    Alert(
        name="FairwayRequestsSlow",
        expression=(
            "histogram_quantile(0.99, sum by (le) "
            f'(rate(fairway_request_seconds_bucket{{{JOB},verb="get"}}[5m]))) > 1'
        ),
        lasting="10m",
        severity="warning",
        summary="One request in a hundred takes more than {{ $value | humanizeDuration }}.",
    ),
    Alert(
        name="FairwayTokensRefused",
        expression=f"sum(rate(fairway_failed_authentications_total{{{JOB}}}[5m])) > 1",
        lasting="10m",
        severity="warning",
        summary="{{ $value | humanize }} tokens are refused each second.",
    ),
    Alert(
        name="FairwayAuditLinesLost",
        expression=f"fairway_audit_lines_lost{{{JOB}}} > 0",
        lasting="1m",
        severity="warning",
        summary="{{ $labels.pod }} lost {{ $value }} lines of its audit log.",
    ),
    Alert(
        name="FairwayMemoryShort",
        expression=(
            f"max by (namespace, pod) (container_memory_working_set_bytes{{{_POD}}}) "
            "/ on (namespace, pod) max by (namespace, pod) "
            f'(kube_pod_container_resource_limits{{{_POD},resource="memory"}}) > 0.9'
        ),
        lasting="10m",
        severity="warning",
        summary="{{ $labels.pod }} uses {{ $value | humanizePercentage }} of its memory.",
    ),
    Alert(
        name="FairwayHubRestarts",
        expression=f"changes(process_start_time_seconds{{{JOB}}}[1h]) > 2",
        lasting="0m",
        severity="warning",
        summary="{{ $labels.pod }} restarted {{ $value }} times within an hour.",
    ),
)


def groups() -> list[JsonObject]:
    """The rules as Prometheus reads them."""
    return [{"name": "fairway", "rules": [_rule(alert) for alert in ALERTS]}]


def _rule(alert: Alert) -> JsonObject:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": alert.runbook},
    }
