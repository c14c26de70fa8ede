"""The pods of a service over the fleet, as last reported.

Reports say how many pods of a work are ready, bound, pending or ending. Where pods are measured
one by one, their clusters are asked for each pod by name. Pods of a silent cluster are known by the
claim alone, and count as pods whose metrics are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from fairway.api.claim import Placement
from fairway.api.cluster import Cluster
from fairway.api.report import WorkState
from fairway.controllers.autoscaling.services import Service
from fairway.controllers.cache import Cache
from fairway.controllers.work_states import States
from fairway.metrics.interface import MetricsFault, PodMeter, PodUsage
from fairway.serving.scaling.model import PodFact, PodPhase

_SILENT = ("Unready", "Lost")
_PHASES: Mapping[str, PodPhase] = {type_: type_ for type_ in get_args(PodPhase)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Pods, and what was measured of each if they were asked for."""

    facts: tuple[PodFact, ...]
    usage: Mapping[str, PodUsage] = field(default_factory=dict)
    fault: str = ""  # why some were not measured

    @property
    def is_named(self) -> bool:
        """Whether pods are known by name, and not only by number."""
        return bool(self.usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a service has in one cluster, according to its claim."""

    cluster: str
    is_heard: bool
    claimed: tuple[Placement, ...]
    leaving: tuple[Placement, ...]


def count_pods(service: Service, *, cache: Cache, states: States) -> Pods:
    """The pods, by number of each sort."""
    facts: list[PodFact] = []
    for place in _places(service, cache):
        state = states.get(place.cluster, service.work) if place.is_heard else None
        facts.extend(_describe(place.cluster, state) if state is not None else _unseen(place))
    return Pods(facts=tuple(facts))


async def measure_pods(service: Service, *, cache: Cache, meter: PodMeter) -> Pods:
    """The pods one by one, each as measured by its cluster."""
    places = _places(service, cache)
    heard = [place for place in places if place.is_heard]
    answers = await asyncio.gather(
        *(meter.of_work(place.cluster, service.work) for place in heard), return_exceptions=True
    )
    facts = [fact for place in places if not place.is_heard for fact in _unseen(place)]
    usage: dict[str, PodUsage] = {}
    faults: list[str] = []
    for place, answer in zip(heard, answers, strict=True):
        match answer:
            case MetricsFault():
                faults.append(f"{place.cluster}: {answer}")
                facts.extend(_unseen(place))
            case BaseException():
                raise answer
            case _:
                for pod in answer:
                    name = f"{place.cluster}/{pod.name}"
                    usage[name] = pod
                    facts.append(_fact(name, pod))
    return Pods(facts=_with_requests(facts), usage=usage, fault="; ".join(faults))


def _places(service: Service, cache: Cache) -> list[_Place]:
    """Clusters of the service, including those it leaves: those pods serve until they are gone."""
    status = service.workload.status
    claimed = status.claim.placements if status.claim is not None else ()
    names = dict.fromkeys(
        placement.cluster for placement in (*claimed, *status.releasing) if placement.cluster
    )
    places = []
    for name in names:
        cluster = cache.get(Cluster, name)
        place = _Place(
            cluster=name,
            is_heard=cluster is not None and cluster.status.phase not in _SILENT,
            claimed=tuple(placement for placement in claimed if placement.cluster == name),
            leaving=tuple(placement for placement in status.releasing if placement.cluster == name),
        )
        if place.claimed or cluster is not None:
            places.append(place)
    return places


def _describe(cluster: str, state: WorkState) -> Iterable[PodFact]:
    """As many pods of each sort as a report says."""
    for pods in state.pods:
        sorts = (
            ("ready", pods.ready, PodFact(name="")),
            ("bound", pods.bound, PodFact(name="", phase="Pending", is_ready=False)),
            ("pending", pods.pending, PodFact(name="", phase="Pending", is_ready=False)),
            ("failed", pods.failed, PodFact(name="", phase="Failed", is_ready=False)),
            ("ending", pods.terminating, PodFact(name="", is_leaving=True)),
        )
        for word, count, fact in sorts:
            for number in range(count):
                yield replace(fact, name=f"{cluster}/{pods.name}-{word}-{number}")


def _unseen(place: _Place) -> Iterable[PodFact]:
    """The pods that a cluster has according to the claim, while none are reported.

    Pods that leave a silent cluster count as present until it reports. Otherwise each replica that
    the hub takes from such a cluster would be a reason to take the next.
    """
    placements = place.claimed if place.is_heard else (*place.claimed, *place.leaving)
    for number, placement in enumerate(placements):
        for pods in placement.pod_sets:
            for index in range(pods.count):
                yield PodFact(
                    name=f"{placement.cluster}/{pods.name}-claimed-{number}-{index}",
                    is_ready=None,
                    is_reached=False,
                )


def _fact(name: str, pod: PodUsage) -> PodFact:
    return PodFact(
        name=name,
        phase=_PHASES.get(pod.phase, "Pending"),
        is_leaving=pod.is_leaving,
        is_ready=pod.is_ready,
        started_at=pod.started_at,
        ready_changed_at=pod.ready_changed_at,
        requests=pod.requests,
    )


def _with_requests(facts: list[PodFact]) -> tuple[PodFact, ...]:
    """Gives pods without known requests, as in silent clusters, those of the other pods."""
    known = next((fact.requests for fact in facts if fact.requests), {})
    return tuple(fact if fact.requests else replace(fact, requests=known) for fact in facts)
