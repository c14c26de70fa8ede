"""Waits until clusters are empty."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from fairway.cli import workloads
from fairway.cli.session import Session, say
from fairway.client.asynchronous import WORKLOADS, AsyncClient


def await_empty(session: Session, clusters: Sequence[str], seconds: float | None) -> None:
    """Returns once no workload is in the clusters; prints how many are left as they leave."""
    session.client.loop.run(_await(session.client.asynchronous, set(clusters), seconds))


async def _await(client: AsyncClient, clusters: set[str], seconds: float | None) -> None:
    left: set[str] = set()
    is_listed, last_left = False, -1
    async with asyncio.timeout(seconds), aclosing(client.watch(WORKLOADS)) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                is_listed = True
            else:
                key = workloads.key_of(event.object)
                here = clusters & set(workloads.clusters_of(event.object))
                if here and event.type != "DELETED":
                    left.add(key)
                else:
                    left.discard(key)
            if is_listed and not left:
                return
            if is_listed and len(left) != last_left:
                last_left = len(left)
                say(f"{last_left} workload{'s' if last_left != 1 else ''} left")
