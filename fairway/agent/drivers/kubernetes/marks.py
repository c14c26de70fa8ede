"""Labels and annotations that mark objects and pods of works in a cluster.

Labels name the cluster of a fleet, the work and the attempt; watches and selectors use them. Names
that are too long for a label, and what only the driver needs, are in annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairway.api.meta import JsonObject
from fairway.kinds import decision
from fairway.kinds.decision import ATTEMPT, WORK
from fairway.kinds.interface import Kind
from fairway.kinds.plain import annotation, child, text

MANAGER = "fairway-agent"  # the field manager in the cluster
CLUSTER = "fairway.dev/cluster"  # the cluster's name in its fleet
PLACEHOLDER = "fairway.dev/placeholder"
POSITION = "fairway.dev/position"  # among the manifests of the work
DELETION = "fairway.dev/deletion"
FOUND = "Found"  # of an object older than any work that needs it; it stays, as with Orphan
PLACES = "fairway.dev/places"  # nodes that placeholder pods held

_LABELS = (CLUSTER, WORK, ATTEMPT)
_ANNOTATIONS = (WORK, POSITION, DELETION, PLACES)


def label(name: str) -> str:
    """A name as the value of a label."""
    return decision.work_label(name)


def selector(cluster: str) -> str:
    """Selects everything made by this driver."""
    return f"{CLUSTER}={label(cluster)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of an object."""

    cluster: str
    work: str
    attempt: int
    deletion: str = ""  # what happens to the object with its work; empty: unchanged


def with_marks(manifest: JsonObject, owner: Owner, **annotations: str) -> JsonObject:
    """A copy of a manifest with the marks of its owner."""
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
    """A copy whose pod templates carry the labels of the owner, too."""
    named = decision.with_pod_labels(kind, manifest, work=owner.work, attempt=owner.attempt)
    sets = {pod_set.name for pod_set in kind.pod_sets(named)}
    change = decision.Change(labels={CLUSTER: label(owner.cluster)})
    return decision.decorate(kind, named, dict.fromkeys(sets, change))


def without_marks() -> JsonObject:
    """A merge patch that removes the marks from an object that is to stay."""
    labels: dict[str, Any] = dict.fromkeys(_LABELS)
    annotations: dict[str, Any] = dict.fromkeys(_ANNOTATIONS)
    return {"metadata": {"labels": labels, "annotations": annotations}}


def is_made_by_us(body: JsonObject) -> bool:
    """Whether an object was made for a work itself; pods inherit the labels, not the annotation."""
    return bool(annotation(body, WORK))


def work_of(body: JsonObject) -> str:
    """The name of the work that an object belongs to; empty if it belongs to none."""
    return annotation(body, WORK)


def stays(body: JsonObject) -> bool:
    """Whether an object outlives its work."""
    return annotation(body, DELETION) in ("Orphan", FOUND)


def attempt_of(body: JsonObject) -> int:
    label = text(body, "metadata", "labels", ATTEMPT)
    return int(label) if label.isdecimal() else 0
