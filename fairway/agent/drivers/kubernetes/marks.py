"""Marks by which objects and pods of works are known in a cluster.

Labels say which cluster of which fleet made something, for which work and attempt; by them things
are watched and selected. Names that are too long for a label, and what only we need to know, are in
annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.api.meta import JsonObject
from fairway.kinds import decision
from fairway.kinds.decision import ATTEMPT, WORK
from fairway.kinds.interface import Kind
from fairway.kinds.plain import annotation, child, text

MANAGER = "fairway-agent"  # of fields, in the cluster
CLUSTER = "fairway.dev/cluster"  # the cluster's name in its fleet
PLACEHOLDER = "fairway.dev/placeholder"
POSITION = "fairway.dev/position"  # among the manifests of the work
DELETION = "fairway.dev/deletion"
FOUND = "Found"  # of what was there before any work needed it; it stays, as with Orphan
PLACES = "fairway.dev/places"  # nodes that placeholders held

_LABELS = (CLUSTER, WORK, ATTEMPT)
_ANNOTATIONS = (WORK, POSITION, DELETION, PLACES)


def label(name: str) -> str:
    """A name as the value of a label."""
    return decision.work_label(name)


def selector(cluster: str) -> str:
    """Selects all that is ours."""
    return f"{CLUSTER}={label(cluster)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose an object is."""

    cluster: str
    work: str
    attempt: int
    deletion: str = ""  # what becomes of it with its work; empty: as it says already


def with_marks(manifest: JsonObject, owner: Owner, **annotations: str) -> JsonObject:
    """A copy of a manifest that says whose it is."""
    metadata = child(manifest, "metadata")
    labels = {
        CLUSTER: label(owner.cluster),
        WORK: label(owner.work),
        ATTEMPT: str(owner.attempt),
    }
    own_annotations = {WORK: owner.work, **annotations}
    if owner.deletion:
        own_annotations[DELETION] = owner.deletion
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**child(metadata, "labels"), **labels},
            "annotations": {**child(metadata, "annotations"), **own_annotations},
        },
    }


def marked_pods(kind: Kind, manifest: JsonObject, owner: Owner) -> JsonObject:
    """A copy whose pods say whose they are, too."""
    named = decision.with_pod_labels(kind, manifest, work=owner.work, attempt=owner.attempt)
    sets = {pod_set.name for pod_set in kind.pod_sets(named)}
    change = decision.Change(labels={CLUSTER: label(owner.cluster)})
    return decision.decorate(kind, named, dict.fromkeys(sets, change))


def without_marks() -> JsonObject:
    """A merge patch that takes our marks off an object that is to stay."""
    labels: dict[str, Any] = dict.fromkeys(_LABELS)
    annotations: dict[str, Any] = dict.fromkeys(_ANNOTATIONS)
    return {"metadata": {"labels": labels, "annotations": annotations}}


def is_made_by_us(body: JsonObject) -> bool:
    """Whether an object was made for a work as such; labels alone also come down to pods."""
    return bool(annotation(body, WORK))


def work_of(body: JsonObject) -> str:
    """The name of the work that an object belongs to; empty for one that is not ours."""
    return annotation(body, WORK)


def stays(body: JsonObject) -> bool:
    """Whether an object outlives its work."""
    return annotation(body, DELETION) in ("Orphan", FOUND)


def attempt_of(body: JsonObject) -> int:
    label = text(body, "metadata", "labels", ATTEMPT)
    return int(label) if label.isdecimal() else 0
