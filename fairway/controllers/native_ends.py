"""The end of a native object, remembered in the object itself.

A Workload may be deleted once it is over, by a user or after its time; the object that it stood for
stays, and must not run again. So the object says how it ended, in an annotation, before its
Workload is gone. Whatever makes Workloads of objects asks the object, not its memory.
"""

from __future__ import annotations

import logging

from fairway.api.errors import Forbidden, NotFound
from fairway.api.meta import JsonObject
from fairway.api.names import FINISHED, OVER
from fairway.api.reasons import Code
from fairway.api.workload import Workload
from fairway.kinds.interface import Kind
from fairway.kinds.plain import annotation
from fairway.store.interface import Patch, Store, Write
from fairway.store.keys import resource_of

_WRITE = Write(user="system:fairway", manager="fairway-natives")

_log = logging.getLogger(__name__)


def end_of_native(workload: Workload) -> str:
    """How a workload ended: Succeeded, Failed or Cancelled; empty if it may still run.

    A workload that was deleted while it ran did not end: its object is queued again.
    """
    spec, status = workload.spec, workload.status
    if spec.source is None:
        return ""
    if status.phase == "Succeeded":
        return "Succeeded"
    if spec.cancelled:
        return "Cancelled"
    is_over = status.phase in OVER or status.finished_at is not None
    return "Failed" if is_over and status.reason != Code.DELETED.value else ""


def has_ended(body: JsonObject, kind: Kind) -> bool:
    """Whether a native object is over, by what was remembered or by its own status."""
    return bool(annotation(body, FINISHED)) or kind.read(body).phase in ("Succeeded", "Failed")


async def remember_end(store: Store, workload: Workload) -> None:
    """Writes how a workload ended into its native object, unless that says so already.

    A hub that lacks the right goes on: most kinds say in their status that they ended.
    """
    source, end = workload.spec.source, end_of_native(workload)
    if source is None or not end:
        return
    resource = resource_of(source.api_version, source.kind)
    namespace = workload.metadata.namespace
    try:
        metadata = (await store.get(resource, source.name, namespace)).object()["metadata"]
        if metadata["uid"] != source.uid or FINISHED in (metadata.get("annotations") or {}):
            return
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {FINISHED: end},
        }
        patch = Patch(type="merge", body={"metadata": change})
        await store.patch(resource, source.name, patch, namespace=namespace, write=_WRITE)
    except NotFound:
        return  # the object is gone, or its kind
    except Forbidden as fault:
        _log.warning("the end of %s is not remembered: %s", source.name, fault)
