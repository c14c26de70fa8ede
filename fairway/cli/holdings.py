"""What a workload holds, from its claim."""

from __future__ import annotations

from fairway.api.amounts import Quantity, QuantityError, is_accelerator
from fairway.cli.workloads import status_of
from fairway.client.wire import Object

_NANOS = 1_000_000_000


def gpus_of(workload: Object) -> float:
    """The accelerators of all pods in its claim, and in placements that it is leaving."""
    status = status_of(workload)
    placements = [*((status.get("claim") or {}).get("placements") or ())]
    placements += status.get("releasing") or ()
    total = 0
    for placement in placements:
        for pods in placement.get("podSets") or ():
            total += int(pods.get("count") or 0) * _accelerators(pods.get("requests") or {})
    return total / _NANOS


def _accelerators(requests: dict[str, str]) -> int:
    result = 0
    for resource, amount in requests.items():
        if is_accelerator(resource):
            try:
                result += Quantity.of(amount).nanos
            except QuantityError:
                continue
    return result
