"""Pod sets: pods of one shape in a workload, and the other forms in which they may run."""

from __future__ import annotations

from typing import Annotated

from fairway.api.doc import Count, Label, Name, OptionalLabel, Rule, Seconds, doc, rules
from fairway.api.meta import EnvironmentVariable, Labels, NodeTerm, Part, ResourceList, Toleration


@rules(
    Rule(
        "!has(self.required) || self.required == '' || !has(self.preferred) || "
        "self.preferred == ''",
        "a topology level is either required or preferred",
    ),
    Rule(
        "has(self.sliceSize) == (has(self.sliceLevel) && self.sliceLevel != '')",
        "sliceSize and sliceLevel go together",
    ),
)
class TopologyRequest(Part, frozen=True, kw_only=True):
    """How near to each other the pods of a set must be."""

    required: Annotated[OptionalLabel, doc("Level of which one domain must hold all pods.")] = ""
    preferred: Annotated[OptionalLabel, doc("Level of which one domain should hold all pods.")] = ""
    slice_level: Annotated[
        OptionalLabel, doc("Level of which one domain must hold each slice.")
    ] = ""
    slice_size: Annotated[
        Count | None, doc("Pods of a slice, such as those of a TPU slice.", minimum=1)
    ] = None


@rules(
    Rule(
        "!has(self.leastCount) || self.leastCount <= (has(self.count) ? self.count : 1)",
        "leastCount must not exceed count",
        ".leastCount",
    )
)
class PodSet(Part, frozen=True, kw_only=True):
    """Pods of one shape: a role in the workload."""

    name: Annotated[Label, doc("Name of the role.")]
    count: Annotated[Count, doc("How many pods; per replica in a Divided workload.")] = 1
    least_count: Annotated[Count | None, doc("Fewest pods that are of use; unset means all.")] = (
        None
    )
    requests: Annotated[ResourceList, doc("What each pod needs.")] = {}
    node_selector: Annotated[Labels, doc("Labels that the nodes must have.")] = {}
    node_affinity: Annotated[
        tuple[NodeTerm, ...],
        doc("Further tests of nodes, one of which must hold.", max_items=16, list_type="atomic"),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Taints of nodes that the pods bear.", max_items=32, list_type="atomic"),
    ] = ()
    topology: Annotated[TopologyRequest | None, doc("How near to each other the pods must be.")] = (
        None
    )
    member_size: Annotated[
        Count | None,
        doc(
            "Pods that stay in one cluster where a gang may split, such as a job of a JobSet.",
            minimum=1,
        ),
    ] = None


@rules(
    Rule(
        "!has(self.leastCount) || !has(self.count) || self.leastCount <= self.count",
        "leastCount must not exceed count",
        ".leastCount",
    )
)
class PodSetChange(Part, frozen=True, kw_only=True):
    """What is different in one pod set."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count | None, doc("How many pods; unset: the same.")] = None
    least_count: Annotated[Count | None, doc("Fewest pods that are of use; unset: the same.")] = (
        None
    )
    requests: Annotated[
        ResourceList, doc("What each pod needs of these resources instead; 0 takes one away.")
    ] = {}
    image: Annotated[str, doc("Image of its containers; empty: the same.", max_length=1024)] = ""
    environment: Annotated[
        tuple[EnvironmentVariable, ...],
        doc("Variables to add.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()


class Alternative(Part, frozen=True, kw_only=True):
    """Another form in which the workload may run, if it can't have the first for a while."""

    name: Annotated[Label, doc("Name of the alternative.")]
    after_seconds: Annotated[
        Seconds, doc("How long to hold out for the earlier ones before this one is tried.")
    ] = 0
    flavors: Annotated[
        tuple[Name, ...],
        doc("Flavors it may use; none means any.", max_items=32, list_type="atomic"),
    ] = ()
    pod_sets: Annotated[
        tuple[PodSetChange, ...],
        doc("What is different.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
