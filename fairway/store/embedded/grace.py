"""Grace periods of pods.

A pod that runs on a node is not removed at once: it is marked, and what runs it removes it after it
has ended, or deletes it without a grace period. A second deletion may shorten the grace period.
"""

from __future__ import annotations

from fairway.clock import timestamp
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.interface import Deletion

_SECONDS_DEFAULT = 30
_ENDED = ("Succeeded", "Failed")


def is_granted(resource: Resource, body: JsonObject, how: Deletion) -> bool:
    """Whether a deletion only marks an object, since its processes still run."""
    if (resource.group, resource.plural) != ("", "pods"):
        return False
    is_running = bool((body.get("spec") or {}).get("nodeName")) and (
        (body.get("status") or {}).get("phase") not in _ENDED
    )
    return is_running and seconds(body, how) > 0


def seconds(body: JsonObject, how: Deletion) -> int:
    if how.grace_seconds is not None:
        return max(0, how.grace_seconds)
    given = (body.get("spec") or {}).get("terminationGracePeriodSeconds")
    return given if isinstance(given, int) else _SECONDS_DEFAULT


def mark(body: JsonObject, how: Deletion, now: float) -> bool:
    """Marks a pod for deletion; false if an earlier mark has the same grace or less."""
    metadata = body["metadata"]
    wanted = seconds(body, how)
    had = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" in metadata and had is not None and had <= wanted:
        return False
    if "deletionTimestamp" not in metadata and "generation" in metadata:
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = timestamp(now + wanted)
    metadata["deletionGracePeriodSeconds"] = wanted
    return True
