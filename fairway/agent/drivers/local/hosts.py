"""Host names when all pods are on one machine.

Pods find each other by name: `train-0.train:29500`, `MASTER_ADDR` and `MASTER_PORT`. Here every pod
is on 127.0.0.1, so names of pods and services of the same work are rewritten to it, in commands and
in the environment. A name counts as a host if it has its domain or a port, follows `//`, or belongs
to a variable or flag for hosts (ADDR, HOST, ENDPOINT and the like); a bare name elsewhere is left
alone, since it may name a file.

Ports would conflict between works, and between pods of one work. A port that its own pod reads from
its environment or command (as `OWN-NAME:PORT`, or as a pair such as MASTER_ADDR and MASTER_PORT) is
replaced by a free port, the same wherever it is named. A port that is fixed in a program stays.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairway.api.meta import JsonObject
from fairway.kinds.interface import Pod
from fairway.kinds.plain import child, maps_at, name_of, text

LOOPBACK = "127.0.0.1"
# Below the kernel's ephemeral ports, so that no outgoing connection takes one meanwhile.
PORTS = range(20000, 32768)

_HOST_WORDS = re.compile(
    r"ADDR|HOST|ENDPOINT|MASTER|COORDINATOR|LEADER|SERVER|URL|URI|NODES|PEERS|RDZV", re.IGNORECASE
)
_OWN = ("localhost", LOOPBACK, "0.0.0.0")  # noqa: S104 - compared with, not listened on
_ADDRESS_ENDS = ("ADDR", "ADDRESS", "HOST", "IP", "SERVICE_HOST")
_LAST_WORD = re.compile(r"([\w-]+)[=\s]+[\"']?[\w.:,-]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A host and a port that a pod names."""

    pod: str
    port: int


class Hosts:
    """The hosts of one work."""

    def __init__(self, pods: Sequence[Pod], services: Sequence[JsonObject], namespace: str) -> None:
        self._pods = pods
        self._pod_by_host = _pod_by_host(pods, services)
        self._targets = _targets(services)
        domains = {text(pod.spec, "subdomain") for pod in pods}
        domains |= {name_of(service) for service in services}
        self._pattern = _pattern(self._pod_by_host, domains - {""}, namespace)

    def own_ports(self) -> list[Mention]:
        """Ports that a pod reads for itself, hence can be replaced; in a fixed order."""
        result = {
            mention: None
            for pod in self._pods
            for container in (
                *maps_at(pod.spec, "initContainers"),
                *maps_at(pod.spec, "containers"),
            )
            for mention in self._mentions(pod, container)
            if mention.pod == pod.name
        }
        return list(result)

    def rewritten_environment(
        self, pod: str, variables: Sequence[JsonObject], ports: Mapping[Mention, int]
    ) -> list[JsonObject]:
        """Variables with hosts and ports rewritten; those with `valueFrom` are left alone."""
        pairs = self._pairs(pod, variables)
        made = []
        for variable in variables:
            value, name = variable.get("value"), text(variable, "name")
            if isinstance(value, str):
                mention = pairs.get(name)
                if mention is not None:
                    value = str(ports.get(mention, mention.port))
                else:
                    value = self._rewritten(value, ports, is_host=_names_host(name))
                made.append({**variable, "value": value})
            else:
                made.append(variable)
        return made

    def rewritten_words(self, words: Sequence[str], ports: Mapping[Mention, int]) -> list[str]:
        """A command with hosts and ports rewritten."""
        made, before = [], ""
        for word in words:
            is_host = before.startswith("-") and "=" not in before and _names_host(before)
            made.append(self._rewritten(word, ports, is_host=is_host))
            before = word
        return made

    def rewritten_text(self, value: str, ports: Mapping[Mention, int]) -> str:
        """A file, such as a list of hosts, line by line."""
        return self._rewritten(value, ports, is_host=False)

    def _rewritten(self, value: str, ports: Mapping[Mention, int], *, is_host: bool) -> str:
        if self._pattern is None or not value:
            return value

        def here(match: re.Match[str]) -> str:
            if not _is_host(match, is_host=is_host):
                return match[0]
            mention = self._mention(match)
            if mention is None:
                return LOOPBACK
            return f"{LOOPBACK}:{ports.get(mention, mention.port)}"

        return self._pattern.sub(here, value)

    def _mention(self, match: re.Match[str]) -> Mention | None:
        if not match["port"]:
            return None
        name, port = match["name"], int(match["port"])
        target = self._targets.get((name, port), port)
        return Mention(pod=self._pod_by_host[name], port=target)

    def _mentions(self, pod: Pod, container: JsonObject) -> Iterator[Mention]:
        variables = maps_at(container, "env")
        yield from self._pairs(pod.name, variables).values()
        values = [
            variable["value"] for variable in variables if isinstance(variable.get("value"), str)
        ]
        for field in ("command", "args"):
            words = container.get(field)
            values += [str(word) for word in words] if isinstance(words, list) else []
        for value in values if self._pattern is not None else ():
            assert self._pattern is not None
            for match in self._pattern.finditer(value):
                mention = self._mention(match)
                if mention is not None:
                    yield mention

    def _pairs(self, pod: str, variables: Sequence[JsonObject]) -> dict[str, Mention]:
        """The variables that hold the port of a host in another variable, with host and port."""
        values = {text(variable, "name"): text(variable, "value") for variable in variables}
        pairs = {}
        for name, value in values.items():
            if not name.endswith("_PORT") or not value.isdecimal():
                continue
            stem = name.removesuffix("PORT")
            address = next(
                (values[stem + end] for end in _ADDRESS_ENDS if stem + end in values), ""
            )
            match = self._pattern.fullmatch(address) if self._pattern and address else None
            if address in _OWN:
                pairs[name] = Mention(pod=pod, port=int(value))
            elif match is not None and not match["port"]:
                pairs[name] = Mention(pod=self._pod_by_host[match["name"]], port=int(value))
        return pairs


def free_ports(count: int, taken: Iterable[int], within: range = PORTS) -> list[int]:
    """Ports that are free and not given to another work; fewer if there are no more.

    Each process starts at another port, since other processes may allocate ports here as well.
    """
    refused = set(taken)
    result: list[int] = []
    first = os.getpid() * 997 % len(within)
    for port in (*within[first:], *within[:first]):
        if len(result) == count:
            break
        if port not in refused and _is_free(port):
            result.append(port)
    return result


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _names_host(name: str) -> bool:
    return bool(_HOST_WORDS.search(name)) and not name.upper().endswith("NAME")


def _is_host(match: re.Match[str], *, is_host: bool) -> bool:
    before, after = match.string[: match.start()], match.string[match.end() :]
    if before.endswith("//") or match["port"]:
        return True
    if after.startswith("/"):
        return False  # a path
    if match["domain"] or is_host:
        return True
    flag = _LAST_WORD.search(before)
    return flag is not None and _names_host(flag[1])


def _pod_by_host(pods: Sequence[Pod], services: Sequence[JsonObject]) -> dict[str, str]:
    result = {}
    for service in services:
        selector = child(service, "spec", "selector")
        first = next((pod.name for pod in pods if _selects(selector, pod)), "")
        if first:
            result[name_of(service)] = first
    for pod in pods:
        result[pod.name] = pod.name
        result[text(pod.spec, "hostname") or pod.name] = pod.name
    return result


def _selects(selector: JsonObject, pod: Pod) -> bool:
    return bool(selector) and all(pod.labels.get(key) == value for key, value in selector.items())


def _targets(services: Sequence[JsonObject]) -> dict[tuple[str, int], int]:
    """The target port of the pods for each port of a service."""
    return {
        (name_of(service), port["port"]): port["targetPort"]
        for service in services
        for port in maps_at(service, "spec", "ports")
        if isinstance(port.get("port"), int) and isinstance(port.get("targetPort"), int)
    }


def _pattern(
    names: Iterable[str], domains: Iterable[str], namespace: str
) -> re.Pattern[str] | None:
    # The longest first, so that train-10 does not match as train-1.
    hosts = "|".join(re.escape(name) for name in sorted(names, key=lambda n: (-len(n), n)))
    if not hosts:
        return None
    inner = "|".join(re.escape(domain) for domain in sorted(domains, key=lambda n: (-len(n), n)))
    first = rf"(?:\.(?:{inner}))?" if inner else ""
    return re.compile(
        rf"(?:(?<=//)|(?<![\w./-]))(?P<name>{hosts})"
        rf"(?P<domain>{first}(?:\.{re.escape(namespace)})?(?:\.svc(?:\.[a-z0-9.-]+)?)?)"
        r"(?::(?P<port>\d{1,5}))?(?![\w-])(?!\.\w)"
    )
