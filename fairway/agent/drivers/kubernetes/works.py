"""The desired state of each work, as its agent last applied it, and what is seen of it.

A work that an earlier driver left is found by its pods and objects; its name is in its objects, or
else is the label of its pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

from fairway.agent.drivers.interface import PodSeen, WorkSeen
from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.keys import ObjectKey, key_of
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.kinds.permitted import FindKind
from fairway.kinds.plain import annotation, child, text

_FAILURES_MOST = 16  # failed pods that are gone and remembered
_KUEUE = "kueue.x-k8s.io/"


@dataclass(slots=True, kw_only=True, eq=False)
class Kept:
    """The desired state of a work."""

    name: str
    work: Work | None = None  # None: found in the cluster, and not applied yet
    next: Work | None = None  # to be applied once the pods of the earlier attempt are gone
    is_stopped: bool = False
    is_removed: bool = False
    is_awaited: bool = False  # its nodes are being provisioned; its objects are made after that
    faults: dict[int, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)  # of these, those that would be refused again
    looked_at: dict[int, JsonObject] = field(default_factory=dict)  # read-only objects
    failed: dict[str, PodSeen] = field(default_factory=dict)  # that are gone since
    seen: WorkSeen | None = None

    @property
    def label(self) -> str:
        return marks.label(self.name)

    @property
    def is_over(self) -> bool:
        """Whether the work is no longer wanted, so that nothing is added to what is left."""
        return self.is_removed or (self.work is None and self.next is None)


class Works:
    """All works, by the label of their name."""

    def __init__(self, picture: Picture, find_kind: FindKind) -> None:
        self._picture = picture
        self._find_kind = find_kind
        self._kept: dict[str, Kept] = {}
        self._stale: set[str] = set()
        self._needed_by: dict[ObjectKey, dict[str, None]] = {}  # labels of works

    def get(self, name: str) -> Kept | None:
        return self._kept.get(marks.label(name))

    def keep(self, name: str) -> Kept:
        """The entry of a work, made if it is not known."""
        kept = self._kept.setdefault(marks.label(name), Kept(name=name))
        self._stale.add(kept.label)
        return kept

    def touch(self, label: str) -> Kept | None:
        """Records that a work changed; adds a work that was not known."""
        self._stale.add(label)
        kept = self._kept.get(label)
        if kept is None:
            objects = self._picture.objects.get(label, {})
            if not objects and label not in self._picture.pods:
                return None
            name = next((marks.work_of(object_) for object_ in objects.values()), label)
            kept = self._kept[label] = Kept(name=name)
        elif kept.is_over and not self.is_there(label):
            self.begin(kept, None)
            del self._kept[label]
        self._remember_failures(kept)
        return kept

    def is_there(self, label: str) -> bool:
        return label in self._picture.objects or label in self._picture.pods

    def earlier(self, kept: Kept, attempt: int) -> bool:
        """Whether anything that runs is left of an earlier attempt."""
        pods = self._picture.pods.get(kept.label, {}).values()
        return any(pod.seen.attempt < attempt for pod in pods) or any(
            marks.attempt_of(body) < attempt for _, body in self.running(kept)
        )

    def running(self, kept: Kept) -> Iterator[tuple[ObjectKey, JsonObject]]:
        """The objects of a work that run pods."""
        for key, body in list(self._picture.objects.get(kept.label, {}).items()):
            if self._find_kind(body) is not None:
                yield key, body

    def begin(self, kept: Kept, work: Work | None) -> None:
        """Sets the desired state of a work; None: it needs no objects any more."""
        for value, is_listed in ((kept.work, False), (work, True)):
            for manifest in value.spec.manifests if value is not None else ():
                if self._find_kind(manifest.object) is None:
                    self._list(key_of(manifest.object), kept.label, is_listed=is_listed)
        if work is not None:
            kept.work = work

    def _list(self, key: ObjectKey, label: str, *, is_listed: bool) -> None:
        needed_by = self._needed_by.setdefault(key, {})
        if is_listed:
            needed_by[label] = None
        else:
            needed_by.pop(label, None)
        if not needed_by:
            del self._needed_by[key]

    def another_that_needs(self, key: ObjectKey, kept: Kept) -> Kept | None:
        """Another work that needs an object that runs no pods."""
        for label in self._needed_by.get(key, ()):
            other = self._kept.get(label)
            if other is not None and other is not kept and not other.is_removed:
                return other
        return None

    def seen(self) -> dict[str, WorkSeen]:
        """All works; unchanged works are the identical values."""
        for label in self._stale:
            kept = self._kept.get(label)
            if kept is not None:
                kept.seen = self._look(kept)
        self._stale.clear()
        return {kept.name: kept.seen for kept in self._kept.values() if kept.seen is not None}

    def pods(self, kept: Kept) -> list[PodSeen]:
        """The pods of a work; a pod without a reason gets that of a warning about it."""
        result = []
        for other in self._picture.pods.get(kept.label, {}).values():
            pod = other.seen
            trouble = self._picture.trouble(other.uid)
            if trouble is not None and pod.phase in ("Pending", "Bound") and not pod.reason:
                pod = with_fields(pod, reason=trouble.reason, message=trouble.message)
            result.append(pod)
        return result

    def _look(self, kept: Kept) -> WorkSeen:
        work = kept.work
        pods = self.pods(kept)
        objects = dict(self._positions(kept))
        faults = dict(kept.faults)
        has_failed = False
        for position, body in objects.items():
            kind = self._find_kind(body)
            if kind is None:
                continue
            has_failed = has_failed or kind.read(body).phase == "Failed"
            if kept.is_stopped or work is None or work.spec.desired != "Run" or kept.next:
                continue
            asked = work.spec.manifests[position].object
            if kind.is_held(body) and not kind.is_held(kind.release(asked)):
                faults.setdefault(position, _held_by_others(body))
            trouble = self._picture.trouble(text(body, "metadata", "uid"))
            if trouble is not None and not pods:
                faults.setdefault(position, f"{trouble.reason}: {trouble.message}")
        if has_failed and not any(pod.phase == "Failed" for pod in pods):
            pods += kept.failed.values()
        attempts = [pod.attempt for pod in pods]
        attempts += [marks.attempt_of(object_) for object_ in objects.values()]
        return WorkSeen(
            name=kept.name,
            attempt=work.spec.attempt if work is not None else max(attempts, default=0),
            pods=tuple(sorted(pods, key=lambda pod: pod.name)),
            objects=objects,
            faults={} if kept.is_removed else faults,
            refused=frozenset(kept.refused & set(kept.faults)),
        )

    def _positions(self, kept: Kept) -> Iterator[tuple[int, JsonObject]]:
        """The objects of a work with the positions of their manifests, in order."""
        positions = self._picture.objects.get(kept.label, {})
        if kept.work is None:
            for at, body in enumerate(positions.values()):
                place = annotation(body, marks.POSITION)
                yield int(place) if place.isdecimal() else at, body
            return
        for position, manifest in enumerate(kept.work.spec.manifests):
            there = positions.get(key_of(manifest.object)) or kept.looked_at.get(position)
            if there is not None:
                yield position, there

    def _remember_failures(self, kept: Kept) -> None:
        """Remembers failed pods that their controller, or a drain, deletes soon after."""
        attempt = kept.work.spec.attempt if kept.work is not None else 0
        if kept.is_stopped or kept.is_removed or kept.next is not None:
            kept.failed.clear()
            return
        for pod in self._picture.pods.get(kept.label, {}).values():
            if pod.seen.phase == "Failed" and pod.seen.attempt >= attempt:
                kept.failed.setdefault(pod.uid, pod.seen)
        while len(kept.failed) > _FAILURES_MOST:
            kept.failed.pop(next(iter(kept.failed)))
        for uid in [uid for uid, pod in kept.failed.items() if pod.attempt < attempt]:
            del kept.failed[uid]


def _held_by_others(body: JsonObject) -> str:
    """The fault of an object that something in the cluster holds back after it was released."""
    marks_of_others: Mapping[str, object] = {
        **child(body, "metadata", "labels"),
        **child(body, "metadata", "annotations"),
    }
    queued = next((key for key in marks_of_others if key.startswith(_KUEUE)), "")
    gates = [text(gate, "name") for gate in child(body, "spec").get("schedulingGates") or ()]
    is_kueue = bool(queued) or any(gate.startswith(_KUEUE) for gate in gates)
    who = "Kueue in the cluster" if is_kueue else "something else in the cluster"
    return (
        f"{who} holds it back, though the fleet has admitted it; exempt its namespace there, "
        "or let only one of both queue it"
    )
