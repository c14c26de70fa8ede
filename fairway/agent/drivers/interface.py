"""The interface between an agent and its driver.

The agent decides what to do and when; the driver does it, and reports what it sees. Everything is
idempotent: applying a work twice is the same as applying it once, and a restarted driver finds what
it left running.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from fairway.api.meta import JsonObject, Taint
from fairway.api.namespaces import NamespaceRules
from fairway.api.pools import ElasticPool, ProviderQuota
from fairway.api.work import Manifest, Stop, Work
from fairway.metrics.interface import PodUsage
from fairway.streams.requests import Exchange

PodPhase = Literal["Pending", "Bound", "Ready", "Succeeded", "Failed", "Terminating"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node, with the cluster's own resource names. Amounts are in nanos, hence exact."""

    name: str
    allocatable: Mapping[str, int]
    others: Mapping[str, int] = field(default_factory=dict)  # used by pods of no work
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # free, of shared devices


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """A pod of a work."""

    name: str
    pod_set: str
    attempt: int
    phase: PodPhase
    node: str = ""  # empty until it is bound
    since: float = 0.0  # when its phase began, by the driver's clock
    started_at: float | None = None
    finished_at: float | None = None
    restarts: int = 0
    exit_code: int | None = None
    reason: str = ""  # as Kubernetes words it: OOMKilled, Evicted, ErrImagePull, Unschedulable
    message: str = ""
    revision: str = ""  # the mark of its revision, where it carries one
    is_beside: bool = False  # of a second object that runs beside the first
    containers: tuple[str, ...] = ()  # by name; the first is the default


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSeen:
    """What exists of a work: its pods, and its objects by the position of their manifests.

    A work that was applied and has no pods or objects left is listed with none; a work that the
    driver has never seen is not listed.
    """

    name: str
    attempt: int
    pods: tuple[PodSeen, ...] = ()
    objects: Mapping[int, JsonObject] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)  # manifests that could not be applied
    refused: frozenset[int] = frozenset()  # of these, those that the cluster would refuse again
    checkpointed_at: float | None = None

    def objects_of(self, manifests: Sequence[Manifest]) -> Mapping[int, JsonObject]:
        """The objects of these manifests, by position.

        A look may be older than the list of manifests, and then have other objects at a position.
        """
        there = {_identity(object_): object_ for object_ in self.objects.values()}
        wanted = (
            (at, there.get(_identity(manifest.object))) for at, manifest in enumerate(manifests)
        )
        return {at: value for at, value in wanted if value is not None}


def _identity(body: JsonObject) -> tuple[object, object, object]:
    return (body.get("apiVersion"), body.get("kind"), (body.get("metadata") or {}).get("name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSeen:
    """An elastic pool as it is now."""

    name: str
    nodes: int = 0
    provisioning: int = 0
    stock: int | None = None
    awaits_stock: bool = False  # the source of its stock has not answered yet
    price_nanos: int | None = None  # of one node per hour, if a source reports it
    failures: int = 0  # failed provisions since the driver started
    fault: str = ""  # why the last provision failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that a driver sees at one moment."""

    nodes: tuple[NodeSeen, ...] = ()
    works: Mapping[str, WorkSeen] = field(default_factory=dict)
    pools: tuple[PoolSeen, ...] = ()
    namespaces: tuple[NamespaceRules, ...] = ()  # that have quotas or limits, by name
    uncounted_rules: tuple[str, ...] = ()  # of namespaces, beyond what can be reported
    offered: tuple[ElasticPool, ...] = ()  # pools that the driver found, beside those listed
    quotas: tuple[ProviderQuota, ...] = ()  # that the found pools count against
    kinds: tuple[str, ...] = ()  # served, as group/version/Kind; none means all
    version: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which logs of which pod."""

    work: str
    pod: str = ""  # empty: the only pod, or the first
    container: str = ""
    follow: bool = False
    tail_lines: int | None = None
    since: float | None = None
    is_previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandQuery:
    """Which command to run in a container, and how."""

    work: str
    command: tuple[str, ...]
    pod: str = ""  # as above
    container: str = ""
    has_input: bool = False
    has_terminal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PortQuery:
    """Which port of which pod."""

    work: str
    port: int
    pod: str = ""  # as above


class DriverFault(Exception):
    """The cluster refused or failed; the agent retries later, and reports why meanwhile."""


class Denied(DriverFault):
    """The cluster does not permit the tenant to do this."""


class NotPossible(DriverFault):
    """This sort of cluster cannot do this."""


class Driver(Protocol):
    """Access to one cluster."""

    async def open(self) -> None:
        """Starts, and finds what an earlier run left."""
        ...

    async def close(self) -> None:
        """Ends without stopping the pods of any work."""
        ...

    def silent_seconds(self) -> float:
        """How long the cluster has not answered its agent; 0 while it answers."""
        ...

    async def observe(self) -> Observation: ...

    async def wait_for_change(self) -> None:
        """Returns once there may be something new to observe; at once if there already is."""
        ...

    async def apply(self, work: Work) -> None:
        """Makes the cluster match a work that is to run, to reserve its place or to be held.

        Pods of an earlier attempt are ended first; a changed count adds or ends pods. If one of its
        manifests cannot be made, none is, and what runs of this attempt goes on.
        """
        ...

    async def stop(self, name: str, how: Stop) -> None:
        """Terminates the pods of a work within the grace period; returns at once.

        The pods are gone when `observe` shows none. Objects stay until `remove`.
        """
        ...

    async def remove(self, name: str) -> None:
        """Removes everything made for a work, except manifests that are to stay; ends its pods."""
        ...

    async def release(self, nodes: Sequence[str]) -> None:
        """Releases nodes of elastic pools, except those that have pods of works."""
        ...

    def logs(self, query: LogQuery) -> AsyncIterator[bytes]:
        """Logs of a pod as they arrive; an empty chunk only signals that the logs exist."""
        ...

    async def execute(self, query: CommandQuery, exchange: Exchange) -> int:
        """Runs a command in a container and returns its exit code; cancelling ends the command."""
        ...

    async def forward(self, query: PortQuery, exchange: Exchange) -> None:
        """Forwards bytes to a port of a pod and back, until either side is done."""
        ...

    async def usage(self, work: str) -> tuple[PodUsage, ...]:
        """The pods of a work with what they request, and their measured usage."""
        ...
