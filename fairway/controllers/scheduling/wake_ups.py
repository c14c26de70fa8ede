"""What an event means for the next plan: which workloads are new, what was freed, when to wake.

A plan of all waiting workloads is expensive; one of only the new workloads is cheap. All are
planned only if something was freed since the last such plan: a claim was released, a node came, a
queue changed. New claims are the echo of our own decisions, and reports mostly say where pods were
bound that were already charged.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairway.api.names import OVER
from fairway.clock import parse_timestamp
from fairway.kinds.volumes import BOUND_IN

_TOGETHER_SECONDS = 0.25
_CLUSTER_STATUS = (
    "phase",
    "claims",
    "kinds",
    "avoidedNodes",
    "leavingNodes",
    "elasticPools",
    "offeredPools",
    "stock",
)
_EVERYBODY = ""  # timer key that wakes all workloads, where time alone frees something


class Notice:
    """The relevant events since the last plan."""

    def __init__(self) -> None:
        self.is_freed = True  # the first plan is of all workloads
        self.woken: set[str] = set()
        self._held: dict[str, int] = {}  # workload -> pods and placements that it is charged for
        self._told: dict[tuple[str, str], Any] = {}  # the relevant part of each object, as last put
        self._timers: list[tuple[float, str]] = []
        self._set: set[tuple[float, str]] = set()  # the timers that are set

    def put(self, plain: Mapping[str, Any]) -> None:
        """An object was created or changed."""
        match plain.get("kind"):
            case "Workload":
                self._workload(plain)
            case "ClusterReport":
                spec = plain["spec"]
                self._matters(plain, (spec.get("nodes"), spec.get("removedNodes"), _stock(spec)))
            case "Cluster":
                status = plain.get("status") or {}
                labels = plain["metadata"].get("labels")
                kept = {key: status.get(key) for key in _CLUSTER_STATUS}
                if self._matters(plain, (plain.get("spec"), labels, kept)):
                    for item in status.get("stock", ()):
                        self._wake_at(_EVERYBODY, item.get("tryAt"), item.get("outUntil"))
            case "Fleet":
                self._matters(plain, (plain.get("spec"), _open_breakers(plain)))
            case "PersistentVolumeClaim":
                self._matters(plain, (plain["metadata"].get("annotations") or {}).get(BOUND_IN))
            case "Namespace":
                self._matters(plain, plain["metadata"].get("labels"))
            case "Queue" | "PlacementPolicy" | "KindRule":
                self._matters(plain, plain.get("spec"))
            case _:
                self.is_freed = True

    def remove(self, plain: Mapping[str, Any]) -> None:
        """An object was removed."""
        if plain.get("kind") == "Workload":
            key = _key(plain)
            self.woken.discard(key)
            if self._held.pop(key, 0):
                self.is_freed = True
        else:
            self._told.pop((str(plain.get("kind")), _key(plain)), None)
            self.is_freed = True

    def holds(self, workload: Mapping[str, Any]) -> bool:
        """Whether a workload was charged for anything when it was last put."""
        return _key(workload) in self._held

    def ring(self, now: float) -> None:
        """Wakes workloads whose timers are due."""
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)
            self._set.discard(timer)
            if timer[1] == _EVERYBODY:
                self.is_freed = True
            else:
                self.woken.add(timer[1])

    def next_moment(self) -> float | None:
        """When the next timers are due: rounded up, so that close ones fire together."""
        if not self._timers:
            return None
        return math.ceil(self._timers[0][0] / _TOGETHER_SECONDS) * _TOGETHER_SECONDS

    def clear(self) -> None:
        """A plan begins that takes all events so far into account."""
        self.is_freed = False
        self.woken.clear()

    def _workload(self, plain: Mapping[str, Any]) -> None:
        key = _key(plain)
        status = plain.get("status") or {}
        placements = (status.get("claim") or {}).get("placements", ())
        charged = _charge(placements) + _charge(status.get("releasing", ()))
        if charged < self._held.get(key, 0):
            self.is_freed = True
        self._held[key] = charged
        if not charged:
            del self._held[key]
        if status.get("phase") in OVER:
            self.woken.discard(key)
            return
        self.woken.add(key)
        for moment in _moments(plain):
            self._wake(key, moment)

    def _wake_at(self, key: str, *moments: str | None) -> None:
        for moment in moments:
            if moment:
                self._wake(key, parse_timestamp(moment))

    def _wake(self, key: str, moment: float) -> None:
        if (moment, key) not in self._set:
            self._set.add((moment, key))
            heapq.heappush(self._timers, (moment, key))

    def _matters(self, plain: Mapping[str, Any], what: Any) -> bool:
        """Whether the relevant part of an object changed; if so, something may be freed."""
        name = (str(plain["kind"]), _key(plain))
        is_news = name not in self._told or self._told[name] != what
        if is_news:
            self._told[name] = what
            self.is_freed = True
        return is_news


def _charge(placements: Sequence[Mapping[str, Any]]) -> int:
    pods = sum(
        pod_set.get("count", 0) for each in placements for pod_set in each.get("podSets", ())
    )
    return int(pods) + len(placements)


def _key(plain: Mapping[str, Any]) -> str:
    metadata = plain.get("metadata") or {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _open_breakers(fleet: Mapping[str, Any]) -> list[Any]:
    status = fleet.get("status") or {}
    return [
        breaker.get("name") for breaker in status.get("breakers", ()) if breaker.get("openSince")
    ]


def _stock(spec: Mapping[str, Any]) -> Any:
    return [
        (pool.get("name"), pool.get("nodes"), pool.get("stock")) for pool in spec.get("pools", ())
    ]


def _moments(plain: Mapping[str, Any]) -> Iterator[float]:
    """When time alone may let a workload start: after its backoff, or with an alternative."""
    status = plain.get("status") or {}
    not_before = (status.get("requeue") or {}).get("notBefore")
    if not_before:
        yield parse_timestamp(not_before)
    since = status.get("queuedAt") or plain["metadata"].get("creationTimestamp")
    alternatives = plain["spec"].get("alternatives") or ()
    if since and alternatives:
        moment = parse_timestamp(since)
        for alternative in alternatives:
            moment += alternative.get("afterSeconds", 0)
            yield moment
