"""What may differ between two installations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fairway import __version__
from fairway.api.amounts import Quantity, QuantityError
from fairway.api.fleet import FleetSpec

# The namespace of the hub's term, whose placement policies are available to all.
SYSTEM = FleetSpec().system_namespace
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9._/:@]*")
_OPTION = re.compile(r"--[a-z][a-z-]+(=[^\n]*)?")
_REPLICAS_MOST = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation: values that go into objects, then which objects are included."""

    namespace: str = SYSTEM
    image: str = f"fairway:{__version__}"
    replicas: int | str = 2  # a mark instead of a number in a chart
    cpu: str = "500m"
    memory: str = "1Gi"
    options: Sequence[str] = field(default_factory=list)  # further options of `fairway up`

    # The server records who creates workloads, and holds native objects back; from 1.36 on.
    admission_policy: bool = True
    admission_webhook: bool = True  # the server asks the hub about writes
    network_policy: bool = True
    monitoring: bool = False  # for a cluster with the kinds of the Prometheus operator
    all_secrets: bool = False  # Secrets that workloads name are read in every namespace

    @property
    def apart(self) -> bool:
        """Whether the hub runs in another namespace than that of its term."""
        return self.namespace != SYSTEM


def faults(settings: Settings) -> Iterator[str]:
    """Why settings are invalid, each with the name of its option."""
    if not _LABEL.fullmatch(settings.namespace):
        yield f"--namespace: {settings.namespace!r} is not the name of a namespace"
    if not _IMAGE.fullmatch(settings.image):
        yield f"--image: {settings.image!r} is not the name of an image"
    if not isinstance(settings.replicas, int) or not 1 <= settings.replicas <= _REPLICAS_MOST:
        yield f"--replicas: {settings.replicas} is not between 1 and {_REPLICAS_MOST}"
    for name in settings.options:
        if not _OPTION.fullmatch(name):
            yield f"--option: {name!r} is not an option such as --oidc-client-id=NAME"
    for option, value in (("--cpu", settings.cpu), ("--memory", settings.memory)):
        try:
            amount = Quantity.of(value)
        except QuantityError as fault:
            yield f"{option}: {fault}"
        else:
            if amount <= Quantity(0):
                yield f"{option}: {value} is nothing"
