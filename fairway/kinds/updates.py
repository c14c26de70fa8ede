"""How a service's new template is rolled out by its own controller.

A revision is what pods are made from. Counts and the pace of an update are not part of it, so
scaling a service or changing its pace restarts nothing. A kind with a partition can have two
revisions in one cluster, and a Deployment can by a second one beside it; any other kind has one per
cluster, and its own controller does the rolling update between two. Fairway never requests more
pods than were claimed: to surge, request more replicas, which are claimed like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from fairway.api.meta import JsonObject
from fairway.kinds.decision import PART, REVISION, Change, decorate
from fairway.kinds.interface import Kind
from fairway.kinds.native import clean_manifest
from fairway.kinds.plain import child, text, with_value, without
from fairway.kinds.registry import KnownKinds
from fairway.kinds.replicated import REPLICAS

_SECOND = "-canary"  # the end of the second Deployment's name
_MARK_LENGTH = 10
_encode = msgspec.json.Encoder(order="deterministic").encode
# Fields of a kind's spec that do not affect its pods.
_PACE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("apps/v1", "Deployment"): (
        "strategy",
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
        "paused",
    ),
    ("apps/v1", "StatefulSet"): ("updateStrategy", "minReadySeconds", "revisionHistoryLimit"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): ("rolloutStrategy",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How far a new template goes in one cluster, and how fast."""

    mark: str = ""  # label for the pods; empty: none
    share: int | None = None  # replicas that get it; None: all
    allowance: int = 0  # replicas that may be unavailable meanwhile; 0: as the manifest says


def mark_of(manifests: Sequence[JsonObject], kinds: KnownKinds) -> str:
    """A digest of what pods are made from, used to mark them; equal for equal templates."""
    plain = [clean_manifest(manifest) for manifest in manifests]
    if plain:
        first, kind = plain[0], kinds.of(plain[0])
        if kind is not None:
            first = kind.with_counts(kind.release(first), {REPLICAS: 1})
        for field in _PACE.get(_kind_of(first), ()):
            first = without(first, "spec", field)
        plain[0] = {key: value for key, value in first.items() if key != "metadata"}
    return sha256(_encode(plain)).hexdigest()[:_MARK_LENGTH]


def restore_revision(current: JsonObject, revision: JsonObject) -> JsonObject:
    """An object with the pods of a revision; its counts and its pace stay as they are."""
    kept = (REPLICAS, *_PACE.get(_kind_of(current), ()))
    spec, own = child(revision, "spec"), child(current, "spec")
    others = {key: value for key, value in spec.items() if key not in kept}
    return {**current, "spec": {**others, **{key: own[key] for key in kept if key in own}}}


def is_divisible(manifest: JsonObject) -> bool:
    """Whether replicas in one cluster can have different revisions."""
    return _kind_of(manifest) in _PARTITIONED


def may_have_second(manifests: Sequence[JsonObject]) -> bool:
    """Whether a second object may run a part of a service beside the first."""
    first, *others = manifests
    name = text(second_of(first), "metadata", "name")
    return _kind_of(first) == ("apps/v1", "Deployment") and not any(
        _kind_of(other) == _kind_of(first) and text(other, "metadata", "name") == name
        for other in others
    )


def second_of(deployment: JsonObject) -> JsonObject:
    """A second Deployment that runs beside the first.

    Its pods have all labels of the first one's, so that Services select both, and one more, which
    its selector requires. The selector of the first matches the pods of both, but a Deployment
    leaves ReplicaSets alone that another one controls.
    """
    name = f"{text(deployment, 'metadata', 'name')}{_SECOND}"
    second = with_value(deployment, ("metadata", "name"), name)
    for path in (("spec", "selector", "matchLabels"), ("spec", "template", "metadata", "labels")):
        labels = {**child(second, *path), PART: _SECOND.removeprefix("-")}
        second = with_value(second, path, labels)
    return second


def step_most(manifest: JsonObject) -> int | None:
    """How many replicas are replaced at a time; None if the kind lets that be set."""
    return 1 if _kind_of(manifest) == ("apps/v1", "StatefulSet") else None


def with_pace(kind: Kind, manifest: JsonObject, pace: Pace, replicas: int) -> JsonObject:
    """The manifest with a mark on its pods, and with the decided pace."""
    if pace.mark:
        names = {pod_set.name for pod_set in kind.pod_sets(manifest)}
        marked = {name: Change(labels={REVISION: pace.mark}) for name in names}
        manifest = decorate(kind, manifest, marked)
    write = _PACERS.get(_kind_of(manifest))
    return write(manifest, pace, replicas) if write is not None else manifest


def _deployment(manifest: JsonObject, pace: Pace, replicas: int) -> JsonObject:
    """Allows no surge, and at most `allowance` unavailable replicas."""
    if not pace.allowance:
        return manifest
    rolling = {"maxUnavailable": pace.allowance, "maxSurge": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return with_value(manifest, ("spec", "strategy"), strategy)


def _stateful_set(manifest: JsonObject, pace: Pace, replicas: int) -> JsonObject:
    """Updates the highest ordinals first, down to a partition."""
    own = child(manifest, "spec", "updateStrategy", "rollingUpdate")
    rolling = {**own, "partition": _partition(pace, replicas)}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return with_value(manifest, ("spec", "updateStrategy"), strategy)


def _leader_worker_set(manifest: JsonObject, pace: Pace, replicas: int) -> JsonObject:
    own = child(manifest, "spec", "rolloutStrategy", "rollingUpdateConfiguration")
    rolling = {**own, "partition": _partition(pace, replicas)}
    if pace.allowance:
        rolling |= {"maxUnavailable": pace.allowance, "maxSurge": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return with_value(manifest, ("spec", "rolloutStrategy"), strategy)


def _partition(pace: Pace, replicas: int) -> int:
    return 0 if pace.share is None else max(0, replicas - pace.share)


_PACERS: Mapping[tuple[str, str], Callable[[JsonObject, Pace, int], JsonObject]] = {
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _leader_worker_set,
}
_PARTITIONED = frozenset(_PACERS) - {("apps/v1", "Deployment")}


def _kind_of(manifest: JsonObject) -> tuple[str, str]:
    return str(manifest.get("apiVersion")), str(manifest.get("kind"))
