"""Pod sets: pods of one shape in a workload, and alternative forms in which they may run."""

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
    """How close together the pods of a set must be."""

    required: Annotated[
        OptionalLabel, doc("Topology level of which one domain must hold all pods.")
    ] = ""
    preferred: Annotated[
        OptionalLabel, doc("Topology level of which one domain should hold all pods.")
    ] = ""
    slice_level: Annotated[
        OptionalLabel, doc("Topology level of which one domain must hold each slice.")
    ] = ""
    slice_size: Annotated[
        Count | None, doc("Number of pods per slice, such as a TPU slice.", minimum=1)
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

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count, doc("Number of pods; per replica in a Divided workload.")] = 1
    least_count: Annotated[Count | None, doc("Minimum useful number of pods; unset: all.")] = None
    requests: Annotated[ResourceList, doc("Resource requests of each pod.")] = {}
    node_selector: Annotated[Labels, doc("Labels that the nodes must have.")] = {}
    node_affinity: Annotated[
        tuple[NodeTerm, ...],
        doc("Further requirements on nodes; one term must hold.", max_items=16, list_type="atomic"),
    ] = ()
    tolerations: Annotated[
        tuple[Toleration, ...],
        doc("Node taints that the pods tolerate.", max_items=32, list_type="atomic"),
    ] = ()
    topology: Annotated[TopologyRequest | None, doc("How close together the pods must be.")] = None
    member_size: Annotated[
        Count | None,
        doc(
            "Number of pods that stay in one cluster if a gang is split, such as those of one "
            "job of a JobSet; unset: all.",
            minimum=1,
        ),
    ] = None
    completions: Annotated[
        Count | None,
        doc(
            "Number of pods that must succeed in all, such as the completions of a Job. When fewer "
            "are left than run at a time, the others give back their quota and nodes; unset: pods "
            "keep theirs until the workload ends."
        ),
    ] = None
    group: Annotated[
        OptionalLabel,
        doc("Pod sets with the same group use the same flavors; empty: each uses what suits it."),
    ] = ""


@rules(
    Rule(
        "!has(self.leastCount) || !has(self.count) || self.leastCount <= self.count",
        "leastCount must not exceed count",
        ".leastCount",
    )
)
class PodSetChange(Part, frozen=True, kw_only=True):
    """Changes to one pod set."""

    name: Annotated[Label, doc("Name of the pod set.")]
    count: Annotated[Count | None, doc("Number of pods; unset: unchanged.")] = None
    least_count: Annotated[
        Count | None,
        doc("Minimum useful number of pods; unset: unchanged, or all if count is set."),
    ] = None
    requests: Annotated[
        ResourceList, doc("Resource requests to change, per pod; 0 removes a resource.")
    ] = {}
    image: Annotated[str, doc("Image of the containers; empty: unchanged.", max_length=1024)] = ""
    environment: Annotated[
        tuple[EnvironmentVariable, ...],
        doc("Variables to add.", max_items=64, list_type="map", list_map_keys=["name"]),
    ] = ()


class Alternative(Part, frozen=True, kw_only=True):
    """Another form in which the workload may run, if the earlier ones do not fit for a while."""

    name: Annotated[Label, doc("Name of the alternative.")]
    after_seconds: Annotated[
        Seconds, doc("Seconds to wait for the earlier forms before this one is tried.")
    ] = 0
    flavors: Annotated[
        tuple[Name, ...],
        doc("Flavors it may use; empty: any.", max_items=32, list_type="atomic"),
    ] = ()
    pod_sets: Annotated[
        tuple[PodSetChange, ...],
        doc("Changes to the pod sets.", max_items=18, list_type="map", list_map_keys=["name"]),
    ] = ()
