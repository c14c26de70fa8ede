"""What a cluster allows in its namespaces: ResourceQuotas and LimitRanges, as its agent saw them.

Quotas are shared with pods of others, so what those use is reported beside the limit. Fairway
counts its own pods by its claims.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fairway.api.doc import Label, Name, Rule, doc, rules
from fairway.api.meta import Part, ResourceList

NAMESPACES_MAX = 1000
QUOTAS_MAX = 16
LIMITS_MAX = 32
SCOPES_MAX = 8
VALUES_MAX = 32

QuotaScopeName = Literal[
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
]
ScopeOperator = Literal["Exists", "DoesNotExist", "In", "NotIn"]


@rules(
    Rule(
        "self.name == 'PriorityClass' || !has(self.operator) || self.operator == 'Exists'",
        "only PriorityClass is compared; for other scopes leave out the operator",
        ".operator",
    ),
    Rule(
        "(has(self.operator) && self.operator in ['In', 'NotIn']) == "
        "(has(self.values) && size(self.values) > 0)",
        "In and NotIn need values, and other operators have none",
        ".values",
    ),
)
class QuotaScope(Part, frozen=True, kw_only=True):
    """Restricts a quota to some pods."""

    name: Annotated[QuotaScopeName, doc("Which property of a pod is looked at.")]
    operator: Annotated[
        ScopeOperator, doc("How the priority class is compared; other scopes only exist.")
    ] = "Exists"
    values: Annotated[
        tuple[str, ...],
        doc(
            "Names of priority classes, for In and NotIn.",
            max_items=VALUES_MAX,
            list_type="set",
        ),
    ] = ()


class NamespaceQuota(Part, frozen=True, kw_only=True):
    """A ResourceQuota, as far as it limits pods."""

    name: Annotated[Name, doc("Name of the ResourceQuota.")]
    hard: Annotated[
        ResourceList,
        doc("Limits for all pods together, such as requests.cpu, limits.memory or pods."),
    ] = {}
    others: Annotated[
        ResourceList, doc("What pods other than Fairway's use of it; not listed: nothing.")
    ] = {}
    scopes: Annotated[
        tuple[QuotaScope, ...],
        doc(
            "It counts only pods that all of these select; empty: every pod.",
            max_items=SCOPES_MAX,
            list_type="atomic",
        ),
    ] = ()


class NamespaceLimit(Part, frozen=True, kw_only=True):
    """One entry of a LimitRange, for each container or for each pod as a whole."""

    name: Annotated[Name, doc("Name of the LimitRange.")]
    type: Annotated[Literal["Container", "Pod"], doc("What it limits.")] = "Container"
    min: Annotated[ResourceList, doc("The least that must be requested.")] = {}
    max: Annotated[ResourceList, doc("The most that a limit may be; a limit must be set.")] = {}
    default: Annotated[ResourceList, doc("Limits of containers that set none.")] = {}
    default_request: Annotated[ResourceList, doc("Requests of containers that state none.")] = {}
    max_limit_request_ratio: Annotated[
        ResourceList, doc("How many times its request a limit may be.")
    ] = {}


class NamespaceRules(Part, frozen=True, kw_only=True):
    """What a cluster allows in one namespace."""

    name: Annotated[Label, doc("Name of the namespace.")]
    quotas: Annotated[
        tuple[NamespaceQuota, ...],
        doc(
            "Its ResourceQuotas; a pod must fit in all that count it.",
            max_items=QUOTAS_MAX,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = ()
    limits: Annotated[
        tuple[NamespaceLimit, ...],
        doc("Entries of its LimitRanges.", max_items=LIMITS_MAX, list_type="atomic"),
    ] = ()
