"""Kubernetes' functions on addresses, networks and URLs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from fairway.schema.cel.declared import Declared, Opaque, function, method, open_value

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%25[^\]]*)?\]|[^\s\[\]:<>\"\\^`{|}]*)(:[0-9]*)?")
_PREFIX_LENGTH = re.compile(r"(0|[1-9][0-9]{0,2})")
_PATH_SAFE = "/$&+,:;=@"
_PATH_VALID = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*")
_URL_LENGTH_MOST = 1 << 16


def _address(text: str) -> _Address:
    if "%" in text:
        raise ValueError(f"IP address {text!r} with zone value is not allowed")
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def _ip(text: str) -> Opaque:
    return {"ip": str(_address(text))}


def _interface(text: str) -> _Interface:
    address, slash, length = text.partition("/")
    if not slash or not _PREFIX_LENGTH.fullmatch(length):
        raise ValueError(f"network address parse error: {text[:60]!r} is not address/length")
    _address(address)
    return ipaddress.ip_interface(text)


def _cidr(text: str) -> Opaque:
    return {"cidr": str(_interface(text))}


def _accepts(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return accepts


def _about(claim: Callable[[_Address], Any]) -> Callable[[Opaque], Any]:
    return lambda value: claim(ipaddress.ip_address(open_value(value, "ip")))


def _is_link_local_multicast(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_global_unicast(address: _Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


def _network(value: Any) -> _Interface:
    return _interface(value if isinstance(value, str) else open_value(value, "cidr"))


def _contains_ip(value: Opaque, wanted: Any) -> bool:
    address = _address(wanted if isinstance(wanted, str) else open_value(wanted, "ip"))
    return address in _network(value).network


def _contains_cidr(value: Opaque, wanted: Any) -> bool:
    outer, inner = _network(value), _network(wanted)
    return (
        outer.version == inner.version
        and inner.network.prefixlen >= outer.network.prefixlen
        and inner.network.network_address in outer.network
    )


def _as_text(value: Opaque) -> str:
    for kind in ("ip", "cidr"):
        if kind in value:
            return str(value[kind])
    raise ValueError("no such overload")


def parse_url(text: str) -> SplitResult:
    """Parses an absolute URL or an absolute path, as in an HTTP request line."""
    if not text or len(text) > _URL_LENGTH_MOST:
        raise ValueError("URL parse error: empty or too long")
    if _CONTROL.search(text):
        raise ValueError("URL parse error: invalid control character in URL")
    if not (text.startswith("/") or _SCHEME.match(text)):
        raise ValueError(f"URL parse error: invalid URI for request: {text[:60]!r}")
    result = urlsplit(text, allow_fragments=False)
    if _BAD_ESCAPE.search(result.netloc) or _BAD_ESCAPE.search(result.path):
        raise ValueError("URL parse error: invalid URL escape")
    if not _HOST.fullmatch(result.netloc.rpartition("@")[2]):
        raise ValueError(f"URL parse error: invalid host in {text[:60]!r}")
    return result


def _url(text: str) -> Opaque:
    parse_url(text)
    return {"url": text}


def _part(read: Callable[[SplitResult], Any]) -> Callable[[Opaque], Any]:
    return lambda value: read(urlsplit(open_value(value, "url"), allow_fragments=False))


def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _hostname(url: SplitResult) -> str:
    host = _host(url)
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _port(url: SplitResult) -> str:
    return _host(url).rpartition("]")[2].partition(":")[2]


def _escaped_path(url: SplitResult) -> str:
    # A non-hierarchical URL (mailto:someone) has no path.
    if not url.netloc and not url.path.startswith("/"):
        return ""
    if _PATH_VALID.fullmatch(url.path):
        return url.path
    return quote(unquote(url.path), safe=_PATH_SAFE)


def _query(url: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)


FUNCTIONS: tuple[Declared, ...] = (
    function("isIP", ("string",), "bool", _accepts(_ip)),
    function("ip", ("string",), "map", _ip),
    function("ip.isCanonical", ("string",), "bool", lambda text: str(_address(text)) == text),
    method("family", ("map",), "int", _about(lambda item: item.version)),
    method("isUnspecified", ("map",), "bool", _about(lambda item: item.is_unspecified)),
    method("isLoopback", ("map",), "bool", _about(lambda item: item.is_loopback)),
    method("isLinkLocalMulticast", ("map",), "bool", _about(_is_link_local_multicast)),
    method("isLinkLocalUnicast", ("map",), "bool", _about(lambda item: item.is_link_local)),
    method("isGlobalUnicast", ("map",), "bool", _about(_is_global_unicast)),
    function("isCIDR", ("string",), "bool", _accepts(_cidr)),
    function("cidr", ("string",), "map", _cidr),
    method("containsIP", ("map", "dyn"), "bool", _contains_ip),
    method("containsCIDR", ("map", "dyn"), "bool", _contains_cidr),
    method("ip", ("map",), "map", lambda item: {"ip": str(_network(item).ip)}),
    method("masked", ("map",), "map", lambda item: {"cidr": str(_network(item).network)}),
    method("prefixLength", ("map",), "int", lambda item: _network(item).network.prefixlen),
    function("string", ("map",), "string", _as_text),
    function("isURL", ("string",), "bool", _accepts(parse_url)),
    function("url", ("string",), "map", _url),
    method("getScheme", ("map",), "string", _part(lambda url: url.scheme)),
    method("getHost", ("map",), "string", _part(_host)),
    method("getHostname", ("map",), "string", _part(_hostname)),
    method("getPort", ("map",), "string", _part(_port)),
    method("getEscapedPath", ("map",), "string", _part(_escaped_path)),
    method("getQuery", ("map",), "map<string,list<string>>", _part(_query)),
)
