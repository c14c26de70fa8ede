"""A short story that a hub of any version plays, and what is left on its disk at the end.

A fleet of two simulated clusters on virtual time: jobs finish, are cancelled, preempted and wait, a
service follows its load and gets a new image. The story stops in the middle of things, so whoever
opens the data folder has something to go on with.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fairway.api import codec
from fairway.app import prepare_store
from fairway.clock import VirtualClock
from fairway.hub.decision_log import FileSink
from fairway.hub.history_log import HistoryFile
from fairway.hub.line_log import LineFile
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.keys import WORKLOADS
from tests.controllers.dials import Dials
from tests.controllers.fleets import Fleet, running
from tests.controllers.test_running import job

Plain = dict[str, Any]

HERE = Path(__file__).parent
KIND_RULE = HERE.parents[1] / "examples" / "fleet" / "kindrules.yaml"


@asynccontextmanager
async def hub(data: Path, clock: VirtualClock, *, seed: int = 0) -> AsyncIterator[Fleet]:
    """A hub on a data folder, with all the files that a hub keeps, on virtual time."""
    journal = SqliteJournal(data / "fairway.db", is_inline=True)
    chance = random.Random(seed)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock, chance=chance)
    store.start()
    sink, spans = FileSink(data / "decisions"), LineFile(data / "spans")
    decided, history = LineFile(data / "decided"), HistoryFile(data / "history")
    try:
        await prepare_store(store)
        async with running(
            store,
            clock,
            data / "clusters",
            sink=sink,
            decisions=decided,
            spans=spans,
            history=history,
            sources=Dials({"waiting": 40.0}),
        ) as fleet:
            yield fleet
    finally:
        await store.close()
        sink.close()
        spans.close()
        decided.close()
        history.close()


async def play(fleet: Fleet) -> None:
    """The story itself."""
    await fleet.apply((HERE / "fleet.yaml").read_text())
    await fleet.clock.advance(2)
    await fleet.apply(KIND_RULE.read_text())
    await fleet.clock.advance(2)
    await fleet.apply((HERE / "workloads.yaml").read_text())
    await fleet.apply(job("done", gpus=2, seconds=30))
    await fleet.apply(job("cancelled", gpus=2, seconds=600))
    await fleet.until("cancelled", "Running", 60)
    await fleet.change("cancelled", {"spec": {"cancelled": True}})
    for name in ("done", "job-native", "sweep-rates"):
        await fleet.until(name, "Succeeded", 300)
    await fleet.until("cancelled", "Cancelled", 60)
    await fleet.apply(job("humble", pods=2, seconds=300))
    await fleet.until("humble", "Running", 60)
    await fleet.apply(job("urgent", pods=2, priority=10, seconds=30))
    await fleet.until("urgent", "Succeeded", 120)
    await fleet.until("humble", "Running", 60)
    await fleet.apply(job("waits", pods=2, seconds=30))
    await fleet.until("waits", lambda item: bool(item.status.reason), 30)
    manifests = (await fleet.store.get(WORKLOADS, "chat", "default")).object()["spec"]["template"]
    container = manifests["manifests"][0]["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "server:2"
    await fleet.change("chat", {"spec": {"template": manifests}})
    await fleet.clock.advance(10)


async def told(fleet: Fleet) -> Plain:
    """What must be found again: how many objects of each kind, and where workloads are."""
    workloads = [
        (await fleet.workload(metadata["name"], metadata["namespace"]))
        for item in (await fleet.store.list(WORKLOADS)).items
        for metadata in [item.object()["metadata"]]
    ]
    return {
        "now": fleet.clock.now(),
        "kinds": {kind: count for kind, count in sorted(fleet.store.counts().items()) if count},
        "workloads": {
            f"{workload.metadata.namespace}/{workload.metadata.name}": {
                "phase": workload.status.phase,
                "claim": codec.to_plain(workload.status.claim) if workload.status.claim else None,
            }
            for workload in workloads
        },
    }
