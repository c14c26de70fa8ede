"""What is kept of a node: its allocatable amounts, labels, taints, and whether it is ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairway.api.amounts import Quantity, QuantityError
from fairway.api.meta import Taint

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# Feature discovery adds hundreds of labels about processors and kernels. Reports have room for some
# labels only, and pods are not placed by these.
_UNTOLD_LABELS = ("feature.node.kubernetes.io/", "beta.kubernetes.io/")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_VALUE_MOST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as its kubelet and the cluster's controllers describe it."""

    allocatable: Mapping[str, int] = field(default_factory=dict)  # in nanos
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True


class _Taint(msgspec.Struct, rename="camel"):
    key: str
    effect: str
    value: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Metadata(msgspec.Struct):
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct):
    taints: list[_Taint] = []
    unschedulable: bool = False


class _Status(msgspec.Struct):
    allocatable: dict[str, Any] = {}
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Node).decode


class ReadNode:
    """Reads nodes; nodes of one shape share their amounts."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}

    def __call__(self, raw: bytes) -> Node:
        node = _decode(raw)
        amounts = tuple(sorted(_amounts(node.status.allocatable).items()))
        ready = any(
            condition.type == "Ready" and condition.status == "True"
            for condition in node.status.conditions
        )
        return Node(
            allocatable=self._shapes.setdefault(amounts, dict(amounts)),
            labels={
                key: value
                for key, value in node.metadata.labels.items()
                if not key.startswith(_UNTOLD_LABELS)
            },
            taints=_taints(node.spec),
            is_ready=ready,
        )


def _amounts(allocatable: Mapping[str, Any]) -> dict[str, int]:
    amounts = {}
    for name, value in allocatable.items():
        try:
            amounts[name] = Quantity.of(value).nanos
        except QuantityError:
            continue
    return amounts


def _taints(spec: _Spec) -> tuple[Taint, ...]:
    """The taints of a node; a cordoned node has its taint even before a controller sets it."""
    taints = [
        Taint(key=taint.key, value=taint.value[:_VALUE_MOST], effect=taint.effect)  # type: ignore[arg-type]  # checked next
        for taint in spec.taints
        if taint.effect in _EFFECTS
    ]
    if spec.unschedulable and not any(taint.key == _UNSCHEDULABLE for taint in taints):
        taints.append(Taint(key=_UNSCHEDULABLE, effect="NoSchedule"))
    return tuple(taints)
