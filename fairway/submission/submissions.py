"""Checks who may submit workloads to a queue, and whether the queue has a place for another one.

The check is made for every object that becomes a workload, when it is created and when its queue
changes: by the queue it names, or the default queue of its namespace or of the fleet. The submitter
is recorded on the object, since the core checks again when its turn comes: queues, namespaces and
kinds that only a rule describes may have changed by then. What fleet policies allow is checked on
every write of such an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairway.api.queue import Submitters
from fairway.api.submission import HUB, SUBMITTED_BY, Submission, limit_for, note_of, refusing_queue
from fairway.kinds.native import DEFAULT_QUEUE, is_of_a_work, is_owned, queue_said
from fairway.kinds.registry import built_in
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.store.interface import ResourceKey, Stored, Write
from fairway.store.keys import (
    FLEET_POLICIES,
    FLEETS,
    NAMESPACES,
    PRIORITY_CLASSES,
    QUEUES,
    WORKLOADS,
)
from fairway.store.mirrors import Name
from fairway.submission.fleet_policies import FleetPolicies, Newest, Written
from fairway.submission.pending import Pending
from fairway.submission.refusals import FullQueue, full_queue, not_a_submitter

FOLLOWED = (WORKLOADS, FLEET_POLICIES)  # every change of these is noted
READ = (QUEUES, FLEETS, NAMESPACES, PRIORITY_CLASSES)  # these are read when they are needed


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
        self._pending = Pending()
        self._policies = FleetPolicies(newest)

    def note(self, kind: ResourceKey, name: Name, stored: Stored | None) -> None:
        """An object of a kind that is followed was written, or removed."""
        if kind == WORKLOADS:
            self._pending.note(name, stored)
        elif kind == FLEET_POLICIES:
            self._policies.note(name[1], stored)

    def take(
        self, resource: Resource, before: JsonObject | None, after: JsonObject, write: Write
    ) -> None:
        """Records the submitter of an object; raises Forbidden if a fleet policy does not allow
        it, or if its queue does not accept it or is full."""
        if write.user == HUB:
            return  # it acts for users, who are recorded on what it writes
        is_workload = (resource.group, resource.plural) == (WORKLOADS.group, WORKLOADS.plural)
        named = _name(after, is_workload=is_workload)
        is_submitted = before is None or named != _name(before, is_workload=is_workload)
        if before is None:
            keep_note(after, None)
        if not (is_submitted or self._policies) or not (is_workload or _is_native(after)):
            return
        namespace = after["metadata"].get("namespace", "")
        labels = self._labels(namespace)
        queue = named[1] or self._default(after, labels, is_workload=is_workload)
        if self._policies and (queue or is_workload):
            written = Written(
                resource=resource,
                before=before,
                after=after,
                labels=labels,
                queue=queue,
                priority=self._priority(queue),
            )
            self._policies.check(written, write)
        if not is_submitted:
            return
        if not queue:
            keep_note(after, None)  # it is not submitted any more
            return
        submission = Submission(
            namespace=namespace, labels=labels, user=write.user, groups=write.groups
        )
        name = after["metadata"].get("name", "")
        path = named[0] or ("spec.queue" if is_workload else "metadata.labels")
        refused_by = refusing_queue(self._line(queue), submission)
        if refused_by:
            raise not_a_submitter(
                resource, name, path=path, queue=refused_by, submission=submission
            )
        if full := self._full(queue, write.user):
            raise full_queue(resource, name, path=path, full=full)
        keep_note(after, note_of(write.user, write.groups))

    def _full(self, queue: str, user: str) -> FullQueue | None:
        """The nearest queue, of this one and its ancestors, that has no place for another one."""
        for name, spec in self._specs(queue):
            most = spec.get("waitingWorkloadsMax")
            own = limit_for(spec.get("userLimits") or (), user, lambda item: item.get("users", ()))
            limit = own.get("waitingWorkloads") if own is not None else None
            if most is None and limit is None:
                continue
            below = [other for other in self._pending.queues() if self._is_below(other, name)]
            if most is not None and self._pending.count(below) >= most:
                return FullQueue(queue=name, most=most)
            if limit is not None and self._pending.count(below, user) >= limit:
                return FullQueue(queue=name, most=limit, user=user)
        return None

    def _priority(self, queue: str) -> int:
        """The priority of workloads that have none of their own."""
        given = ((spec.get("defaults") or {}).get("priority") for _, spec in self._specs(queue))
        return next((priority for priority in given if priority is not None), 0)

    def _is_below(self, queue: str, ancestor: str) -> bool:
        """Whether a queue is another one, or below it; `/NAMESPACE` is the default there."""
        if queue.startswith("/"):
            default = self._labels(queue[1:]).get(DEFAULT_QUEUE, "")
            queue = str(default) or self._fleet_queue()
        return any(name == ancestor for name, _ in self._specs(queue))

    def _line(self, queue: str) -> Iterator[tuple[str, Submitters | None]]:
        """A queue and its ancestors, with their submitters."""
        for name, spec in self._specs(queue):
            given = spec.get("submitters")
            yield name, None if given is None else msgspec.convert(given, Submitters)

    def _specs(self, queue: str) -> Iterator[tuple[str, JsonObject]]:
        """A queue and its ancestors; a cycle is cut."""
        seen: set[str] = set()
        while queue not in seen and (stored := self._newest(QUEUES, ("", queue))) is not None:
            seen.add(queue)
            spec = stored.object().get("spec") or {}
            yield queue, spec
            queue = spec.get("parent", "")

    def _default(self, body: JsonObject, labels: JsonObject, *, is_workload: bool) -> str:
        named = str(labels.get(DEFAULT_QUEUE, ""))
        if not is_workload:
            return named
        return str((body.get("status") or {}).get("queue") or named or self._fleet_queue())

    def _fleet_queue(self) -> str:
        stored = self._newest(FLEETS, ("", "fleet"))
        spec: Any = stored.object().get("spec") or {} if stored is not None else {}
        return str((spec.get("defaults") or {}).get("queue") or "")

    def _labels(self, namespace: str) -> JsonObject:
        stored = self._newest(NAMESPACES, ("", namespace))
        return stored.object()["metadata"].get("labels") or {} if stored is not None else {}


def _name(body: JsonObject, *, is_workload: bool) -> tuple[str, str]:
    """The field where an object names its queue, and the queue; empty if it is no workload."""
    if not is_workload:
        return queue_said(body) if _is_native(body) else ("", "")
    spec = body.get("spec")
    queue = spec.get("queue") if isinstance(spec, dict) else ""
    return ("spec.queue", str(queue)) if queue else ("", "")


def _is_native(body: JsonObject) -> bool:
    """Whether the object becomes a workload, judged by the built-in kinds alone."""
    is_ours = built_in().of(body) is not None
    return is_ours and not is_owned(body) and not is_of_a_work(body)
