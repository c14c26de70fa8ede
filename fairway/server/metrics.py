"""What the hub counts about itself, for Prometheus.

Each set of metrics has its own registry, so that two hubs in one process do not mix. Label values
are bounded: verbs and codes come from a closed set, and resources beyond a limit are counted as
`other`, so a client cannot fill the memory with invented names. Children of a metric are looked up
once and kept, since the look-up costs more than counting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector

from fairway.api.fleet_metrics import FLEET_METRICS, OTHER
from fairway.server.fleet_metrics import FleetMetrics

_RESOURCES_MAX = 256
_UNKNOWN_CODES = frozenset({400, 401, 403, 404, 405})
_VERBS = frozenset(
    [
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "apply",
        "delete",
        "deletecollection",
        "post",
        "put",
        "head",
        "options",
        "connect",
    ]
)
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
_FSYNC_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1)
_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_PLAN_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_PLAN_STEPS = (0, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000)


class Metrics:
    """The numbers of one hub."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.fleet = FleetMetrics()
        self._registry.register(self.fleet)
        self._resources: set[str] = set()
        self._make_request_metrics()
        self._make_store_metrics()
        self._make_plan_metrics()

    def request_answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Counts a request; `resource` is `plural.group`, or "" for a plain path."""
        key = (verb, resource, code)
        counter = self._request_counters.get(key)
        if counter is None:
            if code in _UNKNOWN_CODES and resource not in self._resources:
                # The resource may not exist; only a response that found one adds it.
                resource = OTHER
            shown = (self._verb(verb), self._resource(resource), _code(code))
            counter = self._requests.labels(*shown)
            if shown == (verb, resource, str(code)):
                self._request_counters[key] = counter
        counter.inc()
        timer = self._request_timers.get((verb, resource))
        if timer is None:
            # No code here: thirteen buckets for each would be many series for little value.
            pair = (self._verb(verb), self._resource(resource))
            timer = self._request_seconds.labels(*pair)
            if pair == (verb, resource):
                self._request_timers[pair] = timer
        timer.observe(seconds)

    def request_began(self) -> None:
        self._in_flight.inc()

    def request_ended(self) -> None:
        self._in_flight.dec()

    def watch_opened(self, resource: str) -> None:
        self._watches.labels(self._resource(resource)).inc()

    def watch_closed(self, resource: str) -> None:
        self._watches.labels(self._resource(resource)).dec()

    def watch_events_sent(self, count: int = 1) -> None:
        self._watch_events.inc(count)

    def authentication_failed(self) -> None:
        self._failed_authentications.inc()

    def request_refused(self, level: str) -> None:
        """Counts a request of a caller that used more than its share."""
        self._refused_requests.labels(level).inc()

    def count_connections(self, count: Callable[[], float]) -> None:
        """Sets where the number of connections comes from."""
        self._connections.set_function(count)

    def connection_closed(self, reason: str) -> None:
        """Counts a connection that the hub cut off."""
        self._closed_connections.labels(reason).inc()

    def set_objects(self, count_by_resource: Mapping[str, int]) -> None:
        """Sets the number of stored objects; removed kinds disappear from the metric."""
        self._objects.clear()
        for resource, count in count_by_resource.items():
            self._objects.labels(self._resource(resource)).inc(count)

    def set_version(self, version: int) -> None:
        self._version.set(version)

    def batch_committed(self, size: int, fsync_seconds: float) -> None:
        self._batch_size.observe(size)
        self._fsync_seconds.observe(fsync_seconds)

    def watch_planner(self, find_pid: Callable[[], int | None]) -> None:
        """Sets which process plans, if that is another one; it may change."""
        ProcessCollector(
            "fairway_planner", pid=lambda: find_pid() or "none", registry=self._registry
        )

    def planner_called(self, seconds: float, steps: int) -> None:
        """Counts a part of a plan, which may have no steps."""
        self._plan_seconds.observe(seconds)
        self._plan_steps.observe(steps)

    def planner_failed(self) -> None:
        self._planner_failures.inc()

    def report_leading(self, is_leader: Callable[[], bool]) -> None:
        """Sets what says whether this replica leads."""
        self._leads.set_function(is_leader)

    def set_disk(self, *, free: int, whole: int) -> None:
        """Sets the bytes of the disk that has the hub's data."""
        self._disk_free.set(free)
        self._disk.set(whole)

    def plan_made(self, faults: Collection[str] | None) -> None:
        """Counts a plan and the rules it breaks; None: it was not checked."""
        if faults is not None:
            self._plans_checked.inc()
            self._plan_faults.inc(len(faults))

    def set_violations(self, count_by_rule: Mapping[tuple[str, str, str], int]) -> None:
        """Sets how many workloads break rules, by policy, rule and enforcement."""
        self._violations.clear()
        for labels, count in count_by_rule.items():
            self._violations.labels(*labels).set(count)

    def set_audit_lines_lost(self, count: int) -> None:
        self._audit_lost.set(count)

    def definitions(self) -> list[tuple[str, str, Collection[str], str]]:
        """Every metric that is not of a process: its name, type, labels, and what it says."""
        metrics = [each for each in vars(self).values() if isinstance(each, MetricWrapperBase)]
        own = [
            (family.name, family.type, metric._labelnames, family.documentation)
            for metric in metrics
            for family in metric.describe()
        ]
        return sorted(
            [*own, *((each.name, each.type, each.labels, each.help) for each in FLEET_METRICS)]
        )

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _make_request_metrics(self) -> None:
        registry = self._registry
        self._requests = Counter(
            "fairway_requests",
            "Requests answered.",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "fairway_request_seconds",
            "Time until a request was answered; watches are left out by the server.",
            ["verb", "resource"],
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "fairway_requests_in_flight", "Requests not yet answered.", registry=registry
        )
        self._watches = Gauge("fairway_watches", "Open watches.", ["resource"], registry=registry)
        self._watch_events = Counter(
            "fairway_watch_events", "Events sent to watchers.", registry=registry
        )
        self._failed_authentications = Counter(
            "fairway_failed_authentications", "Tokens that were refused.", registry=registry
        )
        self._refused_requests = Counter(
            "fairway_requests_refused",
            "Requests of callers that used more than their share, by level.",
            ["level"],
            registry=registry,
        )
        self._connections = Gauge("fairway_connections", "Open connections.", registry=registry)
        self._closed_connections = Counter(
            "fairway_connections_closed",
            "Connections that the hub cut off: late or large headers, replaced, or no room (full).",
            ["reason"],
            registry=registry,
        )
        self._audit_lost = Gauge(
            "fairway_audit_lines_lost", "Audit lines that could not be written.", registry=registry
        )
        self._request_counters: dict[tuple[str, str, int], Counter] = {}
        self._request_timers: dict[tuple[str, str], Histogram] = {}

    def _make_plan_metrics(self) -> None:
        registry = self._registry
        self._plan_seconds = Histogram(
            "fairway_plan_seconds",
            "Time of one call to the planner for a part of a plan.",
            buckets=_PLAN_SECONDS,
            registry=registry,
        )
        self._plan_steps = Histogram(
            "fairway_plan_steps",
            "Decisions in one part of a plan.",
            buckets=_PLAN_STEPS,
            registry=registry,
        )
        self._planner_failures = Counter(
            "fairway_planner_failures",
            "Times that the planner ended or failed; another one began.",
            registry=registry,
        )
        self._leads = Gauge(
            "fairway_leads", "Whether this replica leads (1) or not (0).", registry=registry
        )
        self._plans_checked = Counter(
            "fairway_plans_checked", "Plans held against the rules.", registry=self._registry
        )
        self._plan_faults = Counter(
            "fairway_plan_faults", "Rules that checked plans broke.", registry=self._registry
        )
        self._violations = Gauge(
            "fairway_fleet_policy_violations",
            "Workloads that break a rule of a fleet policy; counted by the leader.",
            ["policy", "rule", "enforcement"],
            registry=self._registry,
        )

    def _make_store_metrics(self) -> None:
        registry = self._registry
        self._disk_free = Gauge(
            "fairway_disk_free_bytes", "Free on the disk with the hub's data.", registry=registry
        )
        self._disk = Gauge(
            "fairway_disk_bytes", "Size of the disk with the hub's data.", registry=registry
        )
        self._objects = Gauge(
            "fairway_store_objects", "Objects stored.", ["resource"], registry=registry
        )
        self._version = Gauge(
            "fairway_store_version", "The store's latest version.", registry=registry
        )
        self._batch_size = Histogram(
            "fairway_store_commit_writes",
            "Writes that shared one commit.",
            buckets=_BATCH_SIZES,
            registry=registry,
        )
        self._fsync_seconds = Histogram(
            "fairway_store_fsync_seconds",
            "Time to make one commit durable.",
            buckets=_FSYNC_SECONDS,
            registry=registry,
        )

    def _verb(self, verb: str) -> str:
        return verb if verb in _VERBS else OTHER

    def _resource(self, resource: str) -> str:
        if resource not in self._resources:
            if len(self._resources) >= _RESOURCES_MAX:
                return OTHER
            self._resources.add(resource)
        return resource


def _code(code: int) -> str:
    return str(code) if 100 <= code <= 599 else OTHER
