"""The embedded store in process: durable writes, lists, watches, cold start, memory."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from pathlib import Path

import uvloop

from bench import objects
from bench.figures import Report, fsync_seconds, resident_mib
from fairway.app import open_store, prepare_store, settle_memory
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import ResourceKey, WatchFrom, Write

WORKLOADS = ResourceKey("fairway.dev", "v1alpha1", "workloads")
WRITE = Write(user="bench", manager="bench")


async def writes_per_second(store: EmbeddedStore, writers: int, count: int, first: int) -> float:
    numbers = iter(range(first, first + count))

    async def write() -> None:
        for number in numbers:
            await store.create(
                WORKLOADS, objects.workload(number), namespace="default", write=WRITE
            )

    started = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    return count / (time.perf_counter() - started)


async def fan_out(store: EmbeddedStore, watchers: int, count: int, first: int) -> float:
    """Events per second delivered to all watchers together."""
    start = WatchFrom(version=str(store.writer.published))
    watches = [await store.watch(WORKLOADS, start=start) for _ in range(watchers)]

    async def read(watch) -> None:
        seen = 0
        while seen < count:
            seen += len(await watch.batch())
        await watch.close()

    started = time.perf_counter()
    readers = asyncio.gather(*(read(watch) for watch in watches))
    await writes_per_second(store, 64, count, first)
    await readers
    return watchers * count / (time.perf_counter() - started)


async def measure(report: Report, *, scale: float = 1.0) -> None:
    count = max(200, int(20_000 * scale))
    with tempfile.TemporaryDirectory() as folder:
        print(f"Embedded store (fsync {fsync_seconds() * 1000:.2f} ms)")
        store = open_store(Path(folder))
        await prepare_store(store)
        settle_memory()
        single = await writes_per_second(store, 1, max(100, count // 10), 0)
        report.add("durable creates/s, 1 writer", single, "/s")
        many = max(
            [await writes_per_second(store, 64, count, 100_000 * (run + 1)) for run in range(3)]
        )
        report.add("durable creates/s, 64 writers", many, "/s", aim=8_000)
        report.add("batching gain, 64 writers over 1", many / single, "x")
        delivered = await fan_out(store, 100, max(50, count // 20), 1_000_000)
        report.add("watch events/s delivered to 100 watchers", delivered, "/s")
        await store.close()


async def fill(folder: Path, count: int) -> None:
    store = open_store(folder)
    await prepare_store(store)
    await writes_per_second(store, 256, count, 0)
    await store.close()


async def measure_size(report: Report, *, scale: float = 1.0) -> None:
    """Lists, cold start and memory, at two sizes a decade apart."""
    for count in (max(100, int(10_000 * scale)), max(1000, int(100_000 * scale))):
        with tempfile.TemporaryDirectory() as folder:
            await fill(Path(folder), count)
            gc.collect()
            before = resident_mib()
            started = time.perf_counter()
            store = open_store(Path(folder))
            seconds = time.perf_counter() - started
            aim = 3.0 if count >= 100_000 else None
            report.add(f"cold start of the store with {count:,} objects", seconds, "s", aim=aim)
            report.add(f"memory for {count:,} objects", resident_mib() - before, "MiB")
            taken = float("inf")
            for _ in range(3):
                started = time.perf_counter()
                listing = await store.list(WORKLOADS)
                taken = min(taken, time.perf_counter() - started)
            report.add(f"list of {len(listing.items):,} objects, in process", taken * 1000, "ms")
            await store.close()


def run(report: Report, *, scale: float = 1.0) -> None:
    uvloop.run(measure(report, scale=scale))
    uvloop.run(measure_size(report, scale=scale))
