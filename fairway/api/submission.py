"""Who submits a workload, and which queues accept it.

A queue with `submitters` accepts workloads from one of its namespaces, users or groups; every queue
above with submitters must agree. The store records the submitter on the object whenever a user sets
its queue, so that it is known when the workload's turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from fairway.api.queue import Submitters
from fairway.api.selectors import matches, requirements

T = TypeVar("T")

# Who set the queue of an object: the user, then the groups, one per line. The store sets it.
SUBMITTED_BY = "fairway.dev/submitted-by"
CREATED_BY = "fairway.dev/created-by"  # the user who created an object
HUB = "system:fairway"  # acts for others, and submits nothing itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Where a workload comes from."""

    namespace: str
    labels: Mapping[str, str]  # of the namespace
    user: str = ""
    groups: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, *, namespace: str, labels: Mapping[str, str], note: str | None, creator: str
    ) -> Self:
        """From the note on an object; without one, the creator counts as the submitter."""
        if not note:
            user = "" if creator == HUB else creator
            return cls(namespace=namespace, labels=labels, user=user)
        user, *groups = note.split("\n")
        return cls(namespace=namespace, labels=labels, user=user, groups=tuple(groups))


def user_of(annotations: Mapping[str, str]) -> str:
    """The user of a workload, by its annotations: its submitter, else its creator.

    Limits for each user count by it. The hub creates the workloads of native objects, whose
    submitter is noted; without a note they are of no user.
    """
    note = annotations.get(SUBMITTED_BY)
    creator = annotations.get(CREATED_BY, "")
    return Submission.read(namespace="", labels={}, note=note, creator=creator).user


def limit_for(limits: Iterable[T], user: str, users_of: Callable[[T], Collection[str]]) -> T | None:
    """The limit that applies to a user: the first that names the user, else the first for all."""
    everyone: T | None = None
    for limit in limits:
        users = users_of(limit)
        if user in users:
            return limit
        if not users and everyone is None:
            everyone = limit
    return everyone


def note_of(user: str, groups: Iterable[str]) -> str:
    """The note on an object. Names of several lines are dropped: they could pass for groups."""
    return "\n".join(
        ["" if "\n" in user else user, *(group for group in groups if "\n" not in group)]
    )


def takes(submitters: Submitters, submission: Submission) -> bool:
    """Whether a queue accepts a workload; empty submitters accept none."""
    selector = submitters.namespace_selector
    return (
        submission.namespace in submitters.namespaces
        or (selector is not None and matches(requirements(selector), submission.labels))
        or (submission.user != "" and submission.user in submitters.users)
        or any(group in submitters.groups for group in submission.groups)
    )


def refusing_queue(line: Iterable[tuple[str, Submitters | None]], submission: Submission) -> str:
    """The first of these queues that does not accept a workload; empty if all do."""
    for name, submitters in line:
        if submitters is not None and not takes(submitters, submission):
            return name
    return ""
