"""Time that a pod gets to end.

A pod that runs on a node is not removed at once: it is marked, and whoever runs it removes it when
it has ended, or says that nothing is to be waited for. A second deletion may shorten the time.
"""

from __future__ import annotations

from fairway.clock import timestamp
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.interface import Deletion

_SECONDS_DEFAULT = 30
_ENDED = ("Succeeded", "Failed")


def is_granted(resource: Resource, body: JsonObject, how: Deletion) -> bool:
    """Whether an object is marked only, since its processes have yet to end."""
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
    """Marks a pod for its end; false where an earlier mark already asks for as much."""
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
