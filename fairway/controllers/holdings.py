"""What workloads hold according to their status, as far as sums of GPUs need it."""

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
        """GPUs of all its pods, in thousandths."""
        nanos = sum(
            Quantity.of(amount).nanos
            for resource, amount in self.requests.items()
            if is_accelerator(resource)
        )
        return nanos * self.count // MILLI

    @property
    def flavor(self) -> str:
        """The flavor that its pods are counted by: that of their accelerators, if they have any."""
        return flavor_of(self.flavors.items())


class Placement(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    pod_sets: tuple[PodSet, ...] = ()


class Somebody(msgspec.Struct, frozen=True):
    name: str = ""


def flavor_of(flavors: Iterable[tuple[str, str]]) -> str:
    """The flavor of accelerators among flavors by resource, if there are any; else the first."""
    chosen = sorted(flavors, key=lambda flavor: (not is_accelerator(flavor[0]), flavor))
    return chosen[0][1] if chosen else ""
