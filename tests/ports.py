"""Ports that stay a test's own from the moment they are chosen.

A port that was only found to be free may be somebody else's by the time a server binds it, or
while a server that was killed is started again: any connection that goes out takes a free one. Here
it stays bound by a socket that never listens. Servers bind it all the same, as those do that allow
an address to be used again, and nobody is given it by chance.
"""

from __future__ import annotations

import socket


def own_ports(count: int) -> list[int]:
    """Ports of this machine that are kept for this process until it ends."""
    found = []
    for _ in range(count):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        found.append(int(held.getsockname()[1]))
        held.detach()  # it stays open without anybody who would close it
    return found
