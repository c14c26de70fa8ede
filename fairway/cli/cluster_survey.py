"""A first look at a cluster that is to join, and the objects drafted from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from fairway.agent.drivers.kubernetes import survey
from fairway.agent.drivers.kubernetes.nodes import ReadNode
from fairway.agent.drivers.kubernetes.objects import kinds_for_works
from fairway.api.cluster import Permits
from fairway.api.errors import AlreadyExists
from fairway.cli.render_table import Grid
from fairway.client.access import Access
from fairway.client.wire import Object
from fairway.clock import SystemClock
from fairway.kinds import permitted
from fairway.kinds.registry import built_in
from fairway.kubeapi import KubeApi
from fairway.store.interface import Write
from fairway.store.keys import NODES, resource_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a look at a cluster."""

    pools: Sequence[survey.Pool]
    kinds: Sequence[tuple[str, str]]  # kinds that works may contain there
    flavors: Sequence[Object]
    topology: Sequence[Object]
    elastic_pools: Sequence[Object]


@asynccontextmanager
async def open_api(access: Access) -> AsyncIterator[KubeApi]:
    """An API client, for as long as the context lasts."""
    api = KubeApi(access, SystemClock())
    try:
        yield api
    finally:
        await api.close()


async def look(access: Access) -> Found:
    """Looks at a cluster with whatever permissions the access has."""
    read = ReadNode()
    async with open_api(access) as api:
        catalogue = await api.discovery.catalogue()
        pages = [page async for page in api.pages(NODES, read=read)]
    nodes = [seen.value for page in pages for seen in page.items]
    served = kinds_for_works(catalogue.served, built_in().of, Permits())
    pools = survey.pools_of(nodes)
    return Found(
        pools=pools,
        kinds=sorted({(resource.group, resource.plural) for resource in served}),
        flavors=survey.flavors(pools),
        topology=survey.topology(nodes),
        elastic_pools=survey.elastic_pools(pools),
    )


def known_kinds() -> list[tuple[str, str]]:
    """The kinds that works may contain, whatever a cluster serves."""
    named = [(*version.rpartition("/")[::2], kind) for version, kind in built_in().names()]
    several = [(group, kind) for group, _, kind in named] + sorted(permitted.HARMLESS)
    return sorted({(group, resource_of("v1", kind).plural) for group, kind in several})


def table(match: Found) -> Grid:
    """The nodes of a cluster, grouped by their properties."""
    rows = [
        [
            pool.name,
            f"{pool.ready}/{len(pool.nodes)}",
            pool.model or "-",
            str(pool.each or "-"),
            str(pool.each * len(pool.nodes) or "-"),
            "yes" if pool.spot else "no",
            ",".join(pool.zones) or "-",
        ]
        for pool in match.pools
    ]
    return Grid(["POOL", "READY", "ACCELERATOR", "EACH", "TOTAL", "SPOT", "ZONES"], rows)


async def add_missing(hub: KubeApi, drafts: Sequence[Object]) -> None:
    """Creates drafts on a hub; existing objects of the same names stay unchanged."""
    for body in drafts:
        with suppress(AlreadyExists):
            kind = resource_of(body["apiVersion"], body["kind"])
            await hub.create(kind, body, write=Write(manager="fairway-join"))
