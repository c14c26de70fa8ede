"""ClusterReport: what an agent last saw in its cluster.

Separate from Cluster, so that a busy cluster does not churn its configuration. Nodes are stored in
columns: the arrays of one report run in parallel, one entry per node, which keeps 5,000 nodes small
and quick to read. A large cluster is reported in chunks, one object each; a chunk is rewritten only
when it changed, as a whole or as a difference from an earlier sequence. Amounts are whole numbers
of a stated unit, hence exact.

Each chunk has up to two objects (see `names.report_name`): the whole report, and all changes since
it was written. A reader applies the difference if it was made from exactly this whole report by the
same agent, and ignores it otherwise (see `report_changes`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fairway.api.amounts import Quantity
from fairway.api.doc import (
    Code,
    Count,
    Key,
    Label,
    Name,
    Reference,
    ResourceName,
    Rule,
    Text,
    doc,
    limits,
    rules,
)
from fairway.api.meta import Object, Part, ResourceList, Taint
from fairway.api.namespaces import NAMESPACES_MAX, NamespaceRules
from fairway.api.work import PodSetStatus, WorkPhase

_NODES_MAX = 2000
_Row = Annotated[int, limits(minimum=0, maximum=_NODES_MAX)]
_Amount = Annotated[int, limits(minimum=0)]


class LabelColumn(Part, frozen=True, kw_only=True):
    """The values of one label on all nodes of the chunk."""

    key: Annotated[Key, doc("Key of the label.")]
    values: Annotated[
        tuple[str, ...],
        doc(
            "Value on each node; empty if the node does not have the label.",
            max_items=_NODES_MAX,
            list_type="atomic",
        ),
    ]


class TaintSet(Part, frozen=True, kw_only=True):
    """A set of taints that some nodes share."""

    taints: Annotated[
        tuple[Taint, ...], doc("Taints of the set.", max_items=64, list_type="atomic")
    ] = ()


class AmountColumn(Part, frozen=True, kw_only=True):
    """One resource on all nodes of the chunk, in whole units."""

    resource: Annotated[ResourceName, doc("Name of the resource in the cluster.")]
    unit: Annotated[Quantity, doc("Size of one unit, such as 1m of cpu or 1Mi of memory.")]
    allocatable: Annotated[
        tuple[_Amount, ...],
        doc(
            "Units of each node that are available to pods.",
            max_items=_NODES_MAX,
            list_type="atomic",
        ),
    ]
    others: Annotated[
        tuple[_Amount, ...],
        doc(
            "Units of each node that other pods than Fairway's use; empty: none.",
            max_items=_NODES_MAX,
            list_type="atomic",
        ),
    ] = ()


class DeviceColumn(Part, frozen=True, kw_only=True):
    """Free capacity of each shared device, for resources allocated in fractions."""

    resource: Annotated[ResourceName, doc("Name of the resource in the cluster.")]
    unit: Annotated[Quantity, doc("Size of one unit, such as 1m of a GPU.")]
    free: Annotated[
        tuple[Annotated[tuple[_Amount, ...], limits(max_items=64, list_type="atomic")], ...],
        doc("Free units of each device of each node.", max_items=_NODES_MAX, list_type="atomic"),
    ]


@rules(
    Rule(
        "(!has(self.unready) || size(self.unready) <= size(self.names)) && "
        "(!has(self.taintSet) || size(self.taintSet) == size(self.names)) && "
        "(!has(self.labels) || self.labels.all(c, size(c.values) == size(self.names))) && "
        "(!has(self.amounts) || self.amounts.all(c, size(c.allocatable) == size(self.names) && "
        "(!has(c.others) || size(c.others) == 0 || size(c.others) == size(self.names)))) && "
        "(!has(self.devices) || self.devices.all(c, size(c.free) == size(self.names)))",
        "all columns have one entry for each node",
    )
)
class NodeColumns(Part, frozen=True, kw_only=True):
    """Nodes of the chunk, with one entry per node in every column."""

    names: Annotated[
        tuple[Name, ...], doc("Names of the nodes.", max_items=_NODES_MAX, list_type="atomic")
    ] = ()
    unready: Annotated[
        tuple[_Row, ...],
        doc(
            "Positions of nodes that accept no pods now.", max_items=_NODES_MAX, list_type="atomic"
        ),
    ] = ()
    labels: Annotated[
        tuple[LabelColumn, ...],
        doc("Labels, one column per key.", max_items=128, list_type="map", list_map_keys=["key"]),
    ] = ()
    taint_sets: Annotated[
        tuple[TaintSet, ...],
        doc("Distinct sets of taints.", max_items=128, list_type="atomic"),
    ] = ()
    taint_set: Annotated[
        tuple[_Row, ...],
        doc(
            "Position of each node's set of taints; empty: no node has taints.",
            max_items=_NODES_MAX,
            list_type="atomic",
        ),
    ] = ()
    amounts: Annotated[
        tuple[AmountColumn, ...],
        doc(
            "Resources, one column each.",
            max_items=64,
            list_type="map",
            list_map_keys=["resource"],
        ),
    ] = ()
    devices: Annotated[
        tuple[DeviceColumn, ...],
        doc(
            "Shared devices, one column per resource.",
            max_items=16,
            list_type="map",
            list_map_keys=["resource"],
        ),
    ] = ()


@rules(
    Rule("size(self.nodes) == size(self.counts)", "each node has a count, and each count a node")
)
class PodCounts(Part, frozen=True, kw_only=True):
    """Number of pods per node."""

    nodes: Annotated[
        tuple[_Row, ...],
        doc(
            "Positions of the nodes in this chunk; in a difference, positions in the chunk "
            "after the difference, with its nodes sorted by name.",
            max_items=_NODES_MAX,
            list_type="atomic",
        ),
    ]
    counts: Annotated[
        tuple[_Amount, ...],
        doc("Pods on each of these nodes.", max_items=_NODES_MAX, list_type="atomic"),
    ]


class WorkPods(Part, frozen=True, kw_only=True):
    """The pods of one pod set of one work on the nodes of this chunk."""

    work: Annotated[Name, doc("Name of the work.")]
    pod_set: Annotated[Label, doc("Name of the pod set.")]
    attempt: Annotated[int, doc("Attempt of the workload that the pods belong to.", minimum=0)] = 0
    requests: Annotated[
        ResourceList,
        doc(
            "Requests of one pod, by the cluster's resource names; used if no claim accounts "
            "for the pods."
        ),
    ] = {}
    bound: Annotated[PodCounts | None, doc("Pods that have a node and are not terminating.")] = None
    terminating: Annotated[PodCounts | None, doc("Pods that are terminating.")] = None
    pending: Annotated[Count, doc("Pods without a node; in the first chunk only.")] = 0


class WorkState(Part, frozen=True, kw_only=True):
    """State of one work, so that one report has the state of many works."""

    work: Annotated[Name, doc("Name of the work.")]
    attempt: Annotated[int, doc("Attempt that the agent runs.", minimum=0)] = 0
    phase: Annotated[WorkPhase, doc("Phase of the work; Gone: no pod and no object of it is left.")]
    reason: Annotated[Code, doc("Reason code for the phase.")] = ""
    message: Annotated[Text, doc("Message from the cluster.")] = ""
    exit_code: Annotated[int | None, doc("Exit code, if there was one.")] = None
    started_at: Annotated[datetime | None, doc("When its pods first ran.")] = None
    ready_at: Annotated[datetime | None, doc("When all its pods were first ready.")] = None
    finished_at: Annotated[datetime | None, doc("When it ended.")] = None
    node: Annotated[Reference, doc("Node of the pod whose failure made it fail.")] = ""
    pods: Annotated[
        tuple[PodSetStatus, ...],
        doc("Its pods, by pod set.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
    succeeded_tasks: Annotated[str, doc("Tasks that succeeded, as ranges.", max_length=65536)] = ""
    failed_tasks: Annotated[
        str, doc("Tasks that failed for good, as ranges.", max_length=65536)
    ] = ""


class PoolReport(Part, frozen=True, kw_only=True):
    """Current state of an elastic pool."""

    name: Annotated[Label, doc("Name of the pool.")]
    nodes: Annotated[Count, doc("Number of nodes.")] = 0
    provisioning: Annotated[Count, doc("Number of nodes being provisioned.")] = 0
    stock: Annotated[Count | None, doc("Nodes that the provider has left.")] = None
    awaits_stock: Annotated[
        bool,
        doc(
            "Whether the source of its stock has not answered yet, so that nothing is requested "
            "from the pool."
        ),
    ] = False
    price_per_hour: Annotated[
        Quantity | None, doc("Price per node and hour, if a source reports it.")
    ] = None
    failures: Annotated[
        Count, doc("Number of failed provisioning requests since the agent started.")
    ] = 0
    fault: Annotated[Text, doc("Why the last provisioning request failed.")] = ""


@rules(Rule("!has(self.chunk) || self.chunk < self.chunks", "chunk must be below chunks", ".chunk"))
class ClusterReportSpec(Part, frozen=True, kw_only=True):
    """What was seen, and when."""

    cluster: Annotated[Name, doc("Name of the cluster.")]
    agent_epoch: Annotated[
        int, doc("Increases with each start of the agent; a lower epoch is out of date.", minimum=0)
    ]
    sequence: Annotated[int, doc("Increases with each report of this epoch.", minimum=0)]
    since_sequence: Annotated[
        int | None,
        doc(
            "Makes this a difference from the whole report with this sequence: removed items "
            "are deleted, then the listed nodes, works, states, pools and namespaces replace their "
            "earlier entries; all others stay. Unset: the chunk is whole.",
            minimum=0,
        ),
    ] = None
    chunk: Annotated[Count, doc("Position of this chunk in the report, from 0.")] = 0
    chunks: Annotated[Count, doc("Number of chunks.", minimum=1)] = 1
    seen_at: Annotated[datetime, doc("Time of the observation, by the agent's clock.")]
    nodes: Annotated[NodeColumns, doc("Nodes, in columns.")] = NodeColumns()
    removed_nodes: Annotated[
        tuple[Name, ...],
        doc("Nodes that are gone, in a difference.", max_items=_NODES_MAX, list_type="atomic"),
    ] = ()
    works: Annotated[
        tuple[WorkPods, ...],
        doc("Pods of works, by work and pod set.", max_items=10_000, list_type="atomic"),
    ] = ()
    states: Annotated[
        tuple[WorkState, ...],
        doc(
            "States of works; each work is in one chunk only.",
            max_items=10_000,
            list_type="atomic",
        ),
    ] = ()
    removed_works: Annotated[
        tuple[Name, ...],
        doc(
            "Works whose pods and state are gone, in a difference; entries listed for them in "
            "works and states still apply.",
            max_items=10_000,
            list_type="atomic",
        ),
    ] = ()
    pools: Annotated[
        tuple[PoolReport, ...],
        doc(
            "Elastic pools; in the first chunk only.",
            max_items=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    namespaces: Annotated[
        tuple[NamespaceRules, ...],
        doc(
            "Namespaces that have ResourceQuotas or LimitRanges; in the first chunk only.",
            max_items=NAMESPACES_MAX,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()


class ClusterReport(Object, frozen=True, kw_only=True):
    """What an agent last saw in its cluster: nodes, pods of works, and usage by other pods."""

    spec: Annotated[ClusterReportSpec, doc("What was seen, and when.")]
