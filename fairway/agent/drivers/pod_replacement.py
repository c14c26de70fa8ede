"""Which pods of an earlier template a service ends next, as its controller would.

For drivers without such a controller. They identify pods by name, so a new pod never runs beside
the pod it replaces: where a Deployment would surge, at least one pod is missing meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from fairway.api.meta import JsonObject
from fairway.kinds.interface import Pod
from fairway.kinds.plain import child, number

_DIGEST_LENGTH = 16
_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An existing pod of a service."""

    name: str
    index: int
    is_ready: bool
    is_current: bool  # made from the current template
    is_live: bool = True  # neither over nor ending


def digest_of(pod: Pod) -> str:
    """A digest of what a pod is made from; a pod with another digest must be replaced."""
    encoded = _encode([pod.spec, dict(pod.labels), dict(pod.annotations)])
    return sha256(encoded).hexdigest()[:_DIGEST_LENGTH]


def ended_next(service: JsonObject, wanted: int, parts: Sequence[Part]) -> list[str]:
    """Names of the pods to end now, of a service that wants `wanted` pods.

    Pods that are not ready end first, then those with the highest index.
    """
    first = number(service, "spec", "updateStrategy", "rollingUpdate", "partition")
    old = [part for part in parts if part.is_live and not part.is_current and part.index >= first]
    old.sort(key=lambda part: (part.is_ready, -part.index))
    spare = sum(part.is_ready for part in parts) - (wanted - unavailable_most(service, wanted))
    chosen = []
    for part in old:
        if not part.is_ready or spare > 0:
            spare -= part.is_ready
            chosen.append(part.name)
    return chosen


def unavailable_most(service: JsonObject, wanted: int) -> int:
    """How many pods may be missing: maxUnavailable of a Deployment (25% by default), else one."""
    if service.get("kind") != "Deployment":
        return 1
    limit = child(service, "spec", "strategy", "rollingUpdate").get("maxUnavailable", "25%")
    if isinstance(limit, int):
        return max(1, limit)
    share = str(limit).removesuffix("%")
    return max(1, wanted * int(share) // 100) if share.isdecimal() else 1
