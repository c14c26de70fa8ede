"""The forms in which a workload may run: its first form, its alternatives, its ways to get devices.

Requests with alternatives (`firstAvailable`) make one form for each way to satisfy them, in order
of preference; the claim names the form that was chosen. A workload that lists alternatives of its
own uses the first way in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from fairway.api.fleet import FleetSpec
from fairway.api.podset import Alternative, PodSet, PodSetChange
from fairway.api.reasons import Code, Reason
from fairway.api.workload import Workload
from fairway.core import model
from fairway.kinds.device_claims import NO_DEVICES, Counted, Way, way_name, with_devices
from fairway.view.charges import counts_as
from fairway.view.devices import classes_of, taken_beside, unmapped, with_resources
from fairway.view.pod_counts import CountedPods
from fairway.view.queues import request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """The forms of a workload, and why its devices, or its pods, cannot be counted."""

    forms: tuple[model.Form, ...]
    uncounted: Reason | None = None
    given: Mapping[str, PodSet] = field(default_factory=dict)  # of the first form, by name


def forms_of(
    workload: Workload,
    pods: CountedPods,
    fleet: FleetSpec,
    counted: Counted = NO_DEVICES,
) -> Forms:
    """The forms of a workload; hold-out times add up."""
    pod_sets = pods.pod_sets
    spec, first, classes = workload.spec, counted.ways[0], classes_of(fleet)
    plain = tuple(_with_devices(pod_set, first) for pod_set in pod_sets)
    faults = [
        *counted.faults,
        *(
            fault
            for way in counted.ways
            for pod_set in pod_sets
            for fault in unmapped(_with_devices(pod_set, way).requests, classes)
        ),
    ]
    forms = [_form("", plain, fleet, flavors=spec.flavors)]
    for number, way in enumerate(counted.ways[1:] if not spec.alternatives else (), start=1):
        sets = tuple(_with_devices(pod_set, way) for pod_set in pod_sets)
        forms.append(_form(way_name(number), sets, fleet, flavors=spec.flavors))
    waited = 0
    for alternative in spec.alternatives:
        waited += alternative.after_seconds
        changed = tuple(
            _with_devices(pod_set, first) for pod_set in _changed(alternative, pod_sets)
        )
        forms.append(
            _form(alternative.name, changed, fleet, flavors=alternative.flavors, after=waited)
        )
    return Forms(
        forms=tuple(forms),
        uncounted=_uncounted(pods.faults, dict.fromkeys(faults)),
        given={pod_set.name: pod_set for pod_set in plain},
    )


def _uncounted(pods: Iterable[str], devices: Iterable[str]) -> Reason | None:
    """Why some pods cannot be counted, else why some devices cannot be."""
    for code, faults in ((Code.PODS_NOT_COUNTED, pods), (Code.DEVICES_NOT_COUNTED, devices)):
        if said := "; ".join(faults):
            return Reason(code=code, other=said)
    return None


def _with_devices(pod_set: PodSet, way: Way) -> PodSet:
    devices = way.devices.get(pod_set.name)
    if not devices:
        return pod_set
    return replace(pod_set, requests=with_devices(pod_set.requests, devices))


def _changed(alternative: Alternative, given: tuple[PodSet, ...]) -> tuple[PodSet, ...]:
    """The pod sets of an alternative."""
    changes = {pod_set.name: pod_set for pod_set in alternative.pod_sets}
    return tuple(_change(pod_set, changes.get(pod_set.name)) for pod_set in given)


def _change(pod_set: PodSet, change: PodSetChange | None) -> PodSet:
    if change is None:
        return pod_set
    least = pod_set.count if pod_set.least_count is None else pod_set.least_count
    count = pod_set.count if change.count is None else change.count
    least = min(least, count) if change.count is None else count
    requests = {**pod_set.requests, **change.requests}
    return replace(
        pod_set,
        count=count,
        least_count=least if change.least_count is None else change.least_count,
        requests={name: amount for name, amount in requests.items() if amount},
    )


def _form(
    name: str,
    pod_sets: tuple[PodSet, ...],
    fleet: FleetSpec,
    *,
    flavors: tuple[str, ...],
    after: int = 0,
) -> model.Form:
    return model.Form(
        name=name,
        after_seconds=after,
        flavors=flavors,
        pod_sets=tuple(_pod_set(pod_set, fleet) for pod_set in pod_sets),
    )


def _pod_set(pod_set: PodSet, fleet: FleetSpec) -> model.PodSet:
    topology = pod_set.topology
    least = pod_set.count if pod_set.least_count is None else pod_set.least_count
    return model.PodSet(
        name=pod_set.name,
        shape=_shape(pod_set, fleet),
        count=pod_set.count,
        least=least,
        topology=model.Topology(
            required=topology.required,
            preferred=topology.preferred,
            slice_level=topology.slice_level,
            slice_size=topology.slice_size or 1,
        )
        if topology
        else model.Topology(),
        member_size=pod_set.member_size or 0,
        group=pod_set.group,
    )


def _shape(pod_set: PodSet, fleet: FleetSpec) -> model.Shape:
    classes = classes_of(fleet)
    requests = request_of(with_resources(pod_set.requests, classes))
    return model.Shape(
        requests=requests,
        beside=taken_beside(requests, classes),
        counts_as=counts_as(requests, fleet),
        node_selector=tuple(sorted(pod_set.node_selector.items())),
        node_affinity=pod_set.node_affinity,
        tolerations=pod_set.tolerations,
    )
