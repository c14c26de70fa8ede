"""Addresses of clients, as limits count them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address

_NETWORK_BITS = 64  # that one owner has at least, in IPv6


@lru_cache(maxsize=4_096)
def neighbourhood(address: str) -> str:
    """What counts as one address: an IPv4 address, or a /64 network of IPv6."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    network = int(parsed) >> _NETWORK_BITS << _NETWORK_BITS
    return f"{IPv6Address(network)}/{_NETWORK_BITS}"
