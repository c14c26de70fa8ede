"""The definition of a day: objects, requested replicas, and events in the fleet."""

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
    """An event in the fleet, at an hour of the day."""

    at: float
    cluster: str
    patch: JsonObject  # of the cluster, as a merge patch
    says: str = ""
    takes: bool = False  # it loses replicas, whatever the hub does


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
    says: str  # what to look for, in a sentence or two
    objects: tuple[JsonObject, ...]
    demand: tuple[tuple[float, int], ...]  # (hour, replicas), linear in between
    events: tuple[Event, ...] = ()
    batch: tuple[tuple[float, JsonObject], ...] = ()  # (hour, workload): competing workloads
    releases: tuple[Release, ...] = ()
    unavailable_max: int = 1
    speeds: Mapping[str, float] = field(default_factory=dict)  # of a replica, by cluster; default 1

    def replicas_at(self, hour: float) -> int:
        """Replicas that are requested at an hour."""
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
    """The state of the clusters themselves at one moment of a day."""

    hour: float
    wanted: int
    ready: Mapping[str, int]  # ready replicas, by cluster
    held: Mapping[str, int]  # replicas that have a node
    others: Mapping[str, int]  # pods of other workloads that have a node
    nodes: Mapping[str, Mapping[str, int]]  # elastic nodes, present or on order, by pool
    waiting: int = 0  # replicas without a placement
    was_hit: bool = False  # something was lost since the last reading, whatever the hub does
    says: tuple[str, ...] = ()  # what has happened since the last reading

    def worth(self, day: Day) -> float:
        """Serving capacity, in replicas of speed one."""
        return sum(count * day.speed(name) for name, count in self.ready.items())
