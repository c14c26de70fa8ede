"""Checks workloads against fleet policies when they are written.

A workload that breaks an enforced rule is refused; a policy that warns adds a warning to the
answer. A change of an object that already breaks a rule, because the policy is newer, is refused
only for what it adds. Clusters are checked when a workload is decided, and rules are then checked
again: policies, namespaces and queues may have changed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fairway.api import codec
from fairway.api.errors import ApiError
from fairway.api.governance import FleetPolicy, FleetPolicySpec, Violation
from fairway.api.meta import JsonObject
from fairway.api.reasons import violation_sentence
from fairway.api.workload import Workload
from fairway.governance.rules import allowed_words, selects, subject_of, violations
from fairway.kinds.native import QUEUE, as_workload, queue_said
from fairway.kinds.registry import built_in
from fairway.resources.resource import Resource
from fairway.store.interface import ResourceKey, Stored, Write
from fairway.store.keys import PRIORITY_CLASSES
from fairway.store.mirrors import Name
from fairway.submission.refusals import not_allowed

_FIELDS = {
    "registries": "spec.template",
    "kinds": "spec.template.manifests",
    "priority": "spec.priority",
    "runSeconds": "spec.runSeconds.limit",
}
_NATIVE_FIELDS = {
    "registries": "spec",
    "kinds": "kind",
    "priority": "metadata.labels[fairway.dev/priority]",
    "runSeconds": "metadata.labels[fairway.dev/run-seconds-limit]",
}

# An object as it is now; None if there is none.
Newest = Callable[[ResourceKey, Name], Stored | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A workload, or an object that becomes one, before and after a write."""

    resource: Resource
    before: JsonObject | None
    after: JsonObject
    labels: Mapping[str, str]  # of its namespace
    queue: str
    priority: int  # of its queue, unless it has one of its own


class FleetPolicies:
    """The policies that the store has, and what they allow."""

    def __init__(self, newest: Newest) -> None:
        self._newest = newest
        self._specs: dict[str, FleetPolicySpec] = {}

    def __bool__(self) -> bool:
        return bool(self._specs)

    def note(self, name: str, stored: Stored | None) -> None:
        """A policy was written, or removed."""
        if stored is None:
            self._specs.pop(name, None)
        else:
            self._specs[name] = codec.decode(stored.raw, FleetPolicy).spec

    def check(self, written: Written, write: Write) -> None:
        """Raises Forbidden for what a policy does not allow, and adds warnings."""
        metadata = written.after["metadata"]
        namespace = metadata.get("namespace", "")
        specs = {
            name: spec
            for name, spec in sorted(self._specs.items())
            if spec.enforcement != "DryRun" and selects(spec.namespaces, namespace, written.labels)
        }
        if not specs:
            return
        broken = list(self._broken(written.after, written, specs))
        if broken and written.before is not None:
            known = set(self._broken(written.before, written, specs))
            broken = [violation for violation in broken if violation not in known]
        fields = _FIELDS if written.after.get("kind") == "Workload" else _NATIVE_FIELDS
        faults = []
        for violation in broken:
            spec = specs[violation.policy]
            message = f"{violation_sentence(violation)}; {allowed_words(spec, violation.rule)}"
            if spec.enforcement == "Warn":
                write.warn([message])
            else:
                faults.append((fields[violation.rule], message))
        if faults:
            raise not_allowed(written.resource, metadata.get("name", ""), faults)

    def _broken(
        self, body: JsonObject, written: Written, specs: Mapping[str, FleetPolicySpec]
    ) -> Iterator[Violation]:
        workload = _workload_of(body, written)
        if workload is None:
            return
        subject = subject_of(workload.spec, self._priority(workload, written))
        for name, spec in specs.items():
            yield from violations(name, spec, subject)

    def _priority(self, workload: Workload, written: Written) -> int:
        spec = workload.spec
        if spec.priority is not None:
            return spec.priority
        stored = self._newest(PRIORITY_CLASSES, ("", spec.priority_class))
        return written.priority if stored is None else int(stored.object().get("value", 0))


def _workload_of(body: JsonObject, written: Written) -> Workload | None:
    """The workload that an object is, or becomes; None if it cannot be read as one."""
    if body.get("kind") == "Workload":
        return codec.decode(body, Workload)
    if not queue_said(body)[1]:
        metadata = body["metadata"]
        labels = {**(metadata.get("labels") or {}), QUEUE[0]: written.queue}
        body = {**body, "metadata": {**metadata, "labels": labels}}
    try:
        plain = as_workload(body, built_in())
        return None if plain is None else codec.decode(plain, Workload)
    except ApiError:
        return None  # it never becomes a workload, and an event says why
