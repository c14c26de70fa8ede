"""What each pod uses of the machine: amounts, and individual devices.

A pod that requests whole devices gets them by name, and no two pods share one. Fractions of a
device are accounted for but have no name: programs arrange the sharing of a device themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.amounts import NANO, NOTHING, Amounts

Devices = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one pod holds."""

    amounts: Amounts
    devices: Devices = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoesNotFit:
    """What is missing for a pod to start."""

    missing: Amounts

    @property
    def message(self) -> str:
        listed = ", ".join(f"{name} {self.missing.quantity(name)}" for name in self.missing)
        return f"0/1 nodes have room: missing {listed}"


class Slots:
    """The machine's resources, and the shares that pods hold."""

    def __init__(self, allocatable: Amounts, devices: Devices) -> None:
        self._allocatable = allocatable
        self._devices = devices
        self._shares: dict[str, Share] = {}

    def take(self, key: str, needed: Amounts) -> Share | DoesNotFit:
        """Takes a share for a pod, all at once or not at all."""
        needed = needed.plus(Amounts({"pods": NANO}))
        free = self.free()
        if not needed.fits_in(free):
            return DoesNotFit(missing=needed.beyond(free))
        chosen = {}
        for resource, names in self._devices.items():
            count, rest = divmod(needed[resource], NANO)
            unused = [name for name in names if name not in self._take(resource)]
            if count and not rest:
                if len(unused) < count:
                    return DoesNotFit(missing=Amounts({resource: count * NANO}))
                chosen[resource] = tuple(unused[:count])
        share = Share(amounts=needed, devices=chosen)
        self._shares[key] = share
        return share

    def hold(self, key: str, share: Share) -> None:
        """Records the share of a pod that was found running."""
        self._shares[key] = share

    def give_back(self, key: str) -> None:
        self._shares.pop(key, None)

    def free(self) -> Amounts:
        used = NOTHING
        for share in self._shares.values():
            used = used.plus(share.amounts)
        return self._allocatable.minus(used)

    def _take(self, resource: str) -> set[str]:
        return {name for share in self._shares.values() for name in share.devices.get(resource, ())}
