"""Where Secrets of tenants may stand: in works of, and in, clusters that were chosen for them.

Every Secret has bytes of its own, which name the workload that it belongs to. They are looked for
in everything that is written to the store, and in everything that reaches a driver. A cluster may
get those of a workload that is, or was, claimed there, while its queue, its policy and the
acceptance of the cluster allow that. What a cluster has got once it may keep, and bring back.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairway.api.meta import GROUP, JsonObject
from fairway.api.names import work_name
from fairway.api.work import Work
from fairway.sim.fleet import FLAVOR_OF, NAMESPACE, Wish
from fairway.sim.log import Log
from fairway.sim.time import Time
from fairway.store.embedded.history import Change

_PLAIN = b"keys of: "  # whole groups of three bytes, so that its code is the same before any bytes
_MARK = b64encode(_PLAIN)
_CODED = re.compile(_MARK + rb"[A-Za-z0-9+/=]*")
# How stale a leader's view of what is allowed may be while it still leads.
_STALE_SECONDS = 20.0
_EVERYWHERE = frozenset(FLAVOR_OF)

Allowed = frozenset[str]  # clusters
Rule = tuple[str, str]  # kind and name of an object that says which clusters are allowed


def secret(owner: str) -> JsonObject:
    """The Secret of a workload; `owner` is its name, and how often that was submitted."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(owner), "namespace": NAMESPACE},
        "data": {"token": b64encode(_PLAIN + owner.encode()).decode()},
    }


def secret_name(owner: str) -> str:
    return f"keys-{owner}"


def _owners(raw: bytes) -> set[str]:
    """The owners of all Secrets whose bytes stand there."""
    if _MARK not in raw:
        return set()
    return {b64decode(code).removeprefix(_PLAIN).decode() for code in _CODED.findall(raw)}


class Leaks:
    """Follows every Secret."""

    def __init__(self, time: Time, log: Log, wishes: Mapping[str, Wish]) -> None:
        self._time = time
        self._log = log
        self._wishes = wishes
        self._chosen: dict[str, set[str]] = {}  # clusters, by owner
        self._holders: dict[str, set[str]] = {}
        self._allowed: dict[Rule, deque[tuple[float, Allowed]]] = {}

    # What is allowed.

    def claimed(self, name: str, clusters: Iterable[str]) -> None:
        """The hub has decided where a workload is to run."""
        wish = self._wishes.get(name)
        if wish is not None and wish.secret:
            self._chosen.setdefault(wish.secret, set()).update(clusters)

    def copy(self) -> Mapping[Rule, Allowed]:
        return {rule: history[-1][1] for rule, history in self._allowed.items()}

    def restore(self, known: Mapping[Rule, Allowed]) -> None:
        """The hub was set back: its rules are those of then, but clusters keep what they have."""
        for rule, clusters in known.items():
            self._note(rule, clusters)

    def _note(self, rule: Rule, clusters: Allowed) -> None:
        self._allowed.setdefault(rule, deque()).append((self._time.now(), clusters))

    def _is_allowed(self, rule: Rule, cluster: str) -> bool:
        """Whether a rule allows a cluster, or did recently."""
        history = self._allowed.get(rule)
        since = self._time.now() - _STALE_SECONDS
        while history and len(history) > 1 and history[1][0] < since:
            history.popleft()
        return not history or any(cluster in clusters for _, clusters in history)

    def _refusing(self, wish: Wish, cluster: str) -> Iterator[str]:
        spec = wish.body["spec"]
        rules = (
            ("queues", spec["queue"]),
            ("placementpolicies", spec.get("policy", "")),
            ("clusters", cluster),
        )
        for rule in rules:
            if not self._is_allowed(rule, cluster):
                yield f"{rule[0]}/{rule[1]}"

    # What happens.

    def follow(self, change: Change) -> None:
        """Checks a write that is on disk."""
        if change.is_removed:
            return
        group, plural = change.kind
        namespace, name = change.record.name
        if group == GROUP and plural in ("queues", "placementpolicies", "clusters"):
            self._note((plural, name), _clusters_of(plural, name, change.record.body()["spec"]))
        if plural == "secrets":
            return
        for owner in sorted(_owners(change.record.raw)):
            if change.kind == (GROUP, "works"):
                self._stands(owner, namespace.removeprefix("fairway-cluster-"), name)
            else:
                self._log.report(f"the Secret of {owner} stands in {plural} {namespace}/{name}")

    def _stands(self, owner: str, cluster: str, work: str) -> None:
        """The bytes of a Secret stand in a work of a cluster."""
        holders = self._holders.setdefault(owner, set())
        name = owner.rpartition("-")[0]
        where = f"the Secret of {owner} stands in the work {work} of {cluster}"
        if work != work_name(NAMESPACE, name):
            self._log.report(where)
        if cluster in holders:
            return
        wish = self._wishes.get(name)
        refusing = list(self._refusing(wish, cluster)) if wish is not None else []
        if cluster not in self._chosen.get(owner, ()):
            self._log.report(f"{where}, which the hub did not choose for it")
        elif refusing:
            self._log.report(f"{where}, where {' and '.join(refusing)} does not allow it")
        holders.add(cluster)
        self._log.counts["secret"] += 1
        self._log.note("secret", f"{cluster} gets the Secret of {owner}")

    def arrived(self, cluster: str, work: Work) -> None:
        """A work reaches the driver of a cluster."""
        raw = msgspec.json.encode([manifest.object for manifest in work.spec.manifests])
        for owner in sorted(_owners(raw)):
            if cluster not in self._holders.get(owner, ()):
                self._log.report(f"the Secret of {owner} arrives in {cluster}, which never got it")


def _clusters_of(plural: str, name: str, spec: JsonObject) -> Allowed:
    """The clusters that a queue, a policy or a cluster allows."""
    if plural == "clusters":
        return frozenset({name}) if spec.get("accepted", True) else frozenset()
    chosen = spec.get("clusters" if plural == "queues" else "selector")
    return frozenset(chosen["names"]) if chosen is not None else _EVERYWHERE
