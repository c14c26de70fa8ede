"""When a taint of a cluster was added: noted when it is written, since tolerations count from then.

The embedded store stamps the taint as part of the write. A kube-apiserver does not, and a hub that
wrote into the spec there would own part of a list that belongs to its user: so the clusters
controller notes in the status when it first saw a taint without a time. A taint that stays keeps
its time, whether its writer repeats the time or not. A time that lies ahead, by a clock that is
sure, was stamped by one that was ahead: it counts as none, or the taint would evict nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from fairway.api.cluster import Cluster
from fairway.api.meta import Taint, in_utc

TaintId = tuple[str, str, str]  # key, value and effect
_SKEW = timedelta(minutes=2)  # by which the clocks of replicas may differ


def stamp(body: dict[str, Any], old: Mapping[str, Any] | None, moment: str) -> None:
    """Notes in a Cluster to be written when each taint that evicts was added."""
    known = {_id(taint): taint.get("timeAdded") for taint in _taints(old)}
    for taint in _taints(body):
        if taint.get("effect") == "NoExecute" and taint.get("timeAdded") is None:
            taint["timeAdded"] = known.get(_id(taint)) or moment


def _id(taint: Mapping[str, Any]) -> TaintId:
    return str(taint.get("key")), str(taint.get("value") or ""), str(taint.get("effect"))


def _taints(body: Mapping[str, Any] | None) -> Iterable[dict[str, Any]]:
    """The taints of a Cluster that nothing has checked yet."""
    spec = (body or {}).get("spec")
    taints = spec.get("taints") if isinstance(spec, dict) else None
    return (
        [taint for taint in taints if isinstance(taint, dict)] if isinstance(taints, list) else ()
    )


def noted(cluster: Cluster, now: datetime, *, is_sure: bool) -> tuple[Taint, ...]:
    """The taints to note in the status of a cluster: those that evict, and lack a time."""
    known = _noted_times(cluster)

    def lacks_time(taint: Taint) -> bool:
        if taint.time_added is None:
            return True
        is_ahead = in_utc(taint.time_added) > now + _SKEW
        return is_ahead and (is_sure or (taint.key, taint.value, taint.effect) in known)

    return tuple(
        replace(taint, time_added=known.get((taint.key, taint.value, taint.effect), now))
        for taint in cluster.spec.taints
        if taint.effect == "NoExecute" and lacks_time(taint)
    )


def taints_of(cluster: Cluster) -> tuple[Taint, ...]:
    """The taints of a cluster, with the times that are noted in its status."""
    known = _noted_times(cluster)
    if not known:
        return cluster.spec.taints
    return tuple(
        replace(
            taint, time_added=known.get((taint.key, taint.value, taint.effect), taint.time_added)
        )
        for taint in cluster.spec.taints
    )


def _noted_times(cluster: Cluster) -> dict[TaintId, datetime | None]:
    return {
        (taint.key, taint.value, taint.effect): taint.time_added for taint in cluster.status.taints
    }
