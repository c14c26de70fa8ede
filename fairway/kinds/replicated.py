"""Common code of kinds that are divided by replicas.

Such a kind has no field to suspend it: it is held with zero replicas, and an annotation stores its
real number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.meta import JsonObject, ObjectReference
from fairway.kinds import dependencies
from fairway.kinds.conditions import condition, find_condition
from fairway.kinds.interface import Announcement, Mode
from fairway.kinds.plain import annotation, child, copy_of, number, text, with_value, without

HELD_REPLICAS = "fairway.dev/held-replicas"
REPLICAS = "replicas"


def wanted_replicas(manifest: JsonObject) -> int:
    """The replicas that the manifest requests; by default one."""
    return max(0, number(manifest, "spec", "replicas", default=1))


class Replicated:
    """A kind with `spec.replicas`."""

    def mode(self, manifest: JsonObject) -> Mode:
        return "Divided"

    def replicas(self, manifest: JsonObject) -> int | None:
        """The replicas when released."""
        remembered = annotation(manifest, HELD_REPLICAS)
        if self.is_held(manifest) and remembered.isdecimal():
            return int(remembered)
        return wanted_replicas(manifest)

    def templates(self, manifest: JsonObject) -> Mapping[str, JsonObject]:
        raise NotImplementedError

    def with_counts(self, manifest: JsonObject, counts: Mapping[str, int]) -> JsonObject:
        if REPLICAS not in counts:
            return manifest
        if self.is_held(manifest):
            return _remember(manifest, counts[REPLICAS])
        return with_value(manifest, ("spec", "replicas"), counts[REPLICAS])

    def is_held(self, manifest: JsonObject) -> bool:
        return bool(annotation(manifest, HELD_REPLICAS)) and wanted_replicas(manifest) == 0

    def hold(self, manifest: JsonObject) -> JsonObject:
        if self.is_held(manifest):
            return manifest
        return with_value(_remember(manifest, wanted_replicas(manifest)), ("spec", "replicas"), 0)

    def release(self, manifest: JsonObject) -> JsonObject:
        if not self.is_held(manifest):
            return manifest
        released = with_value(manifest, ("spec", "replicas"), self.replicas(manifest))
        released = without(released, "metadata", "annotations", HELD_REPLICAS)
        if not child(released, "metadata", "annotations"):
            released = without(released, "metadata", "annotations")
        return released

    def announce(self, manifest: JsonObject, said: Announcement) -> JsonObject:
        """It has no condition for an end: it is not available, and does or may not progress."""
        missing = condition(
            "Available", holds=False, since=said.at, reason=said.reason, message=said.message
        )
        standing = "Unknown" if said.phase == "Suspended" else "False"
        return {
            "observedGeneration": number(manifest, "metadata", "generation", default=1),
            "replicas": 0,
            "conditions": [missing, {**missing, "type": "Progressing", "status": standing}],
        }

    def dependencies(self, manifest: JsonObject) -> tuple[ObjectReference, ...]:
        return dependencies.of_templates(self.templates(manifest).values())


def _remember(manifest: JsonObject, count: int) -> JsonObject:
    return with_value(manifest, ("metadata", "annotations", HELD_REPLICAS), str(count))


def added_up(
    statuses: Mapping[str, JsonObject], counts: Sequence[str], conditions: Mapping[str, bool]
) -> JsonObject:
    """Merges several statuses: counts add up.

    For each condition type, one part's condition is used: the first part, by name, where it has
    the value given in `conditions`, which is the one that matters; else the first part.
    """
    parts = [statuses[key] for key in sorted(statuses)]
    if len(parts) < 2:
        return copy_of(parts[0]) if parts else {}
    whole: JsonObject = {
        name: sum(number(part, name) for part in parts)
        for name in counts
        if any(name in part for part in parts)
    }
    chosen = []
    for kind, matters in conditions.items():
        candidates = [entry for entry in (find_condition(part, kind) for part in parts) if entry]
        telling = [
            candidate for candidate in candidates if text(candidate, "status") == str(matters)
        ]
        if candidates:
            chosen.append(copy_of((telling or candidates)[0]))
    if chosen:
        whole["conditions"] = chosen
    return whole


def is_current(body: JsonObject) -> bool:
    """Whether the status is of the newest generation."""
    observed = child(body, "status").get("observedGeneration")
    if not isinstance(observed, int):
        return not number(body, "metadata", "generation")
    return observed >= number(body, "metadata", "generation")
