"""Devices as resources: by their class, which a node must have, and by the resource of the class.

The Fleet says which resource the devices of a class count as. A pod that asks for two devices of a
class needs two of that class and two of the resource on its node, and is charged the resource. A
node has as many of the resource as of the class of which it has most: a device that several classes
select is not counted twice. Where a kubelet offers the resource itself, its number counts.

A container may request the resource by its own name only on nodes that offer it so: their kubelet
does, or a class has it as its extended resource. How many is a column of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairway.api.amounts import DEVICE_CLASS_PREFIX, Quantity
from fairway.api.fleet import FleetSpec
from fairway.api.podset import PodSet
from fairway.api.workload import Workload
from fairway.core import model
from fairway.core.nodes import Amounts
from fairway.kinds.device_claims import (
    NO_DEVICES,
    Claims,
    Counted,
    claims_among,
    class_resource,
    count_devices,
)
from fairway.kinds.registry import Kinds

Classes = Mapping[str, str]  # resource that devices count as, by the resource of their class

NO_CLASSES: Classes = {}


def classes_of(fleet: FleetSpec) -> dict[str, str]:
    return {class_resource(rule.name): rule.resource for rule in fleet.device_classes}


def is_of_class(resource: str) -> bool:
    return resource.startswith(DEVICE_CLASS_PREFIX)


def counted_devices(
    workload: Workload, pod_sets: tuple[PodSet, ...], claims: Claims, kinds: Kinds
) -> Counted:
    """The devices that the pods of a workload ask for; claims of the template come first."""
    template = workload.spec.template
    if template is None:
        return NO_DEVICES
    first = template.manifests[0]
    kind = kinds.of(first)
    if kind is None or not any(
        (part.get("spec") or {}).get("resourceClaims") for part in kind.templates(first).values()
    ):
        return NO_DEVICES
    times = copies_of(workload)
    pods = {pod_set.name: pod_set.count * times for pod_set in pod_sets}
    counted = count_devices(first, kind, {**claims, **claims_among(template.manifests)}, pods)
    unknown = sorted({name for way in counted.ways for name in way.devices} - pods.keys())
    if unknown:
        missing = tuple(f"spec.podSets: pods of {name} ask for devices" for name in unknown)
        return Counted(faults=(*counted.faults, *missing))
    return counted


def copies_of(workload: Workload) -> int:
    """How many copies of its pod sets a workload may run at a time."""
    spec = workload.spec
    if spec.mode == "Divided":
        return 1 if spec.replicas is None else spec.replicas
    return spec.tasks.count if spec.mode == "Independent" and spec.tasks else 1


def extended(resource: str) -> str:
    """The name by which devices are counted that containers can request as a resource."""
    return f"{resource} as extended resource"


def taken_beside(requests: model.Request, classes: Classes) -> model.Request:
    """What a pod takes of its node besides its requests: what its containers request by name."""
    if not classes:
        return ()
    left = dict(requests)
    for name, resource in classes.items():
        if name in left:
            left[resource] = left.get(resource, 0) - left[name]
    mapped = sorted(set(classes.values()))
    return tuple((extended(name), left[name]) for name in mapped if left.get(name, 0) > 0)


def unmapped(requests: Mapping[str, Quantity], classes: Classes) -> list[str]:
    """Why requested devices cannot be counted: their class counts as nothing."""
    return [
        f"device class {name.removeprefix(DEVICE_CLASS_PREFIX)} is not in spec.deviceClasses of "
        "the Fleet"
        for name in requests
        if is_of_class(name) and name not in classes
    ]


def with_resources(requests: Mapping[str, Quantity], classes: Classes) -> dict[str, Quantity]:
    """Requests, with the resources of the device classes among them."""
    result = dict(requests)
    for name, amount in requests.items():
        if name in classes:
            resource = classes[name]
            before = result.get(resource)
            result[resource] = amount if before is None else before.plus(amount)
    return result


def with_shape(shape: Mapping[str, int], classes: Classes) -> dict[str, int]:
    """What a new node has, with the resources of its devices."""
    result = dict(shape)
    result.update(
        (extended(resource), shape[resource]) for resource in classes.values() if resource in shape
    )
    for name, resource in classes.items():
        if shape.get(name) and not shape.get(resource):
            result[resource] = max(result.get(resource, 0), shape[name])
    return result


def with_columns(
    free: Mapping[str, Amounts], has: Mapping[str, Amounts], classes: Classes
) -> dict[str, Amounts]:
    """Columns of what is free on nodes, with those of the resources of their devices.

    `has` is what nodes have, in use or not.
    """
    result = dict(free)
    result.update(
        (extended(resource), free[resource]) for resource in classes.values() if resource in free
    )
    for name in sorted(free.keys() & classes.keys()):
        resource, column = classes[name], free[name]
        before = result.get(resource)
        if before is None:
            result[resource] = column
        else:
            own = has.get(resource)
            is_own = np.zeros(len(column), dtype=np.bool_) if own is None else own > 0
            result[resource] = np.where(is_own, before, np.maximum(before, column))
    return result


def completed(stored: model.Request, given: model.Request, classes: Classes) -> model.Request:
    """The requests of a claim, with devices that were not counted when it was made."""
    if any(is_of_class(name) for name, _ in stored):
        return stored
    result = dict(stored or ((name, amount) for name, amount in given if not is_of_class(name)))
    for name, amount in given:
        if name in classes:
            result[name] = amount
            result[classes[name]] = result.get(classes[name], 0) + amount
    return tuple(sorted(result.items()))
