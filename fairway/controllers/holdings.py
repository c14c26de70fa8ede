"""What workloads hold, as their status says it: as much of it as sums of GPUs need."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairway.api.amounts import MILLI, Quantity, is_accelerator


class PodSet(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 0
    requests: dict[str, str | int | float] = {}
    flavors: dict[str, str] = {}

    @property
    def gpus(self) -> int:
        """Of all its pods, in thousandths."""
        nanos = sum(
            Quantity.of(amount).nanos
            for resource, amount in self.requests.items()
            if is_accelerator(resource)
        )
        return nanos * self.count // MILLI

    @property
    def flavor(self) -> str:
        """By which its pods are counted: that of their accelerators, where they have any."""
        return flavor_of(self.flavors.items())


class Placement(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    pod_sets: tuple[PodSet, ...] = ()


class Somebody(msgspec.Struct, frozen=True):
    name: str = ""


def flavor_of(flavors: Iterable[tuple[str, str]]) -> str:
    """Of flavors by resource that of accelerators, where there are any, else the first."""
    chosen = sorted(flavors, key=lambda flavor: (not is_accelerator(flavor[0]), flavor))
    return chosen[0][1] if chosen else ""
