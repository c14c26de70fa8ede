"""Pods as a cluster admits them: what they need on nodes there, and take of its allowances.

See `allowances`. In a cluster without rules for the namespace, pods are as they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairway.core.allowances import ADMITTED, Admission, AllowanceKey, Beyond
from fairway.core.model import Placed, Shape, Workload
from fairway.core.nodes import Room


def admission_in(shape: Shape, cluster: str) -> Admission:
    """What a cluster makes of a pod."""
    for name, admission in shape.admitted:
        if name == cluster:
            return admission
    return ADMITTED


def shape_in(shape: Shape, cluster: str) -> Shape:
    """The shape that a pod has in a cluster. What it is charged in quota is the same everywhere."""
    added = admission_in(shape, cluster).added if shape.admitted else ()
    if not added:
        return shape
    requests = dict(shape.requests)
    for resource, amount in added:
        requests[resource] = requests.get(resource, 0) + amount
    return replace(shape, requests=tuple(sorted(requests.items())), counts_as=shape.charges)


def taken_in(cluster: str, placed: Iterable[Placed]) -> dict[AllowanceKey, int]:
    """What placements take of the allowances of a cluster; those elsewhere take nothing of them."""
    taken: dict[AllowanceKey, int] = {}
    for placement in placed:
        if placement.cluster != cluster:
            continue
        for pods in placement.pods:
            if pods.shape.admitted and pods.count:
                for key, amount in admission_in(pods.shape, cluster).takes:
                    taken[key] = taken.get(key, 0) + amount * pods.count
    return taken


def allowance_of(workload: Workload, cluster: str) -> dict[AllowanceKey, int]:
    """What a workload holds of the allowances of a cluster."""
    return taken_in(cluster, workload.held.placed if workload.held else ())


def left_of(room: Room, key: AllowanceKey) -> int | None:
    """What is left of an allowance; None: there is no such limit."""
    allowance = room.cluster.allowances.get(key)
    return None if allowance is None else allowance.left - room.spent.get(key, 0)


def beyond(room: Room, asked: Mapping[AllowanceKey, int]) -> list[Beyond]:
    """The allowances that are too small for what is asked, in order."""
    result = []
    for key in sorted(asked):
        left = left_of(room, key)
        if left is not None and asked[key] > left:
            hard = room.cluster.allowances[key].hard
            result.append(Beyond(key=key, asked=asked[key], left=left, hard=hard))
    return result


def asked_by(pods: Iterable[tuple[Admission, int]]) -> dict[AllowanceKey, int]:
    """What some pods of each admission take together."""
    asked: dict[AllowanceKey, int] = {}
    for admission, count in pods:
        for key, amount in admission.takes:
            asked[key] = asked.get(key, 0) + amount * count
    return {key: amount for key, amount in asked.items() if amount}
