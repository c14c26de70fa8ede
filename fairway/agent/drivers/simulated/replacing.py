"""Which pods of an earlier template a service ends next, as its own controller would.

Pods are known by name here, so a new one never runs beside the one that it takes over from: where
a Deployment would surge, at least one replica is lacking meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from fairway.agent.drivers.simulated.lives import LivePod
from fairway.api.meta import JsonObject
from fairway.kinds.interface import Kind, Pod
from fairway.kinds.plain import child, number

_DIGEST_LENGTH = 16
_encode = msgspec.json.Encoder(order="deterministic").encode


def digest_of(pod: Pod) -> str:
    """What a pod is made from; another one where it has to be made anew."""
    told = _encode([pod.spec, dict(pod.labels), dict(pod.annotations)])
    return sha256(told).hexdigest()[:_DIGEST_LENGTH]


def outdated(
    kind: Kind, service: JsonObject, made: Mapping[str, LivePod]
) -> tuple[list[LivePod], bool]:
    """Pods that are ended now, and whether there are any of an earlier template at all.

    What does not work goes first, then the highest number.
    """
    if kind.mode(service) != "Divided":
        return [], False
    wanted = {one.name: one for one in kind.pods(service)}
    there = [pod for name, pod in made.items() if name in wanted]
    old = [one for one in there if one.made_from != digest_of(wanted[one.name])]
    if not old:
        return [], False
    due = [one for one in old if one.is_live and one.index >= _first(service)]
    due.sort(key=lambda one: (one.phase == "Ready", -one.index))
    ready = sum(one.phase == "Ready" for one in there)
    spare = ready - (len(wanted) - unavailable_most(service, len(wanted)))
    chosen = []
    for one in due:
        is_ready = one.phase == "Ready"
        if not is_ready or spare > 0:
            spare -= is_ready
            chosen.append(one)
    return chosen, True


def _first(service: JsonObject) -> int:
    """The lowest number that is replaced: that of a partition, where there is one."""
    return number(service, "spec", "updateStrategy", "rollingUpdate", "partition")


def unavailable_most(service: JsonObject, wanted: int) -> int:
    """How many may be lacking: as a Deployment says, else a quarter; of others one."""
    if service.get("kind") != "Deployment":
        return 1
    told = child(service, "spec", "strategy", "rollingUpdate").get("maxUnavailable", "25%")
    if isinstance(told, int):
        return max(1, told)
    share = str(told).removesuffix("%")
    return max(1, wanted * int(share) // 100) if share.isdecimal() else 1
