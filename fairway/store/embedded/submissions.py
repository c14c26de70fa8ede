"""Checks who may submit workloads to a queue.

The check is made for every object that becomes a workload, when it is created and when its queue
changes: by the queue it names, or the default queue of its namespace or of the fleet. The submitter
is recorded on the object, since the core checks again when its turn comes: queues, namespaces and
kinds that only a rule describes may have changed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fairway.api.meta import GROUP
from fairway.api.queue import Submitters
from fairway.api.submission import HUB, SUBMITTED_BY, Submission, note_of, refusing_queue
from fairway.kinds.native import DEFAULT_QUEUE, is_of_a_work, is_owned, queue_said
from fairway.kinds.registry import built_in
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.embedded.refusals import not_a_submitter
from fairway.store.embedded.shelves import KindId, Name, Record
from fairway.store.interface import Write

_WORKLOADS: KindId = (GROUP, "workloads")
_QUEUES: KindId = (GROUP, "queues")
_FLEET: tuple[KindId, Name] = ((GROUP, "fleets"), ("", "fleet"))
_NAMESPACES: KindId = ("", "namespaces")

Newest = Callable[[KindId, Name], Record | None]


def keep_note(body: JsonObject, note: str | None) -> None:
    """Records the submitter on an object, or removes such a note, which no client may write."""
    annotations = body["metadata"].get("annotations")
    if note is not None:
        if not isinstance(annotations, dict):
            annotations = body["metadata"]["annotations"] = {}
        annotations[SUBMITTED_BY] = note
    elif isinstance(annotations, dict):
        annotations.pop(SUBMITTED_BY, None)


class Submissions:
    """Checks submissions."""

    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def take(
        self, resource: Resource, before: JsonObject | None, after: JsonObject, write: Write
    ) -> None:
        """Records the submitter of an object; raises Forbidden if its queue does not accept it."""
        if write.user == HUB:
            return  # it acts for users, who are recorded on what it writes
        is_workload = (resource.group, resource.plural) == _WORKLOADS
        named = _name(after, is_workload=is_workload)
        if before is None:
            keep_note(after, None)
        elif named == _name(before, is_workload=is_workload):
            return
        if not is_workload and not _is_native(after):
            return
        namespace = after["metadata"].get("namespace", "")
        labels = self._labels(namespace)
        queue = named[1] or self._default(after, labels, is_workload=is_workload)
        if not queue:
            return
        submission = Submission(
            namespace=namespace, labels=labels, user=write.user, groups=write.groups
        )
        refused_by = refusing_queue(self._line(queue), submission)
        if refused_by:
            name = after["metadata"].get("name", "")
            path = named[0] or ("spec.queue" if is_workload else "metadata.labels")
            raise not_a_submitter(
                resource, name, path=path, queue=refused_by, submission=submission
            )
        keep_note(after, note_of(write.user, write.groups))

    def _line(self, queue: str) -> Iterator[tuple[str, Submitters | None]]:
        """A queue and its ancestors, with their submitters; a cycle is cut."""
        seen: set[str] = set()
        while queue not in seen and (record := self._newest(_QUEUES, ("", queue))) is not None:
            seen.add(queue)
            spec = record.body().get("spec") or {}
            given = spec.get("submitters")
            yield queue, None if given is None else msgspec.convert(given, Submitters)
            queue = spec.get("parent", "")

    def _default(self, body: JsonObject, labels: JsonObject, *, is_workload: bool) -> str:
        if not is_workload:
            return str(labels.get(DEFAULT_QUEUE, ""))
        record = self._newest(*_FLEET)
        spec: Any = record.body().get("spec") or {} if record is not None else {}
        given = (body.get("status") or {}).get("queue")
        return str(given or (spec.get("defaults") or {}).get("queue") or "")

    def _labels(self, namespace: str) -> JsonObject:
        record = self._newest(_NAMESPACES, ("", namespace))
        return record.body()["metadata"].get("labels") or {} if record is not None else {}


def _name(body: JsonObject, *, is_workload: bool) -> tuple[str, str]:
    """The field where an object names its queue, and the queue."""
    if not is_workload:
        return queue_said(body)
    spec = body.get("spec")
    queue = spec.get("queue") if isinstance(spec, dict) else ""
    return ("spec.queue", str(queue)) if queue else ("", "")


def _is_native(body: JsonObject) -> bool:
    """Whether the object becomes a workload, judged by the built-in kinds alone."""
    is_ours = built_in().of(body) is not None
    return is_ours and not is_owned(body) and not is_of_a_work(body)
