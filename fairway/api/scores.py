"""Scorer and ClusterScore: numbers by which clusters are ranked, and where they come from.

A Scorer says how a number of each cluster is measured: by a Prometheus query, an HTTP scorer, a CEL
expression over the cluster, a table, or what the hub itself has seen. The hub scales it to
-100..100 and writes it to the ClusterScore of the cluster, with the time until which it is valid.
Placement policies refer to it by the name of the scorer, and weigh it. Only the platform team
writes both kinds, so that no tenant can make the hub call an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    ClusterExpression,
    Code,
    Count,
    Key,
    Name,
    Rule,
    Seconds,
    Text,
    doc,
    limits,
    rules,
)
from fairway.api.fleet import PrometheusServer
from fairway.api.meta import (
    VERSION,
    ClusterSelector,
    Conditions,
    LabelSelector,
    Object,
    Part,
    SecretReference,
)

SCORES_GROUP = "scores.fairway.dev"
VALUES_MAX = 512
_FAULTS_MAX = 10
_URL = "^https?://[^ ?#]+(\\?[^ #]*)?$"

Query = Annotated[str, limits(min_length=1, max_length=4096)]
Url = Annotated[str, limits(pattern=_URL, max_length=2048)]
OptionalUrl = Annotated[str, limits(pattern=f"^$|{_URL}", max_length=2048)]
Points = Annotated[int, limits(minimum=-100, maximum=100)]
Item = Annotated[str, limits(max_length=253)]
Source = Literal["Prometheus", "Http", "Expression", "Table", "History"]


class PrometheusQuery(Part, frozen=True, kw_only=True):
    """A query to a Prometheus; each sample of its answer is one value."""

    query: Annotated[Query, doc("Instant query in PromQL.")]
    server: Annotated[
        PrometheusServer | None,
        doc(
            "Server to query, reached from where the scorer runs; unset: that of the fleet "
            "(metrics.prometheus)."
        ),
    ] = None


class SeriesQuery(Part, frozen=True, kw_only=True):
    """A range query whose series are sent to an HTTP scorer."""

    query: Annotated[Query, doc("Range query in PromQL.")]
    range_seconds: Annotated[
        Seconds, doc("Length of the range, which ends now, in seconds.", minimum=1)
    ] = 3600
    step_seconds: Annotated[Seconds, doc("Seconds between two samples.", minimum=1)] = 60


@rules(
    Rule(
        "(has(self.url) && self.url != '') || (has(self.configUrl) && self.configUrl != '')",
        "url or configUrl is needed",
        ".url",
    )
)
class HttpScorer(Part, frozen=True, kw_only=True):
    """A scorer that speaks the protocol of OCM's dynamic scoring framework.

    Time series are sent to it by POST, and it answers with a score for each set of labels.
    """

    url: Annotated[
        OptionalUrl,
        doc("URL that series are sent to; empty: as the configuration says."),
    ] = ""
    config_url: Annotated[
        OptionalUrl,
        doc(
            "URL of its configuration, read before each run; fields given here take precedence. "
            "Empty: it has none, and /healthz is read instead."
        ),
    ] = ""
    series: Annotated[
        tuple[SeriesQuery, ...],
        doc(
            "Queries whose series are sent; empty: as the configuration says, or none.",
            max_items=16,
            list_type="atomic",
        ),
    ] = ()
    server: Annotated[
        PrometheusServer | None,
        doc("Prometheus that is queried; unset: as the configuration says, or that of the fleet."),
    ] = None
    token: Annotated[
        SecretReference | None, doc("Secret with the bearer token for the scorer.")
    ] = None
    authority: Annotated[
        str,
        doc("CA certificates, in PEM, that verify the scorer; empty: the system's own.",
            max_length=65536),
    ] = ""  # fmt: skip


class TableRow(Part, frozen=True, kw_only=True):
    """The value of some clusters."""

    clusters: Annotated[ClusterSelector, doc("Selects the clusters.")] = ClusterSelector()
    item: Annotated[Item, doc("Item of the value, such as another cluster; empty: none.")] = ""
    value: Annotated[Quantity, doc("The value.")]


class ConfigMapReference(Part, frozen=True, kw_only=True):
    """Refers to a key of a ConfigMap."""

    namespace: Annotated[Name, doc("Namespace of the ConfigMap.")]
    name: Annotated[Name, doc("Name of the ConfigMap.")]
    key: Annotated[str, doc("Key in the ConfigMap.", min_length=1, max_length=253)]


@rules(
    Rule(
        "(has(self.url) && self.url != '') != has(self.configMap)",
        "exactly one of url and configMap is given",
    )
)
class CsvSource(Part, frozen=True, kw_only=True):
    """Comma-separated values with a header: cluster, value and, if there are items, item."""

    url: Annotated[OptionalUrl, doc("URL that the file is read from before each run.")] = ""
    config_map: Annotated[
        ConfigMapReference | None, doc("ConfigMap that the file is read from before each run.")
    ] = None
    token: Annotated[SecretReference | None, doc("Secret with the bearer token for the URL.")] = (
        None
    )


@rules(
    Rule(
        "(has(self.rows) && size(self.rows) > 0) || has(self.csv)",
        "rows or csv is needed",
    )
)
class Table(Part, frozen=True, kw_only=True):
    """Stated values: prices of energy, carbon intensity by region, distances between clusters."""

    rows: Annotated[
        tuple[TableRow, ...],
        doc(
            "Values; of several rows for one cluster and item, the first counts.",
            max_items=1024,
            list_type="atomic",
        ),
    ] = ()
    csv: Annotated[CsvSource | None, doc("Further values, which count after the rows.")] = None


class HistoryFact(Part, frozen=True, kw_only=True):
    """A number that the hub knows by what it has seen."""

    fact: Annotated[
        Literal["FailureRate"],
        doc(
            "FailureRate: share of the attempts that ended in the cluster because of the cluster, "
            "not the program; recent attempts count more."
        ),
    ] = "FailureRate"
    half_life_seconds: Annotated[
        Seconds, doc("Seconds after which an attempt counts half.", minimum=60)
    ] = 86_400


class Scale(Part, frozen=True, kw_only=True):
    """Maps values to scores in a straight line, cut off at -100 and 100."""

    worst: Annotated[Quantity, doc("Value that scores -100; it may exceed the best.")]
    best: Annotated[Quantity, doc("Value that scores 100.")]


@rules(
    Rule(
        "[has(self.prometheus), has(self.http), has(self.expression), "
        "has(self.table), has(self.history)].filter(x, x).size() == 1",
        "a scorer has exactly one source: prometheus, http, expression, table or history",
    ),
    Rule(
        "!has(self.runBy) || self.runBy == 'Hub' || has(self.prometheus) || has(self.http)",
        "runBy: Agent needs prometheus or http",
        ".runBy",
    ),
    Rule(
        "!has(self.runBy) || self.runBy == 'Hub' || !has(self.prometheus) || "
        "has(self.prometheus.server)",
        "runBy: Agent needs a server that agents reach",
        ".prometheus.server",
    ),
    Rule(
        "!has(self.validSeconds) || self.validSeconds >= "
        "(has(self.intervalSeconds) ? self.intervalSeconds : 60)",
        "validSeconds must not be below intervalSeconds",
        ".validSeconds",
    ),
)
class ScorerSpec(Part, frozen=True, kw_only=True):
    """Where the values come from, how often, and how they become scores."""

    prometheus: Annotated[PrometheusQuery | None, doc("Asks a Prometheus.")] = None
    http: Annotated[HttpScorer | None, doc("Asks an HTTP scorer.")] = None
    expression: Annotated[
        ClusterExpression | None,
        doc(
            "CEL expression over `cluster`: name, labels, claims, nodes, readyNodes, workloads, "
            "and free and allocatable by resource. It yields a number, or a map of numbers by "
            "item."
        ),
    ] = None
    table: Annotated[Table | None, doc("Reads stated values.")] = None
    history: Annotated[HistoryFact | None, doc("Uses what the hub has seen.")] = None
    run_by: Annotated[
        Literal["Hub", "Agent"],
        doc(
            "Hub: the hub asks once for all clusters, told apart by clusterLabel. Agent: the agent "
            "of each cluster asks, and all that it gets is of its cluster."
        ),
    ] = "Hub"
    clusters: Annotated[
        ClusterSelector, doc("Selects the clusters that get the score; others have none.")
    ] = ClusterSelector()
    samples: Annotated[
        LabelSelector | None,
        doc(
            "Selects values by their labels, such as node or device; others do not count. "
            "Unset: all."
        ),
    ] = None
    cluster_label: Annotated[
        Key, doc("Label of a value that names its cluster, with runBy: Hub.")
    ] = "cluster"
    item_labels: Annotated[
        tuple[Key, ...],
        doc(
            "Labels whose values, joined by '/', are the item of a value, such as the model of a "
            "device; empty: values have no items.",
            max_items=8,
            list_type="atomic",
        ),
    ] = ()
    combine: Annotated[
        Literal["Average", "Sum", "Min", "Max"],
        doc("How several values of one cluster and item become one."),
    ] = "Average"
    scale: Annotated[
        Scale | None, doc("How values become scores; unset: they are scores, cut off at ±100.")
    ] = None
    smoothing_seconds: Annotated[
        Seconds,
        doc("Half-life of the moving average of the values, in seconds; 0: no smoothing."),
    ] = 0
    interval_seconds: Annotated[
        Seconds, doc("Seconds between two runs; the first is at once.", minimum=5)
    ] = 60
    valid_seconds: Annotated[
        Seconds | None,
        doc("Seconds for which a score is valid; unset: twice the interval.", minimum=5),
    ] = None
    timeout_seconds: Annotated[
        Seconds, doc("Seconds after which a run fails.", minimum=1, maximum=60)
    ] = 10


class ScorerFault(Part, frozen=True, kw_only=True):
    """Why a cluster has no new score."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    message: Annotated[Text, doc("What failed.")] = ""


class ScorerStatus(Part, frozen=True, kw_only=True):
    """How the last runs went."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    source: Annotated[Code, doc("Kind of the source.")] = ""
    clusters: Annotated[Count, doc("Number of clusters with a valid score.")] = 0
    last_run_at: Annotated[datetime | None, doc("Approximate time of the last run.")] = None
    faults: Annotated[
        tuple[ScorerFault, ...],
        doc(
            "Clusters for which the last run failed, the first by name.",
            max_items=_FAULTS_MAX,
            list_type="map",
            list_map_keys=["cluster"],
        ),
    ] = ()
    fault: Annotated[Text, doc("Why the last run failed; empty: it did not.")] = ""
    conditions: Annotated[Conditions, doc("Latest observations of the scorer's state.")] = ()


def _api_version() -> str:
    return f"{SCORES_GROUP}/{VERSION}"


class Scorer(Object, frozen=True, kw_only=True):
    """How a number of each cluster is measured, and how it becomes a score."""

    api_group: ClassVar[str] = SCORES_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[ScorerSpec, doc("Where the values come from, and how they become scores.")]
    status: Annotated[ScorerStatus, doc("How the last runs went.")] = ScorerStatus()


class ScoreValue(Part, frozen=True, kw_only=True):
    """One score of one cluster."""

    scorer: Annotated[Name, doc("Name of the scorer.")]
    item: Annotated[Item, doc("Item of the scorer; empty: it has none.")]
    value: Annotated[Points, doc("The score.")]
    measured: Annotated[
        str, doc("Value before it was scaled and smoothed, for display.", max_length=64)
    ] = ""
    measured_at: Annotated[datetime | None, doc("Time of the measurement.")] = None
    source: Annotated[Code, doc("Kind of the source, such as Prometheus.")] = ""
    samples: Annotated[Count, doc("Number of values that were combined.")] = 1
    valid_until: Annotated[
        datetime | None, doc("Time from which the score is missing; unset: it stays valid.")
    ] = None


class ClusterScoreSpec(Part, frozen=True, kw_only=True):
    """The scores of the cluster."""

    summary: Annotated[Text, doc("The scores in short, for tables.")] = ""
    values: Annotated[
        tuple[ScoreValue, ...],
        doc(
            "The scores. The hub writes those of Scorers; others may write scores of other names.",
            max_items=VALUES_MAX,
            list_type="map",
            list_map_keys=["scorer", "item"],
        ),
    ] = ()


class ClusterScore(Object, frozen=True, kw_only=True):
    """Scores of the cluster of the same name, by which placement policies may rank it."""

    api_group: ClassVar[str] = SCORES_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[ClusterScoreSpec, doc("The scores of the cluster.")] = ClusterScoreSpec()


def source_of(spec: ScorerSpec) -> Source:
    """The kind of a scorer's source."""
    given: Mapping[Source, object] = {
        "Prometheus": spec.prometheus,
        "Http": spec.http,
        "Expression": spec.expression,
        "Table": spec.table,
        "History": spec.history,
    }
    return next(source for source, value in given.items() if value)


def validity(spec: ScorerSpec) -> timedelta:
    """For how long a score is valid."""
    return timedelta(seconds=spec.valid_seconds or 2 * spec.interval_seconds)
