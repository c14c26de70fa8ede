"""Refusals of a submission, worded like those of a kube-apiserver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairway.api.errors import Forbidden
from fairway.api.meta import JsonObject
from fairway.api.submission import Submission
from fairway.resources.resource import Resource


def details(resource: Resource, name: str) -> JsonObject:
    """Which object a refusal is about."""
    result: JsonObject = {"name": name, "kind": resource.plural}
    if resource.group:
        result["group"] = resource.group
    return result


def not_a_submitter(
    resource: Resource, name: str, *, path: str, queue: str, submission: Submission
) -> Forbidden:
    message = (
        f"queue {queue} takes no workloads of {submission.user} in namespace"
        f" {submission.namespace}: its submitters name neither; use another queue, or have the"
        " namespace, the user or a group added to its spec.submitters"
    )
    return _forbidden(resource, name, "NotASubmitter", [(path, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueue:
    """A queue that has as many pending workloads as it may."""

    queue: str
    most: int
    user: str = ""  # whose limit it is; empty: the queue's


def full_queue(resource: Resource, name: str, *, path: str, full: FullQueue) -> Forbidden:
    of = f" of {full.user}" if full.user else ""
    message = (
        f"queue {full.queue} already has its maximum of {full.most} pending workloads{of};"
        " try again when some have started, or use another queue"
    )
    return _forbidden(resource, name, "QueueFull", [(path, message)])


def not_allowed(resource: Resource, name: str, faults: Sequence[tuple[str, str]]) -> Forbidden:
    """What fleet policies do not allow, by field."""
    return _forbidden(resource, name, "PolicyViolated", faults)


def _forbidden(
    resource: Resource, name: str, reason: str, faults: Sequence[tuple[str, str]]
) -> Forbidden:
    """A refusal for one reason, with the path and the sentence of each fault."""
    listed = "; ".join(f"{path}: {message}" for path, message in faults)
    return Forbidden(
        f'{resource.qualified} "{name}" is forbidden: {listed}',
        details={
            **details(resource, name),
            "causes": [
                {"reason": reason, "message": message, "field": path} for path, message in faults
            ],
        },
    )
