"""How requested resources count in quota, by the rules of the fleet.

A pod needs what it requests on its node, whatever the rules: they change only what is charged.
Devices are requested by their class and by the resource of the class, and charged by the latter.
"""

from __future__ import annotations

from fairway.api.amounts import DEVICE_CLASS_PREFIX
from fairway.api.fleet import FleetSpec
from fairway.core import model

_WHOLE_NANOS = 1_000_000_000


def counts_as(requests: model.Request, fleet: FleetSpec) -> model.Request | None:
    """What a pod is charged; None: exactly what it requests. Fractions are rounded up."""
    ignored = fleet.ignored_resource_prefixes
    has_devices = any(resource.startswith(DEVICE_CLASS_PREFIX) for resource, _ in requests)
    if not ignored and not fleet.resources and not has_devices:
        return None
    ignored = (*ignored, DEVICE_CLASS_PREFIX)
    rules = {rule.resource: rule for rule in fleet.resources}
    nanos: dict[str, int] = {}
    for resource, amount in requests:
        requested = amount * model.unit_nanos(resource)
        rule = rules.get(resource)
        if rule is not None:
            for name, each in rule.counts_as.items():
                nanos[name] = nanos.get(name, 0) + -(-requested * each.nanos // _WHOLE_NANOS)
        is_ignored = resource.startswith(ignored)
        if not is_ignored and (rule is None or rule.keep):
            nanos[resource] = nanos.get(resource, 0) + requested
    return tuple(
        (resource, -(-nanos[resource] // model.unit_nanos(resource))) for resource in sorted(nanos)
    )
