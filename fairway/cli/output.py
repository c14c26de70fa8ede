"""Copies the output of a workload's pods to the standard output.

Lines of several pods are kept whole and begin with their pod's name, as with `kubectl logs
--prefix`, and with its cluster if there are several. The pods are derived from the workload's own
objects in each cluster, if those can be read; else the hub chooses one pod in each.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from fairway.api.errors import Forbidden, NotFound
from fairway.api.names import work_name, work_namespace
from fairway.cli import workloads
from fairway.cli.session import Failure
from fairway.client.asynchronous import WORKLOADS, AsyncClient
from fairway.client.errors import ConnectionFailed
from fairway.client.wire import Object

WORKS = "works.fairway.dev"
BEGIN_SECONDS = 0.2  # between attempts to read a pod that has no output yet
FOLLOWED_MOST = 64  # pods whose output is followed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which output of which workload."""

    client: AsyncClient
    workload: Object
    cluster: str = ""
    pod: str = ""
    is_every_pod: bool = True
    has_prefix: bool | None = None  # None: if there are several pods
    query: dict[str, str] = field(default_factory=dict)  # further query parameters

    @property
    def namespace(self) -> str:
        return str(self.workload["metadata"]["namespace"])


@dataclass(frozen=True, slots=True)
class PodAt:
    """A pod and its cluster; empty parts are the hub's choice."""

    cluster: str = ""
    pod: str = ""

    def name(self, *, has_cluster: bool) -> str:
        parts = (self.cluster if has_cluster else "", self.pod)
        return "/".join(part for part in parts if part)


async def copy(source: Source, *, follow: bool) -> None:
    """Copies output until it ends; without `follow`, only what exists now."""
    pods = await pods_of(source)
    has_prefix = len(pods) > 1 if source.has_prefix is None else source.has_prefix
    has_cluster = len({pod.cluster for pod in pods}) > 1
    called = {pod: pod.name(has_cluster=has_cluster) if has_prefix else "" for pod in pods}
    if not follow:
        for pod in pods:
            await _copy_pod(source, pod, called=called[pod], follow=False)
        return
    left = pods[FOLLOWED_MOST:]
    tasks = [
        asyncio.ensure_future(_copy_pod(source, pod, called=called[pod], follow=True))
        for pod in pods[:FOLLOWED_MOST]
    ]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for pod in left:
        await _copy_pod(source, pod, called=called[pod], follow=True)


async def pods_of(source: Source) -> list[PodAt]:
    """The pods to read, in order of cluster and name."""
    if source.pod or not source.is_every_pod:
        return [PodAt(source.cluster, source.pod)]
    clusters = [source.cluster] if source.cluster else _clusters(source.workload)
    pods: list[PodAt] = []
    for cluster in clusters:
        names = await _names(source, cluster)
        if not names and len(clusters) > 1:
            names = [""]  # the hub chooses a pod, in each of the clusters
        pods += [PodAt(cluster, name) for name in names]
    return pods or [PodAt(source.cluster)]


def _clusters(workload: Object) -> list[str]:
    """Its current clusters; else its last ones."""
    clusters = workloads.clusters_of(workload)
    history = workloads.status_of(workload).get("history") or ()
    if not clusters and history:
        clusters = list(history[-1].get("clusters") or ())
    return clusters


async def _names(source: Source, cluster: str) -> list[str]:
    """The pods that the workload's objects in a cluster create."""
    from fairway.kinds.registry import built_in  # noqa: PLC0415 - seldom wanted

    name = work_name(source.namespace, workloads.name_of(source.workload))
    try:
        work = await source.client.get(WORKS, name, namespace=work_namespace(cluster))
    except (NotFound, Forbidden):
        return []
    kinds, names = built_in(), list[str]()
    for other in (work.get("spec") or {}).get("manifests") or ():
        manifest = other.get("object") or {}
        kind = kinds.of(manifest)
        if kind is not None:
            names += [pod.name for pod in kind.pods(kind.release(manifest))]
    return names


async def _copy_pod(source: Source, where: PodAt, *, called: str, follow: bool) -> None:
    """Copies the output of one pod; each line begins with its label, if any."""
    query = {**source.query}
    if where.cluster:
        query["cluster"] = where.cluster
    if where.pod:
        query["pod"] = where.pod
    if follow:
        query["follow"] = "true"
    write = _prefix(f"[{called}] ") if called else _write
    name = workloads.name_of(source.workload)
    while True:
        try:
            chunks = source.client.log(name, namespace=source.namespace, query=query)
            async with aclosing(chunks):
                async for chunk in chunks:
                    write(chunk)
        except ConnectionFailed as error:
            if error.is_refused:
                raise
            raise Failure(
                "the output was cut: the hub, or its stream to the cluster, is lost"
            ) from (error)
        except NotFound:
            # It may be placed already, but not started there.
            if not follow or workloads.is_over(source.workload):
                raise
            await asyncio.sleep(BEGIN_SECONDS)
            source = await _again(source)
            continue
        write(b"")
        return


async def _again(source: Source) -> Source:
    name = workloads.name_of(source.workload)
    stored = await source.client.get(WORKLOADS, name, namespace=source.namespace)
    return replace(source, workload=stored)


def _write(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _prefix(prefix: str) -> Callable[[bytes], None]:
    """Writes whole lines with a prefix; an empty chunk is the end, and writes what is left."""
    rest = b""

    def write(chunk: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + chunk).split(b"\n")
        if not chunk and rest:
            lines, rest = [rest], b""
        if lines:
            _write(b"".join(prefix.encode() + line + b"\n" for line in lines))

    return write
