"""A gang that meets by plain environment variables, with nothing but the standard library.

    python rendezvous.py [wait]

Rank 0 listens at MASTER_ADDR:MASTER_PORT and the other ranks call it until it answers, as the
launchers of torch.distributed and jax.distributed do. The program runs on any cluster as it is: it
knows a host name and a port, and nothing of where it is. Those libraries themselves cost seconds of
processor time for each worker and a gigabyte on disk; they are met outside the default tests.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any, TextIO

CALL_SECONDS_MAX = 60.0
CALL_AGAIN_SECONDS = 0.02


class Gang:
    """One worker: rank 0 has a link to each other rank, in their order; the others one to it."""

    def __init__(self) -> None:
        self.rank = int(os.environ["RANK"])
        self.size = int(os.environ["WORLD_SIZE"])
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        links = _answer(address, self.size) if self.rank == 0 else [_call(address, self.rank)]
        self._links = [link.makefile("rw", encoding="utf-8") for link in links]

    def gather(self, value: float) -> list[float]:
        """The values of all ranks in their order; everybody waits for everybody."""
        if self.rank:
            (master,) = self._links
            _tell(master, value)
            return _hear(master)
        values = [value, *(_hear(link) for link in self._links)]
        for link in self._links:
            _tell(link, values)
        return values


def _answer(address: tuple[str, int], size: int) -> list[socket.socket]:
    """The links to ranks 1, 2, ..., once each of them has called exactly once."""
    calls: dict[int, socket.socket] = {}
    with socket.create_server(address) as door:
        while len(calls) < size - 1:
            link, _ = door.accept()
            calls[int.from_bytes(link.recv(4, socket.MSG_WAITALL))] = link
    if sorted(calls) != list(range(1, size)):
        raise ConnectionError(f"expected ranks 1 to {size - 1}, and {sorted(calls)} called")
    return [calls[rank] for rank in sorted(calls)]


def _call(address: tuple[str, int], rank: int) -> socket.socket:
    until = time.monotonic() + CALL_SECONDS_MAX
    while True:
        try:
            link = socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
        else:
            # The port is one that the system hands out: a caller may be given it and meet itself.
            if link.getsockname() != link.getpeername():
                link.sendall(rank.to_bytes(4))
                return link
            link.close()
        time.sleep(CALL_AGAIN_SECONDS)


def _tell(link: TextIO, content: Any) -> None:
    link.write(json.dumps(content) + "\n")
    link.flush()


def _hear(link: TextIO) -> Any:
    line = link.readline()
    if not line:
        raise ConnectionError("a worker is gone")
    return json.loads(line)


def main() -> None:
    gang = Gang()
    total = sum(gang.gather(gang.rank + 1.0))
    print(f"worker {gang.rank} of {gang.size}: {total}", os.getpid(), flush=True)
    if len(sys.argv) > 1:
        time.sleep(3600)


if __name__ == "__main__":
    main()
