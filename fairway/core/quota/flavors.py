"""The flavors that a queue offers a workload, in the order to try them.

A resource group of a queue lists flavors; all resources of the group come from one of them. So a
form of a workload has a list of assignments: one flavor for each group and pod set. Those with one
flavor for all pod sets come first, then those in which pod sets differ; both in the queue's order.
Pod sets that say that they belong together always have the same flavors.

A queue without groups of its own uses those of the nearest ancestor that has some. A resource that
no group covers has no flavor and no quota. Where a group covers `pods`, each pod counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from fairway.api.meta import NodeTerm
from fairway.core.model import (
    NO_FLAVOR,
    ONE_POD,
    PODS,
    Flavor,
    FlavorResource,
    Form,
    PodSet,
    Queue,
    ResourceGroup,
    Shape,
)
from fairway.core.packing.eligibility import tolerates

# The most combinations of flavors over groups and pod sets that are tried for one form.
ASSIGNMENTS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A flavor for each resource of each pod set."""

    flavors: Mapping[str, Mapping[str, str]]  # pod set -> resource -> flavor
    names: tuple[str, ...]  # the flavors used, in order of groups
    form: Form | None = field(default=None, compare=False)  # the form it was made for
    full: Mapping[FlavorResource, int] = field(default_factory=dict, compare=False)
    # the charge of all pods of that form; read-only

    def usage(
        self, counts: Mapping[str, int], shapes: Mapping[str, Shape]
    ) -> dict[FlavorResource, int]:
        """The charge of `counts` pods of each set."""
        return _charge(self.flavors, counts, shapes)

    def full_usage(self, form: Form) -> Mapping[FlavorResource, int]:
        """The charge of all pods of a form."""
        if form is self.form:
            return self.full
        return _charge(self.flavors, *_needs(form))

    def kinds(self, pod_set: str) -> tuple[str, ...]:
        """The flavors of a pod set, each once, sorted by name."""
        return tuple(sorted(set(self.flavors[pod_set].values())))

    def flavors_of(self, pod_set: str) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self.flavors[pod_set].items()))


def _needs(form: Form) -> tuple[dict[str, int], dict[str, Shape]]:
    """The count and the shape of each pod set of a form."""
    return (
        {pod_set.name: pod_set.count for pod_set in form.pod_sets},
        {pod_set.name: pod_set.shape for pod_set in form.pod_sets},
    )


def _charge(
    flavors: Mapping[str, Mapping[str, str]],
    counts: Mapping[str, int],
    shapes: Mapping[str, Shape],
) -> dict[FlavorResource, int]:
    total: dict[FlavorResource, int] = {}
    for pod_set, count in counts.items():
        flavor_of = flavors[pod_set]
        for resource, amount in shapes[pod_set].charges:
            key = (flavor_of.get(resource, NO_FLAVOR), resource)
            total[key] = total.get(key, 0) + amount * count
        if PODS in flavor_of:
            key = (flavor_of[PODS], PODS)
            total[key] = total.get(key, 0) + ONE_POD * count
    return total


def groups_of(queue: Queue, above: Sequence[Queue]) -> tuple[ResourceGroup, ...]:
    """The resource groups in force for a queue: its own, else those of the nearest ancestor."""
    for other in (queue, *above):
        if other.groups:
            return other.groups
    return ()


def assignments(
    form: Form, groups: Sequence[ResourceGroup], flavors: Mapping[str, Flavor]
) -> list[Assignment]:
    """The first `ASSIGNMENTS_MAX` assignments that suit a form, in the order to try them."""
    wanted = [(group, _askers(group, form)) for group in groups]
    wanted = [(group, askers) for group, askers in wanted if askers]
    choices = [
        list(islice(_choices(group, askers, form, flavors), ASSIGNMENTS_MAX))
        for group, askers in wanted
    ]
    counts, shapes = _needs(form)
    result = []
    for combination in islice(product(*choices), ASSIGNMENTS_MAX):
        by_set: dict[str, dict[str, str]] = {pod_set.name: {} for pod_set in form.pod_sets}
        names: list[str] = []
        for (group, askers), chosen in zip(wanted, combination, strict=True):
            for pod_set in askers:
                flavor = chosen[pod_set.name]
                if flavor not in names:
                    names.append(flavor)
                for resource in (*(name for name, _ in pod_set.shape.charges), PODS):
                    if resource in group.resources:
                        by_set[pod_set.name][resource] = flavor
        full = _charge(by_set, counts, shapes)
        result.append(Assignment(flavors=by_set, names=tuple(names), form=form, full=full))
    return result


def _askers(group: ResourceGroup, form: Form) -> list[PodSet]:
    """The pod sets that request a resource of a group; each of them requests pods."""
    return [
        pod_set
        for pod_set in form.pod_sets
        if PODS in group.resources
        or any(resource in group.resources for resource, _ in pod_set.shape.charges)
    ]


def _choices(
    group: ResourceGroup, askers: list[PodSet], form: Form, flavors: Mapping[str, Flavor]
) -> Iterator[Mapping[str, str]]:
    """Flavors for the pod sets of one group: one for all, then different ones."""
    allowed = [
        name
        for name in group.flavors
        if name in flavors and (not form.flavors or name in form.flavors)
    ]
    # Pod sets without a group are by themselves.
    units = [asker.group or f" {asker.name}" for asker in askers]
    suited = dict.fromkeys(units, allowed)
    for asker, unit in zip(askers, units, strict=True):
        suited[unit] = [name for name in suited[unit] if not misfit(asker.shape, flavors[name])]
    for name in allowed:
        if all(name in names for names in suited.values()):
            yield {asker.name: name for asker in askers}
    for mixed in product(*suited.values()):
        if len(set(mixed)) > 1:
            flavor_of = dict(zip(suited, mixed, strict=True))
            yield {asker.name: flavor_of[unit] for asker, unit in zip(askers, units, strict=True)}


def misfit(shape: Shape, flavor: Flavor) -> str:
    """Why a flavor does not suit a shape; empty where it does.

    The taints of the flavor must be tolerated. The shape's selector and affinity must agree with
    the flavor's labels where they name the same keys.
    """
    tolerations = (*shape.tolerations, *flavor.tolerations)
    for taint in flavor.node_taints:
        if taint.effect != "PreferNoSchedule" and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return f"the taint {taint.key} is not tolerated"
    labels = dict(flavor.node_labels)
    for key, value in shape.node_selector:
        if key in labels and labels[key] != value:
            return f"{key} must be {value}"
    if shape.node_affinity and not any(_may_hold(term, labels) for term in shape.node_affinity):
        return "its node affinity excludes it"
    return ""


def _may_hold(term: NodeTerm, labels: Mapping[str, str]) -> bool:
    """Whether a term can hold on a node with these labels, whatever other labels it has."""
    for expression in term.match_expressions:
        if expression.key not in labels:
            continue
        value = labels[expression.key]
        if expression.operator == "In" and value not in expression.values:
            return False
        if expression.operator == "NotIn" and value in expression.values:
            return False
        if expression.operator == "DoesNotExist":
            return False
    return True
