"""What a member makes up: its agent may create works and write reports in its cluster's name.

A member knows the works that its cluster once got, with their proofs. It knows no Secrets but
those that it got with them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.api.errors import ApiError
from fairway.api.meta import API_VERSION, GROUP, JsonObject
from fairway.api.names import ADOPTED, ENDED, PLACEMENT, PROOF, report_name, work_namespace
from fairway.clock import timestamp
from fairway.sim.fleet import FLAVOR_OF, NAMESPACE
from fairway.sim.log import Log
from fairway.sim.participants import ClusterAgent
from fairway.sim.time import Time
from fairway.store.embedded.history import Change
from fairway.store.interface import Patch, Write
from fairway.store.keys import REPORTS, WORKS

FORGED = "sim/forged"  # the label of a forged work, for the checks alone
_REPLAYED = "replayed"  # its value, if the hub once decided what the work says
_FORGER = Write(user="system:serviceaccount:agent", manager="forger")
_ATTEMPT = 10_000  # that no workload reaches
_CHUNK = 7  # of reports: beside those that the agent itself writes
_EVERY_SECONDS = 15.0  # on average
_REPLAYS = 0.7  # of the workloads that are submitted again
_REPLAYS_AFTER_SECONDS = (0.0, 0.0, 1.0, 4.0)


def is_made_up(labels: JsonObject) -> bool:
    """Whether a work says what the hub never decided, and the hub has not written it since."""
    return ADOPTED in labels and labels.get(FORGED, _REPLAYED) != _REPLAYED


def is_forged(attempt: int) -> bool:
    return attempt >= _ATTEMPT


def forged(known: JsonObject, cluster: str, chance: random.Random) -> JsonObject:
    """A work for a member's own cluster, made from one that the hub decided for another."""
    metadata, spec = known["metadata"], known["spec"]
    lies = {"cluster": cluster} if chance.random() < 0.7 else {}  # otherwise room of others
    return _work(
        known,
        cluster,
        chance,
        {
            **spec,
            **lies,
            "attempt": _ATTEMPT + spec["attempt"],
            "manifests": _without_secrets(spec.get("manifests", [])),
        },
        metadata.get("annotations", {}),
    )


def of_the_past(known: JsonObject, cluster: str, chance: random.Random) -> JsonObject:
    """A work of an attempt that a cluster had, without its proof and with another placement."""
    spec, notes = known["spec"], dict(known["metadata"].get("annotations", {}))
    placement = json.loads(notes.get(PLACEMENT, "{}"))
    there = cluster if chance.random() < 0.5 else chance.choice(sorted(FLAVOR_OF))
    placement |= {"cluster": there, "attempt": _ATTEMPT + spec["attempt"]}
    notes[PLACEMENT] = json.dumps(placement)
    notes[PROOF] = "made up"
    if chance.random() < 0.5:
        del notes[PROOF]
    attempt = spec["attempt"] + (_ATTEMPT if chance.random() < 0.3 else 0)
    return _work(known, cluster, chance, {**spec, "attempt": attempt}, notes)


def replayed(known: JsonObject, cluster: str, chance: random.Random) -> JsonObject:
    """A work that a cluster had, as the hub decided it; perhaps without what it was to run."""
    spec, notes = known["spec"], known["metadata"].get("annotations", {})
    lies: JsonObject = {"manifests": []} if chance.random() < 0.5 else {}
    return _work(known, cluster, chance, {**spec, **lies}, notes, kind=_REPLAYED)


def _work(
    known: JsonObject,
    cluster: str,
    chance: random.Random,
    spec: JsonObject,
    notes: JsonObject,
    *,
    kind: str = "true",
) -> JsonObject:
    """A work as an agent writes one that it brings back."""
    has_ended = chance.random() < (0.2 if kind == _REPLAYED else 0.5)
    return {
        **known,
        "metadata": {
            "name": known["metadata"]["name"],
            "namespace": work_namespace(cluster),
            "labels": {ADOPTED: ENDED if has_ended else "true", FORGED: kind},
            "annotations": notes,
        },
        "spec": {**spec, "desired": "Run", "tombstone": False},
        "status": {},
    }


def _without_secrets(manifests: Sequence[JsonObject]) -> list[JsonObject]:
    return [entry for entry in manifests if entry["object"].get("kind") != "Secret"]


class _Spec(msgspec.Struct, rename="camel"):
    attempt: int
    workload: dict[str, str]
    tombstone: bool = False
    manifests: tuple[msgspec.Raw, ...] = ()


class _Metadata(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] = {}


class _Seen(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Submitted(msgspec.Struct):
    metadata: _Metadata


_decode_work = msgspec.json.Decoder(_Seen).decode
_decode_workload = msgspec.json.Decoder(_Submitted).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A work that a cluster once got."""

    cluster: str
    name: str
    uid: str  # of its workload
    body: Callable[[], JsonObject]


class Forger:
    """The member of a cluster, or of several, beside whose agents it writes."""

    def __init__(
        self, agents: Sequence[ClusterAgent], *, time: Time, log: Log, chance: random.Random
    ) -> None:
        self._agents = {agent.cluster: agent for agent in agents}
        self._time = time
        self._log = log
        self._chance = chance
        self._kept: dict[str, dict[tuple[str, str], _Kept]] = {}  # by work; cluster and uid
        self._there: set[tuple[str, str]] = set()  # works on the hub: cluster and name
        # Begins what takes a while; nothing is made up without.
        self.begin: Callable[[Coroutine[Any, Any, None]], None] | None = None

    def follow(self, change: Change) -> None:
        """Keeps the works that clusters get, and sees which workloads are submitted again."""
        namespace, name = change.record.name
        if change.kind == (GROUP, "works"):
            cluster = namespace.removeprefix("fairway-cluster-")
            (self._there.discard if change.is_removed else self._there.add)((cluster, name))
            if not change.is_removed:
                self._keep(cluster, name, change)
        elif change.kind == (GROUP, "workloads") and change.previous is None:
            if change.is_removed or self.begin is None:
                return
            uid = _decode_workload(change.record.raw).metadata.uid
            kept = self._kept.get(f"{NAMESPACE}.{name}", {})
            for work in kept.values():
                if work.uid != uid and self._chance.random() < _REPLAYS:
                    self.begin(self._replay(work, self._chance.choice(_REPLAYS_AFTER_SECONDS)))

    def _keep(self, cluster: str, name: str, change: Change) -> None:
        work = _decode_work(change.record.raw)
        if ADOPTED in work.metadata.labels or work.spec.tombstone or not work.spec.manifests:
            return
        uid = work.spec.workload.get("uid", "")
        kept = _Kept(cluster=cluster, name=name, uid=uid, body=change.record.body)
        self._kept.setdefault(name, {})[cluster, uid] = kept

    async def run(self) -> None:
        """Makes things up until cancelled."""
        while True:
            await self._time.sleep(self._chance.expovariate(1 / _EVERY_SECONDS))
            await self._chance.choice((self.forge_report, self.forge_past, self.forge_work))()

    async def forge_work(self) -> None:
        """A work with all that its member could have seen of another cluster's."""
        agent = self._chance.choice(list(self._agents.values()))
        if agent.face is None or agent.face.is_dead:
            return
        try:
            works = (await agent.face.list(WORKS)).items
        except (ApiError, OSError):
            return
        if works:
            body = forged(self._chance.choice(works).object(), agent.cluster, self._chance)
            await self._create(agent.cluster, body, "a work is forged")

    async def forge_past(self) -> None:
        """A work of an attempt that a cluster had, to get a later one."""
        kept = [
            work
            for name, works in self._kept.items()
            for work in works.values()
            if (work.cluster, name) not in self._there
        ]
        if kept:
            work = self._chance.choice(kept[-40:])
            body = of_the_past(work.body(), work.cluster, self._chance)
            await self._create(work.cluster, body, "a past attempt is forged")

    async def _replay(self, work: _Kept, after_seconds: float) -> None:
        """A work of a deleted workload, for another one of the same name."""
        if after_seconds:
            await self._time.sleep(after_seconds)
        memory = self._agents[work.cluster].memory
        if memory is None or work.name in memory.works:
            return  # its agent brings it back itself
        body = replayed(work.body(), work.cluster, self._chance)
        await self._create(work.cluster, body, "a work is replayed")

    async def _create(self, cluster: str, body: JsonObject, kind: str) -> None:
        face = self._agents[cluster].face
        if face is None or face.is_dead:
            return
        metadata = body["metadata"]
        try:
            await face.create(WORKS, body, namespace=metadata["namespace"], write=_FORGER)
        except (ApiError, OSError):
            return  # a work of that name is there
        self._log.fault(kind, f"{cluster}: {metadata['name']} {body['spec']['attempt']}")

    async def forge_report(self) -> None:
        """A report in the name of a cluster, on what another one runs."""
        chance = self._chance
        cluster, other = chance.sample(sorted(self._agents), 2)
        face = self._agents[cluster].face
        if face is None or face.is_dead:
            return
        is_difference = chance.random() < 0.5
        name = report_name(cluster, _CHUNK, is_difference=is_difference)
        try:
            known = (await face.get(REPORTS, report_name(other, 0))).object()["spec"]
            works = (await face.list(WORKS)).items
            states = [self._state(stored.object()["spec"]) for stored in works]
            spec = {
                **known,
                "states": states,
                "sequence": known["sequence"] + 10,
                "seenAt": timestamp(self._agents[cluster].clock.now()),
            }
            if is_difference:
                spec["sinceSequence"] = known["sequence"]
            else:
                spec["agentEpoch"] = known["agentEpoch"] + chance.choice((0, 1))
            body = {"apiVersion": API_VERSION, "kind": "ClusterReport", "metadata": {"name": name}}
            patch = Patch(type="apply", body={**body, "spec": spec}, force=True)
            await face.patch(REPORTS, name, patch, write=_FORGER)
        except (ApiError, OSError):
            return
        self._log.fault("a report is forged", f"{cluster}: of {other}")

    def _state(self, spec: JsonObject) -> JsonObject:
        reference = spec["workload"]
        return {
            "work": f"{reference['namespace']}.{reference['name']}",
            "attempt": spec["attempt"],
            "phase": self._chance.choice(("Gone", "Succeeded", "Failed")),
            "finishedAt": timestamp(self._time.now()),
        }
