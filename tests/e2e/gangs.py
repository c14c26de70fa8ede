"""Gangs of workers that meet by the rendezvous of their framework, as it comes from the registry.

The programs run on any cluster as they are: they know a host name and a port, and nothing of where
they are.
"""

from __future__ import annotations

from pathlib import Path

from fairway.api.workload import Workload
from tests.agent.local.machines import shared
from tests.e2e.environment import FOLDERS, python, submit
from tests.endtoend.hubs import hub_process
from tests.endtoend.test_real_processes import attempts, job

JAX = """
import os, sys, time
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
from jax.experimental import multihost_utils

jax.distributed.initialize(
    coordinator_address=os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"],
    num_processes=int(os.environ["WORLD_SIZE"]),
    process_id=int(os.environ["RANK"]),
)
rank = jax.process_index()
total = multihost_utils.process_allgather(jax.numpy.array([rank + 1.0])).sum()
run = f"{os.getpid()}@{time.time()}"
print(f"worker {rank} of {jax.process_count()}: {total}", run, flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
total = multihost_utils.process_allgather(jax.numpy.array([rank + 10.0])).sum()
print(f"result {total}", flush=True)
jax.distributed.shutdown()  # waits for the others; who is left behind by the first aborts
"""

TORCH = """
import os
import torch
import torch.distributed

torch.distributed.init_process_group("gloo", init_method="env://")
rank = torch.distributed.get_rank()
total = torch.tensor([rank + 1.0])
torch.distributed.all_reduce(total)
print(f"worker {rank} of {torch.distributed.get_world_size()}: {total.item()}", flush=True)
torch.distributed.destroy_process_group()
"""


async def test_workers_of_jax_meet_and_compute_together(tmp_path: Path) -> None:
    end = shared(tmp_path) / "end"
    end.touch()
    async with hub_process(tmp_path, folders=FOLDERS) as hub:
        await submit(hub, job("three", [python(), "-c", JAX, str(end)], pods=3))
        await hub.until("three", "Succeeded")
        for rank in range(3):
            told = await hub.log("three", f"three-{rank}")
            assert f"worker {rank} of 3: 6.0" in told
            assert "result 33.0" in told


async def test_workers_of_torch_reduce_together(tmp_path: Path) -> None:
    async with hub_process(tmp_path, folders=FOLDERS) as hub:
        await submit(hub, job("three", [python(), "-c", TORCH], pods=3))
        await hub.until("three", "Succeeded")
        for rank in range(3):
            assert f"worker {rank} of 3: 6.0" in await hub.log("three", f"three-{rank}")


async def test_a_gang_of_jax_that_loses_a_worker_meets_again_in_its_next_attempt(
    tmp_path: Path,
) -> None:
    end = shared(tmp_path) / "end"
    retry = {"limit": 2, "backoffSeconds": 0}
    async with hub_process(tmp_path, folders=FOLDERS) as hub:
        await submit(hub, job("pair", [python(), "-c", JAX, str(end)], pods=2, retry=retry))
        await hub.until("pair", "Running")
        first = [await hub.line_of("pair", f"pair-{rank}", "worker") for rank in (0, 1)]
        hub.kill_worker("pair", "pair-1", first[1].split()[-1])

        def is_second(one: Workload) -> bool:
            claim = one.status.claim
            return claim is not None and claim.attempt == 2 and one.status.phase == "Running"

        await hub.until("pair", is_second, "the second attempt")
        second = [await hub.line_of("pair", f"pair-{rank}", "worker") for rank in (0, 1)]
        assert not {line.split()[-1] for line in first} & {line.split()[-1] for line in second}
        end.touch()
        ended = await hub.until("pair", "Succeeded")
        assert attempts(ended) == [(1, "Killed", 137), (2, "Succeeded", None)]
        assert "result 21.0" in await hub.log("pair", "pair-1")
