"""The known kinds: those in code, and those from rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import msgspec

from fairway.api.meta import JsonObject
from fairway.api.podset import PodSet
from fairway.kinds.deployment import Deployment
from fairway.kinds.interface import Kind, Mode
from fairway.kinds.job import Job
from fairway.kinds.jobset import JobSet
from fairway.kinds.leaderworkerset import LeaderWorkerSet
from fairway.kinds.pod import Pod
from fairway.kinds.rules.load import built_in_kinds
from fairway.kinds.statefulset import StatefulSet
from fairway.kinds.volcano import VolcanoJob

CODE: tuple[Kind, ...] = (
    Job(),
    JobSet(),
    Deployment(),
    StatefulSet(),
    LeaderWorkerSet(),
    VolcanoJob(),
    Pod(),
)


@dataclass(frozen=True, slots=True)
class Kinds:
    """A set of kinds, looked up by the API version and kind of a manifest."""

    by_name: Mapping[tuple[str, str], Kind] = field(default_factory=dict)

    @classmethod
    def of_code(cls, *rules: Kind) -> Kinds:
        """The kinds in code, plus others; a rule replaces the kind in code of the same name."""
        return cls().plus(CODE).plus(rules)

    def plus(self, kinds: Iterable[Kind]) -> Kinds:
        """These and others; a later one of the same name wins."""
        result = dict(self.by_name)
        for kind in kinds:
            result.update({(version, kind.name): kind for version in kind.api_versions})
        return Kinds(result)

    def of(self, manifest: Mapping[str, object]) -> Kind | None:
        """The kind of a manifest; None if it is not known, and thus runs nothing."""
        return self.by_name.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))

    def names(self) -> Sequence[tuple[str, str]]:
        """All API versions and kinds, in order."""
        return sorted(self.by_name)

    def pod_sets(self, manifest: JsonObject, mode: Mode) -> tuple[PodSet, ...]:
        """The pod sets of a manifest in a mode, whatever the default mode of its kind.

        A service that runs as a gang needs all its replicas at once. The tasks of an Independent
        job are its indexes, so each needs one pod.
        """
        kind = self.of(manifest)
        if kind is None:
            return ()
        pod_sets = kind.pod_sets(manifest)
        times = kind.replicas(manifest)
        if mode != "Divided" and times is not None:
            return tuple(_of_count(pod_set, pod_set.count * times) for pod_set in pod_sets)
        if mode == "Independent" and isinstance(kind, Job):
            return tuple(_of_count(pod_set, 1) for pod_set in pod_sets)
        return pod_sets


class LiveKinds:
    """The kinds of a hub: those built in, and those of its current rules.

    Followers are called at each change; lookups use the current kinds.
    """

    def __init__(self, now: Kinds) -> None:
        self.now = now
        self.followers: list[Callable[[], None]] = []

    def use(self, kinds: Kinds) -> None:
        """Replaces the current kinds and calls the followers."""
        self.now = kinds
        for follow in self.followers:
            follow()

    def of(self, manifest: Mapping[str, object]) -> Kind | None:
        return self.now.of(manifest)

    def names(self) -> Sequence[tuple[str, str]]:
        return self.now.names()

    def pod_sets(self, manifest: JsonObject, mode: Mode) -> tuple[PodSet, ...]:
        return self.now.pod_sets(manifest, mode)


KnownKinds = Kinds | LiveKinds


def _of_count(pod_set: PodSet, count: int) -> PodSet:
    return msgspec.structs.replace(pod_set, count=count, least_count=None)


@cache
def built_in() -> Kinds:
    """All kinds that come with Fairway."""
    return Kinds.of_code(*built_in_kinds())
