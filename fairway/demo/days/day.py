"""What a day is: objects, the replicas that are asked for, and what happens to the fleet."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.meta import JsonObject

HOURS = 24.0
HOUR = 3600.0
NAMESPACE = "default"
SERVICE = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happens to the fleet, at an hour of the day."""

    at: float
    cluster: str
    patch: JsonObject  # of the cluster, as a merge patch
    says: str = ""
    takes: bool = False  # replicas are lost by it, whatever the hub does


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A new version of the service, at an hour of the day."""

    at: float
    image: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day of a service."""

    name: str
    title: str
    says: str  # what is to be seen, in a sentence or two
    objects: tuple[JsonObject, ...]
    demand: tuple[tuple[float, int], ...]  # (hour, replicas), straight lines between
    events: tuple[Event, ...] = ()
    batch: tuple[tuple[float, JsonObject], ...] = ()  # (hour, workload): who else wants room
    releases: tuple[Release, ...] = ()
    unavailable_max: int = 1
    speeds: Mapping[str, float] = field(default_factory=dict)  # of a replica, by cluster; else 1

    def wanted(self, hour: float) -> int:
        """Replicas that are asked for at an hour."""
        hours = [at for at, _ in self.demand]
        position = bisect_right(hours, hour)
        if position == 0:
            return self.demand[0][1]
        if position == len(hours):
            return self.demand[-1][1]
        (start, low), (end, high) = self.demand[position - 1], self.demand[position]
        return round(low + (high - low) * (hour - start) / (end - start))

    def clusters(self) -> list[JsonObject]:
        return [object_ for object_ in self.objects if object_["kind"] == "Cluster"]

    def speed(self, cluster: str) -> float:
        return self.speeds.get(cluster, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How things are at one moment of a day, in the clusters themselves."""

    hour: float
    wanted: int
    ready: Mapping[str, int]  # replicas that serve, by cluster
    held: Mapping[str, int]  # replicas that have a node
    others: Mapping[str, int]  # pods of others that have a node
    nodes: Mapping[str, Mapping[str, int]]  # elastic nodes, there or on their way, by pool
    waiting: int = 0  # replicas that have no place
    was_hit: bool = False  # something was lost since the last reading, whatever the hub does
    says: tuple[str, ...] = ()  # what has happened since the last reading

    def worth(self, day: Day) -> float:
        """What serves, in replicas of speed one."""
        return sum(count * day.speed(name) for name, count in self.ready.items())
