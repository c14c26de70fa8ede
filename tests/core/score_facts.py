"""The inputs of scores, given as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.core.measured import MeasuredScores


@dataclass(frozen=True)
class Given:
    """What a test says of one cluster; whatever it leaves out is unknown."""

    cluster: str
    others: int = 0
    price_nanos: int | None = None
    data_seconds: int | None = None
    scores: MeasuredScores = field(default_factory=dict)
    amounts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def allocatable(self, resource: str, flavor: str) -> int | None:
        return self.amounts.get("allocatable", {}).get(resource)

    def free_on_best_node(self, resource: str, flavor: str) -> int | None:
        return self.amounts.get("free_on_best_node", {}).get(resource)

    def free_in_cluster(self, resource: str, flavor: str) -> int | None:
        return self.amounts.get("free_in_cluster", {}).get(resource)
