"""The flavors that a queue offers a workload, in the order to try them.

A resource group of a queue lists flavors; all resources of the group come from one of them. So a
form of a workload has a list of assignments: one flavor for each group and pod set. Those with one
flavor for all pod sets come first, then those in which pod sets differ; both in the queue's order.
Pod sets that say that they belong together always have the same flavors. Which of several equal pod
sets has which flavor makes no difference, so only one way is tried.

Resources that a queue's own groups do not name come from groups of the nearest ancestor that names
them. A resource that no group covers has no flavor and no quota. Where a group covers `pods`, each
pod counts as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations_with_replacement, islice, product

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
    """The resource groups in force for a queue: its own, and others' for what these do not name."""
    result: list[ResourceGroup] = []
    named: set[str] = set()
    for other in (queue, *above):
        groups = other.groups
        if named and groups:
            rest = (
                replace(group, resources=tuple(r for r in group.resources if r not in named))
                for group in groups
            )
            groups = tuple(group for group in rest if group.resources)
        result.extend(groups)
        named.update(resource for group in groups for resource in group.resources)
    return tuple(result)


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
    for combination in islice(_combinations(choices), ASSIGNMENTS_MAX):
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


_Choice = Mapping[str, str]  # pod set -> flavor


def _combinations(choices: Sequence[Sequence[_Choice]]) -> Iterator[tuple[_Choice, ...]]:
    """A choice for each group: first those with one flavor for all pod sets in every group."""
    plain = [[choice for choice in some if _is_one(choice)] for some in choices]
    mixed = (some for some in product(*choices) if not all(map(_is_one, some)))
    return chain(product(*plain), mixed)


def _is_one(choice: _Choice) -> bool:
    return len(set(choice.values())) <= 1


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
    alike: dict[Hashable, list[str]] = {}  # units of equal pod sets
    for unit in suited:
        sets = tuple((a.shape, a.count) for a, of in zip(askers, units, strict=True) if of == unit)
        alike.setdefault((sets, tuple(suited[unit])), []).append(unit)
    ways = [combinations_with_replacement(suited[same[0]], len(same)) for same in alike.values()]
    order = [unit for same in alike.values() for unit in same]
    for mixed in product(*ways):
        flavor_of = dict(zip(order, chain(*mixed), strict=True))
        if len(set(flavor_of.values())) > 1:
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
