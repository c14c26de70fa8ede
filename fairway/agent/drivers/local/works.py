"""One work on disk, and what its manifests request on this machine."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairway.agent.drivers.interface import DriverFault
from fairway.agent.drivers.local.environment import PodFault
from fairway.agent.drivers.local.hosts import Hosts, Mention
from fairway.agent.drivers.local.pods import LocalPod, read_json, write_json
from fairway.api import codec
from fairway.api.meta import JsonObject
from fairway.api.work import Manifest, Work
from fairway.kinds.interface import Kind, Pod
from fairway.kinds.permitted import is_name
from fairway.kinds.plain import child, name_of, namespace_of, text

FindKind = Callable[[JsonObject], Kind | None]

# Kinds that are only data; there is nothing to run for them.
_SILENT = {
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
}


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A pod that is to run and has no room yet, or that the machine could not start."""

    pod: Pod
    owner: str
    remakes: int  # how often it was replaced
    since: float
    message: str = ""
    failures: int = 0  # how often the machine could not start it
    not_before: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class Kept:
    """A work as applied, with its pods."""

    folder: Path
    work: Work
    next: Work | None = None  # to be applied once the pods of the earlier attempt are gone
    stop: tuple[signal.Signals, float] | None = None  # the signal and the grace period
    is_removed: bool = False
    ports: dict[Mention, int] = field(default_factory=dict)
    created: dict[str, JsonObject] = field(default_factory=dict)  # of manifests never updated
    finals: dict[str, JsonObject] = field(default_factory=dict)  # statuses of what is over
    pods: dict[str, LocalPod] = field(default_factory=dict)  # by key
    waiting: dict[str, Waiting] = field(default_factory=dict)  # by name
    objects: dict[int, JsonObject] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    hosts: Hosts | None = None
    checkpointed_at: float | None = None

    @property
    def name(self) -> str:
        return self.work.metadata.name

    @property
    def attempt(self) -> int:
        return self.work.spec.attempt

    def by_name(self, owner: str) -> dict[str, LocalPod]:
        """The pods of one object."""
        return {pod.name: pod for pod in self.pods.values() if pod.owner == owner}

    def new_folder(self, pod: str) -> Path:
        """The folder for a new pod; the output of an earlier pod of that name stays.

        PodFault if the name of the pod is no name but a path.
        """
        if not is_name(pod):
            raise PodFault(f"metadata.name: {pod!r} is not the name of a pod")
        attempt, number = self.folder / "pods" / str(self.attempt), 0
        while (attempt / str(number) / pod).exists():
            number += 1
        return attempt / str(number) / pod

    def key_of(self, folder: Path) -> str:
        return f"{self.name}/{folder.relative_to(self.folder / 'pods')}"

    def save(self) -> None:
        write_json(
            self.folder / "work.json",
            {
                "work": codec.to_plain(self.work),
                "next": codec.to_plain(self.next) if self.next is not None else None,
                "stop": self.stop,
                "is_removed": self.is_removed,
                "ports": [
                    [mention.pod, mention.port, here] for mention, here in self.ports.items()
                ],
                "created": self.created,
                "finals": self.finals,
            },
        )

    @classmethod
    def load(cls, folder: Path) -> Kept | None:
        decoded = read_json(folder / "work.json")
        if decoded is None:
            return None
        following, stop = decoded["next"], decoded["stop"]
        return cls(
            folder=folder,
            work=codec.decode(decoded["work"], Work),
            next=codec.decode(following, Work) if following else None,
            stop=(signal.Signals(stop[0]), float(stop[1])) if stop else None,
            is_removed=decoded["is_removed"],
            ports={Mention(pod=pod, port=port): here for pod, port, here in decoded["ports"]},
            created=decoded["created"],
            finals=decoded["finals"],
        )


def checked_name(name: str) -> str:
    """Checks the name of a work, which becomes the name of a folder."""
    if not is_name(name):
        raise DriverFault(f"{name!r} is not the name of a work")
    return name


def owner_of(manifest: JsonObject) -> str:
    """Identifies an object, whatever its position among the manifests."""
    kind = (text(manifest, "apiVersion"), text(manifest, "kind"))
    return "/".join((*kind, namespace_of(manifest), name_of(manifest)))


def faults_of(kind: Kind, manifest: JsonObject) -> list[str]:
    """Why a manifest cannot run here; names of pods become names of folders."""
    faults = kind.faults(manifest)
    pods = () if faults else kind.pods(kind.release(manifest))
    wrong = next((pod.name for pod in pods if not is_name(pod.name)), None)
    return faults if wrong is None else [f"{wrong!r} is not the name of a pod"]


def object_of(manifest: Manifest, kind: Kind | None, kept: Kept) -> JsonObject:
    """The object made from a manifest; DriverFault if it cannot be made."""
    wanted = manifest.object
    known = (text(wanted, "apiVersion"), text(wanted, "kind"))
    if kind is None and known not in _SILENT:
        raise DriverFault(f"a local cluster serves no kind {known[1]} of {known[0]}")
    if not name_of(wanted):
        raise DriverFault("metadata.name: an object needs a name")
    if kind is not None:
        faults = faults_of(kind, wanted)
        if faults:
            raise DriverFault("; ".join(faults))
        wanted = kind.release(wanted)
    if manifest.update == "CreateOnly":
        wanted = kept.created.setdefault(owner_of(wanted), wanted)
    metadata = {**child(wanted, "metadata"), "uid": uid_of(kept.name, owner_of(wanted))}
    return {**wanted, "metadata": metadata}


def uid_of(*parts: str) -> str:
    """A uid derived from `parts`: the same for the same parts."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:32]


def kept_objects(kept: Kept, kind: str) -> dict[str, JsonObject]:
    """Objects of one kind that travel with a work, by name."""
    result = (manifest.object for manifest in kept.work.spec.manifests)
    return {name_of(entry): entry for entry in result if entry.get("kind") == kind}


def hosts_of(kept: Kept, find_kind: FindKind) -> Hosts:
    """The hosts of all pods that the work may have."""
    pods: list[Pod] = []
    for body in kept.objects.values():
        kind = find_kind(body)
        pods += kind.pods(body) if kind is not None else ()
    namespace = next((namespace_of(object_) for object_ in kept.objects.values()), "default")
    return Hosts(pods, list(kept_objects(kept, "Service").values()), namespace)


def folders_of_pods(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """The attempt, number and folder of each pod on disk, the oldest first."""
    numbered = sorted(
        (int(attempt.name), int(number.name), number)
        for attempt in _folders(folder / "pods")
        for number in _folders(attempt)
    )
    for attempt_number, number_number, place in numbered:
        for pod in _folders(place):
            yield attempt_number, number_number, pod


def _folders(path: Path) -> Sequence[Path]:
    return sorted(other for other in path.iterdir() if other.is_dir()) if path.exists() else []
