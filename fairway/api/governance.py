"""FleetPolicy: what the platform team allows in the fleet, whatever tenants write.

A policy applies to the workloads of the namespaces that it selects. Each rule of it restricts; a
rule that is left out allows everything. Where several policies apply, all of them must allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.doc import Count, Name, Priority, Rule, Seconds, doc, limits, rules
from fairway.api.meta import VERSION, ClusterSelector, Conditions, LabelSelector, Object, Part

GOVERNANCE_GROUP = "governance.fairway.dev"

RuleName = Literal["clusters", "registries", "kinds", "priority", "runSeconds"]
Enforcement = Literal["Enforce", "Warn", "DryRun"]
# A registry, or a path in one; a host has a dot or a port, as in the names of images.
Registry = Annotated[
    str,
    limits(
        pattern=r"^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+)(:[0-9]+)?"
        r"(/[a-z0-9._/-]*)?$",
        min_length=1,
        max_length=512,
    ),
]
Registries = Annotated[
    tuple[Registry, ...],
    limits(max_items=64, list_type="set"),
]
KindNames = Annotated[
    tuple[
        Annotated[
            str, limits(pattern="^([a-z0-9.-]+/)?[A-Z][A-Za-z0-9]*$", min_length=1, max_length=317)
        ],
        ...,
    ],
    limits(max_items=64, list_type="set"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule of a policy, and what it does not allow: an image, a kind, a number, a cluster."""

    policy: str
    rule: RuleName
    what: str


class NamespaceSelector(Part, frozen=True, kw_only=True):
    """Selects namespaces; all parts given must hold, and an empty selector selects all."""

    names: Annotated[
        tuple[Name, ...],
        doc("Selects namespaces by name; empty: any name.", max_items=512, list_type="set"),
    ] = ()
    exclude: Annotated[
        tuple[Name, ...],
        doc("Names of namespaces that are never selected.", max_items=512, list_type="set"),
    ] = ()
    labels: Annotated[LabelSelector | None, doc("Selects namespaces by label.")] = None


@rules(
    Rule(
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        "min must not exceed max",
        ".min",
    )
)
class PriorityRange(Part, frozen=True, kw_only=True):
    """Priorities from min to max."""

    min: Annotated[Priority | None, doc("Lowest priority; unset: no limit.")] = None
    max: Annotated[Priority | None, doc("Highest priority; unset: no limit.")] = None


class FleetPolicySpec(Part, frozen=True, kw_only=True):
    """Which namespaces the policy applies to, what they may do, and how that is enforced."""

    namespaces: Annotated[
        NamespaceSelector, doc("Selects the namespaces to whose workloads the policy applies.")
    ] = NamespaceSelector()
    clusters: Annotated[
        ClusterSelector,
        doc("Selects the clusters that may be used; regions are labels of clusters."),
    ] = ClusterSelector()
    registries: Annotated[
        Registries,
        doc(
            "Registries, or paths in them, that all images must come from, such as "
            "registry.example.com/team; empty: any. An image without a registry is of docker.io."
        ),
    ] = ()
    kinds: Annotated[
        KindNames,
        doc("Kinds that may run, as group/Kind, such as batch/Job or Pod; empty: any."),
    ] = ()
    priority: Annotated[
        PriorityRange | None, doc("Priorities that workloads may have; unset: any.")
    ] = None
    run_seconds_max: Annotated[
        Seconds | None,
        doc(
            "Maximum run time over all attempts, in seconds. A workload without a limit of its "
            "own gets this one; a workload that asks for a longer one is refused.",
            minimum=1,
        ),
    ] = None
    enforcement: Annotated[
        Enforcement,
        doc(
            "Enforce: what breaks a rule does not start. Warn: it runs, with a warning when it is "
            "written and a condition. DryRun: it is only counted in the status."
        ),
    ] = "Enforce"
    on_violation: Annotated[
        Literal["Keep", "Stop"],
        doc(
            "What happens to workloads that already run when they break a rule that is enforced. "
            "Keep: they run on, with a condition. Stop: they are stopped after graceSeconds."
        ),
    ] = "Keep"
    grace_seconds: Annotated[
        Seconds, doc("Seconds between the condition and the stop, with onViolation: Stop.")
    ] = 300


class RuleViolations(Part, frozen=True, kw_only=True):
    """Workloads that break one rule."""

    rule: Annotated[RuleName, doc("Name of the rule.")]
    count: Annotated[Count, doc("Number of workloads that break it.")] = 0
    workloads: Annotated[
        tuple[str, ...],
        doc("Some of them, as namespace/name.", max_items=10, list_type="atomic"),
    ] = ()


class FleetPolicyStatus(Part, frozen=True, kw_only=True):
    """Which workloads break the policy, pending and running ones."""

    observed_generation: Annotated[
        int, doc("Generation of the object that this status reflects.")
    ] = 0
    workloads: Annotated[Count, doc("Number of workloads that the policy applies to.")] = 0
    violating: Annotated[Count, doc("Number of workloads that break a rule of it.")] = 0
    violations: Annotated[
        tuple[RuleViolations, ...],
        doc("The broken rules.", max_items=5, list_type="map", list_map_keys=["rule"]),
    ] = ()
    conditions: Annotated[Conditions, doc("Latest observations of the policy's state.")] = ()


def _api_version() -> str:
    return f"{GOVERNANCE_GROUP}/{VERSION}"


class FleetPolicy(Object, frozen=True, kw_only=True):
    """What the workloads of some namespaces may do in the fleet; no tenant can widen it."""

    api_group: ClassVar[str] = GOVERNANCE_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[FleetPolicySpec, doc("What is allowed, and how that is enforced.")] = (
        FleetPolicySpec()
    )
    status: Annotated[FleetPolicyStatus, doc("Which workloads break the policy.")] = (
        FleetPolicyStatus()
    )
