"""How much is free, as scores with the names of OCM's resource usage collector.

Names and scales are the same eight, so that a policy written for that collector means the same
here. Free is what requests leave on schedulable nodes; memory is in MiB, as its scale intends.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.agent.drivers.interface import NodeSeen
from fairway.api.amounts import NANO

PREFIX = "resource-usage-score/"
_MIB = NANO << 20
# Resource, unit in nanos, and the number of units that scores 100; zero scores -100.
_SCALES = {
    "cpu": ("cpu", NANO, 100),
    "mem": ("memory", _MIB, 1 << 20),
    "gpu": ("nvidia.com/gpu", NANO, 20),
    "tpu": ("google.com/tpu", NANO, 20),
}


def scores(nodes: tuple[NodeSeen, ...], used: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Scores by name, for the best node and for the whole cluster."""
    result: dict[str, int] = {}
    usable = [node for node in nodes if node.is_ready and not _is_closed(node)]
    for short, (resource, unit, most) in _SCALES.items():
        free = [
            max(0, node.allocatable.get(resource, 0) - used.get(node.name, {}).get(resource, 0))
            for node in usable
        ]
        result[f"{short}NodeAvailable"] = _score(max(free, default=0), unit, most)
        result[f"{short}ClusterAvailable"] = _score(sum(free), unit, most)
    return result


def _is_closed(node: NodeSeen) -> bool:
    return any(taint.key == "node.kubernetes.io/unschedulable" for taint in node.taints)


def _score(nanos: int, unit: int, most: int) -> int:
    """From -100 for nothing to 100 for `most` or more, truncated towards zero."""
    if nanos >= unit * most:
        return 100
    return int(200 * nanos / (unit * most) - 100)
