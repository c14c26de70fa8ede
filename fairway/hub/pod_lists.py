"""The pods of a workload by name, asked of the agents of the clusters where it is.

A cluster that cannot be asked is listed with the fault; the pods of the others are listed anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fairway.agent.drivers.interface import PodSeen
from fairway.agent.pod_lists import PodPage
from fairway.api.errors import ApiError, InternalError, NotFound
from fairway.api.names import work_name
from fairway.clock import timestamp
from fairway.hub.agent_lines import Output, Reaching
from fairway.schema.node import JsonObject
from fairway.server.questions.parameters import PodsRequest
from fairway.streams.requests import Ask

_AT_ONCE = 16  # clusters asked at a time
_BYTES_MOST = 8 << 20
_decode = msgspec.json.Decoder(PodPage).decode


@dataclass(frozen=True, slots=True)
class _Told:
    """The answer of one cluster's agent."""

    cluster: str
    page: PodPage | None = None
    fault: str = ""


class PodLists:
    """Lists pods, a page at a time."""

    def __init__(self, reaching: Reaching) -> None:
        self._reaching = reaching

    async def answer(self, request: PodsRequest) -> JsonObject:
        """A page of pods, cluster by cluster, and a summary of each cluster asked for it.

        The first page covers all clusters; later pages ask those that are left.
        """
        try:
            clusters = self._reaching.clusters_of(request)
        except NotFound:
            clusters = []  # it has not run anywhere yet
        begun, _, after = request.after.partition("/")
        if begun in clusters:
            clusters = clusters[clusters.index(begun) :]
        turn = asyncio.Semaphore(_AT_ONCE)

        async def asked(cluster: str) -> _Told:
            async with turn:
                return await self._ask(request, cluster, after if cluster == begun else "")

        pages = await asyncio.gather(*(asked(cluster) for cluster in clusters))
        return _page(pages, request.most)

    async def _ask(self, request: PodsRequest, cluster: str, after: str) -> _Told:
        ask = Ask(
            kind="pods",
            work=work_name(request.namespace, request.name),
            after=after,
            most=request.most,
            user=request.user,
            groups=request.groups,
        )
        try:
            data = await Output(await self._reaching.ask(cluster, ask)).whole(_BYTES_MOST)
            return _Told(cluster, _read(cluster, data))
        except NotFound:
            return _Told(cluster, PodPage(pods=(), phases={}))  # no pods yet, or no longer
        except ApiError as fault:
            return _Told(cluster, fault=str(fault))


def _read(cluster: str, data: bytes | None) -> PodPage:
    if data is None:
        raise InternalError(f"the agent of {cluster} tells more than is read")
    try:
        return _decode(data)
    except msgspec.MsgspecError as fault:
        raise InternalError(f"what the agent of {cluster} tells is not understood") from fault


def _page(pages: Sequence[_Told], most: int) -> JsonObject:
    """As many pods as are wanted, and where the next page begins."""
    result: JsonObject = {"clusters": [_summary(report) for report in pages], "pods": []}
    pods: list[JsonObject] = result["pods"]
    for report in pages:
        if report.page is None:
            continue
        left = most - len(pods)
        pods.extend(_pod(report.cluster, pod) for pod in report.page.pods[:left])
        if report.page.more or len(report.page.pods) > left:
            last = pods[-1]["name"] if pods and pods[-1]["cluster"] == report.cluster else ""
            result["continue"] = f"{report.cluster}/{last}"
            break
    return result


def _summary(page: _Told) -> JsonObject:
    if page.page is None:
        return {"cluster": page.cluster, "fault": page.fault}
    return {"cluster": page.cluster, "phases": page.page.phases}


def _pod(cluster: str, pod: PodSeen) -> JsonObject:
    moments = {
        "since": pod.since or None,
        "startedAt": pod.started_at,
        "finishedAt": pod.finished_at,
    }
    result: JsonObject = {
        "cluster": cluster,
        "name": pod.name,
        "podSet": pod.pod_set,
        "attempt": pod.attempt,
        "phase": pod.phase,
    }
    said = {
        "node": pod.node,
        **{key: timestamp(at) for key, at in moments.items() if at is not None},
        "restarts": pod.restarts,
        "reason": pod.reason,
        "message": pod.message,
        "revision": pod.revision,
        "containers": list(pod.containers),
    }
    result |= {key: value for key, value in said.items() if value}
    if pod.exit_code is not None:
        result["exitCode"] = pod.exit_code
    return result
