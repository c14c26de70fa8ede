"""The pods that a workload is charged for: no fewer and no smaller than its manifests run.

A user may give the pod sets of a workload. If the kind of its first manifest is known, that hides
nothing from quota: at least what the pods of the manifest request counts, and pods that are left
out are a fault. Only the first manifest runs; the pods of another one would not be charged.

A claim that was made of another template counts for a workload only if it covers what would run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from fairway.api.claim import PlacedPodSet
from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.api.workload import Workload
from fairway.kinds.native import derived_pod_sets
from fairway.kinds.plain import text
from fairway.kinds.registry import KnownKinds
from fairway.view.queues import request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPods:
    """The pod sets that are charged, and why some pods cannot be."""

    pod_sets: tuple[PodSet, ...]
    faults: tuple[str, ...] = ()


def count_pods(workload: Workload, kinds: KnownKinds) -> CountedPods:
    """The pod sets of a workload: those in its spec, else those of the kind of its manifest."""
    template, given = workload.spec.template, workload.spec.pod_sets
    faults = tuple(_others(template.manifests, kinds)) if template is not None else ()
    derived = derived_pod_sets(workload, kinds)
    if not given or not derived:
        return CountedPods(pod_sets=given or derived, faults=faults)
    pairs = _pairs(given, derived)
    named = {pods.name for pods in pairs.values()}
    return CountedPods(
        pod_sets=tuple(_at_least(pods, pairs.get(pods.name)) for pods in given),
        faults=(
            *faults,
            *(
                f"spec.podSets leave out the pods of {pods.name}"
                for pods in derived
                if pods.name not in named
            ),
            *_too_few(workload, pairs, kinds),
        ),
    )


def _others(manifests: Sequence[JsonObject], kinds: KnownKinds) -> Iterator[str]:
    for position, manifest in enumerate(manifests[1:], start=1):
        kind = kinds.of(manifest)
        if kind is not None and any(pods.count for pods in kind.pod_sets(manifest)):
            yield (
                f"spec.template.manifests[{position}] is a {text(manifest, 'kind')} with pods, and "
                "only the first manifest may have any"
            )


def _too_few(workload: Workload, pairs: Mapping[str, PodSet], kinds: KnownKinds) -> Iterator[str]:
    """Sets of fewer pods than the manifest runs, if its kind does not take the given number."""
    for given in workload.spec.pod_sets:
        run = pairs.get(given.name)
        if run is not None and given.count < run.count and not _takes(workload, given, kinds):
            yield (
                f"spec.podSets say {given.count} pods of {given.name}, and the manifest runs "
                f"{run.count}"
            )


def _takes(workload: Workload, given: PodSet, kinds: KnownKinds) -> bool:
    """Whether the number of pods of a set can be written into the manifest that runs."""
    assert workload.spec.template is not None, "its kind is known"
    manifest = workload.spec.template.manifests[0]
    kind = kinds.of(manifest)
    assert kind is not None, "it has derived pod sets"
    written = kind.with_counts(manifest, {given.name: given.count})
    run = {pods.name: pods.count for pods in kinds.pod_sets(written, workload.spec.mode)}
    return run.get(given.name, 0) <= given.count


def _pairs(given: Sequence[PodSet], derived: Sequence[PodSet]) -> dict[str, PodSet]:
    """The pods of the manifest that each given set stands for; one alone may have another name."""
    by_name = {pods.name: pods for pods in derived}
    if len(given) == len(derived) == 1 and derived[0].count <= given[0].count:
        return {given[0].name: derived[0]}
    return {pods.name: by_name[pods.name] for pods in given if pods.name in by_name}


def _at_least(given: PodSet, run: PodSet | None) -> PodSet:
    """A given set that requests no less than the pods that run."""
    if run is None:
        return given
    more = {
        resource: amount
        for resource, amount in run.requests.items()
        if resource not in given.requests or amount > given.requests[resource]
    }
    return replace(given, requests={**given.requests, **more}) if more else given


def covers(placed: Sequence[PlacedPodSet], workload: Workload, kinds: KnownKinds) -> bool:
    """Whether a placement of an earlier workload accounts for the pods that this one would run.

    A gang in one cluster has all its pods there; other placements are parts.
    """
    by_name = {pods.name: pods for pods in placed}
    return all(
        (there := by_name.get(pods.name)) is not None and _covers(there, pods, workload)
        for pods in count_pods(workload, kinds).pod_sets
        if pods.count
    )


def _covers(placed: PlacedPodSet, wanted: PodSet, workload: Workload) -> bool:
    charged = dict(request_of(placed.requests))
    # Pods that were placed without requests are charged those that are given now.
    if charged and any(
        charged.get(name, 0) < amount for name, amount in request_of(wanted.requests)
    ):
        return False
    if workload.spec.mode != "Gang":
        return True
    gang = workload.spec.gang
    is_whole = gang is None or gang.clusters_max == 1
    least = wanted.count if wanted.least_count is None else wanted.least_count
    return (least if is_whole else 0) <= placed.count <= wanted.count
