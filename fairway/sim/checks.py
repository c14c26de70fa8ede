"""Invariants that must hold at every moment, checked at each write that is on disk.

These checks know the simulated fleet and nothing about how decisions are made: they add up what
claims hold, and compare it with what queues and clusters have.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from fairway.api.meta import GROUP
from fairway.api.names import ADOPTED
from fairway.controllers.terms import NAME as TERM
from fairway.kinds import ranges
from fairway.sim import fleet
from fairway.sim.fleet import Wish
from fairway.sim.forgery import FORGED, is_forged
from fairway.sim.log import Log
from fairway.sim.time import Time
from fairway.sim.truth import Truth
from fairway.store.embedded.history import Change

_WORKLOADS = (GROUP, "workloads")
_WORKS = (GROUP, "works")
_QUEUES = (GROUP, "queues")
_LEASES = ("coordination.k8s.io", "leases")

# How stale a leader's view of quotas may be while it still leads.
_STALE_SECONDS = 45.0

# The table of decision 9. A stop with nothing to wait for ends in the same write.
_NEXT: Mapping[str, tuple[str, ...]] = {
    "": ("Waiting", "Claimed", "Held", "Cancelled"),
    "Waiting": ("Claimed", "Held", "Cancelled"),
    "Held": ("Waiting", "Cancelled", "Claimed"),
    "Claimed": ("Running", "Succeeded", "Failed", "Stopping", "Waiting", "Held", "Cancelled"),
    "Running": ("Succeeded", "Failed", "Stopping", "Waiting", "Held", "Cancelled"),
    "Stopping": ("Waiting", "Held", "Cancelled", "Failed"),
    "Succeeded": (),
    "Failed": (),
    "Cancelled": (),
}


class _Part(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    pass


class _Pods(_Part, frozen=True, kw_only=True):
    count: int = 0
    finished: int = 0
    requests: dict[str, str | int] = {}
    flavors: dict[str, str] = {}


class _Placement(_Part, frozen=True, kw_only=True):
    cluster: str
    tasks: str = ""
    attempt: int = 0
    pod_sets: tuple[_Pods, ...] = ()
    gives_way_to: str = ""


class _Reference(_Part, frozen=True, kw_only=True):
    name: str


class _Wait(_Part, frozen=True, kw_only=True):
    type: str
    workload: _Reference | None = None


class _Claim(_Part, frozen=True, kw_only=True):
    attempt: int
    term: int
    queue: str = ""
    placements: tuple[_Placement, ...] = ()
    waits_for: tuple[_Wait, ...] = ()


class _Past(_Part, frozen=True, kw_only=True):
    preempted_by: _Reference | None = None


class _Status(_Part, frozen=True, kw_only=True):
    phase: str = ""
    queue: str = ""
    claim: _Claim | None = None
    releasing: tuple[_Placement, ...] = ()
    history: tuple[_Past, ...] = ()


class _Metadata(_Part, frozen=True, kw_only=True):
    name: str
    uid: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class CheckedWorkload(_Part, frozen=True, kw_only=True):
    """The checked fields of a workload."""

    metadata: _Metadata
    status: _Status = _Status()


_decode = msgspec.json.Decoder(CheckedWorkload).decode

Usage = Counter[tuple[str, str, str]]  # (queue, flavor, cluster) -> devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the writes until some time add up to."""

    term: int
    attempts: dict[str, int]
    claimed: dict[str, tuple[Usage, frozenset[str]]]
    ran: dict[str, Usage]
    releasing: dict[str, Usage]
    nominal: dict[str, dict[str, int]]
    brought_back: frozenset[str]  # by agents; their workloads may not have taken this over yet
    seen: dict[str, CheckedWorkload]


class Checks:
    """Follows every write."""

    def __init__(self, time: Time, log: Log, wishes: Mapping[str, Wish], truth: Truth) -> None:
        self._time = time
        self._log = log
        self._wishes = wishes
        self._truth = truth
        self._term = 0
        self._attempts: dict[str, int] = {}  # by uid
        self._claimed: dict[str, tuple[Usage, frozenset[str]]] = {}  # with victims it waits for
        self._ran: dict[str, Usage] = {}  # what may have run and is not known to be gone
        self._releasing: dict[str, Usage] = {}
        self._late: set[str] = set()  # claimed by a former leader that was paused during its write
        self._nominal: deque[tuple[float, dict[str, dict[str, int]]]] = deque()
        self._brought_at: dict[str, float] = {}  # when an agent last brought a work of it back
        self._highest_term = 0  # that any agent may know
        self.seen: dict[str, CheckedWorkload] = {}
        truth.is_claimed = self._is_claimed

    def _is_claimed(self, name: str, cluster: str) -> bool:
        workload = self.seen.get(name)
        claim = workload.status.claim if workload is not None else None
        return claim is not None and any(
            placement.cluster == cluster for placement in claim.placements
        )

    def follow(self, change: Change) -> None:
        """Checks a write that is on disk."""
        plural = change.kind[1]
        name = change.record.name[1]
        text = f"{plural} {name} v{change.version}{' removed' if change.is_removed else ''}"
        if change.kind != _LEASES or self._is_new_term(change, name):
            self._log.step("write", text, change.record.raw)
        else:
            self._log.note("renewal", text, change.record.raw)
        if change.kind == _WORKLOADS:
            self._workload(change, name)
        elif change.kind == _WORKS and change.is_removed:
            self._work_removed(change)
        elif change.kind == _WORKS:
            self._work_written(change)
        elif change.kind == _LEASES and name == TERM:
            self._term_advanced(change)
        elif change.kind == _QUEUES:
            self._queue(change, name)

    # A hub that is set back to a backup.

    def copy(self) -> Known:
        return Known(
            term=self._term,
            attempts=dict(self._attempts),
            claimed=dict(self._claimed),
            ran=dict(self._ran),
            releasing=dict(self._releasing),
            nominal=self._nominal[-1][1],
            brought_back=frozenset(self._brought_at),
            seen=dict(self.seen),
        )

    def restore(self, known: Known) -> None:
        """The hub knows what it knew then; its agents know of later terms and attempts."""
        self._highest_term = max(self._highest_term, self._term)
        self._term = known.term
        self._attempts = dict(known.attempts)
        self._claimed = dict(known.claimed)
        self._ran = dict(known.ran)
        self._releasing = dict(known.releasing)
        self._late.clear()
        self._brought_at = dict.fromkeys(sorted(known.brought_back), self._time.now())
        self._nominal = deque([(self._time.now(), known.nominal)])
        self.seen = dict(known.seen)

    def _work_written(self, change: Change) -> None:
        body = change.record.body()
        metadata, labels = body["metadata"], body["metadata"].get("labels", {})
        name = metadata["name"].partition(".")[2]
        if FORGED in labels and ADOPTED in labels:
            return
        if ADOPTED in labels:
            self._brought_at[name] = self._time.now()
        elif not body["spec"].get("tombstone") and is_forged(body["spec"]["attempt"]):
            self._log.report(f"{name} is sent as the attempt that a member made up")

    def _is_brought_back(self, name: str) -> bool:
        """Whether a claim may be one that an agent brought back to a hub that had lost it."""
        return self._time.now() - self._brought_at.get(name, float("-inf")) < _STALE_SECONDS

    # Workloads.

    def _workload(self, change: Change, name: str) -> None:
        after = _decode(change.record.raw)
        before = _decode(change.previous.raw) if change.previous is not None else None
        if change.is_removed:
            self.seen.pop(name, None)
            for known in (self._claimed, self._releasing, self._ran):
                known.pop(name, None)
            self._late.discard(name)
            self._remove(after, is_guarded=before is not None and bool(before.metadata.finalizers))
            return
        self.seen[name] = after
        old = before.status if before is not None else _Status()
        if after.status == old:
            return
        self._phase(name, old, after.status)
        self._claim(after, old)
        self._log.note(
            "status",
            f"{name} {after.status.phase} claim={_describe(after.status)} "
            f"releasing={[placement.cluster for placement in after.status.releasing]}"
            f"{f' preempted by {by}' if (by := _preemptor(old, after.status)) else ''}",
        )
        self._charge(name, after.status)

    def _phase(self, name: str, old: _Status, new: _Status) -> None:
        is_overtaken = new.phase == "Claimed" and self._is_brought_back(name)
        if old.phase != new.phase and new.phase not in _NEXT[old.phase] and not is_overtaken:
            self._log.report(f"{name} went from {old.phase or 'nothing'} to {new.phase}")
        holds = new.phase in ("Claimed", "Running")
        if holds != (new.claim is not None):
            self._log.report(f"{name} is {new.phase} with{'' if new.claim else 'out'} a claim")

    def _claim(self, workload: CheckedWorkload, old: _Status) -> None:
        claim, name = workload.status.claim, workload.metadata.name
        if claim is None:
            return
        if claim.term > max(self._term, self._highest_term):
            self._log.report(f"{name} is claimed in term {claim.term}, which is yet to come")
        if is_forged(claim.attempt) or any(is_forged(each.attempt) for each in claim.placements):
            self._log.report(f"{name} is claimed where a member wants it")
        known = self._attempts.get(workload.metadata.uid, 0)
        is_new = old.claim is None
        if claim.attempt < known or (is_new and claim.attempt == known):
            self._log.report(f"{name} is claimed as attempt {claim.attempt} after {known}")
        self._attempts[workload.metadata.uid] = max(known, claim.attempt)
        if is_new and old.releasing and not self._is_brought_back(name):
            self._log.report(f"{name} is claimed while its last attempt still ends")
        if not self._is_brought_back(name):
            self._wholeness(name, claim)

    def _wholeness(self, name: str, claim: _Claim) -> None:
        """Checks that a claim is for all of a gang, in one place, or has each task once.

        A claim that agents brought back has what they have. If the hub was set back and could not
        hear of an attempt, it may have given the same number to another: then it has both, and what
        really runs twice is for `truth` to see.
        """
        wish = self._wishes.get(name)
        if wish is None:
            return
        count = sum(pods.count for placement in claim.placements for pods in placement.pod_sets)
        if wish.mode == "Gang" and (count != wish.pods or len(claim.placements) != 1):
            self._log.report(f"{name} is a gang of {wish.pods} and has {_told_claim(claim)}")
        if wish.mode == "Independent":
            tasks = [
                n
                for placement in claim.placements
                for n in ranges.numbers(ranges.parse(placement.tasks))
            ]
            if len(tasks) != len(set(tasks)):
                self._log.report(f"{name} has a task in two clusters: {_told_claim(claim)}")

    def _remove(self, workload: CheckedWorkload, *, is_guarded: bool) -> None:
        name, status = workload.metadata.name, workload.status
        wish = self._wishes.get(name)
        is_asked = wish is None or wish.is_deleted or wish.uid not in ("", workload.metadata.uid)
        if not is_asked:
            self._log.report(f"{name} is gone, and nobody had asked for that")
        if status.claim is not None:
            self._log.report(f"{name} is gone with its claim")
        self._truth.workload_removed(name, workload.metadata.uid, is_guarded=is_guarded)

    def _work_removed(self, change: Change) -> None:
        namespace, name = change.record.name
        if FORGED in change.record.body()["metadata"].get("labels", {}):
            return
        attempt = int(change.record.body()["spec"]["attempt"])
        self._truth.work_removed(namespace.removeprefix("fairway-cluster-"), name, attempt)

    # Terms.

    def _is_new_term(self, change: Change, name: str) -> bool:
        """Whether a write begins a new term, rather than renews one."""
        return name == TERM and _term(change) > self._term

    def _term_advanced(self, change: Change) -> None:
        term = _term(change)
        if term < self._term:
            self._log.report(f"the term went back from {self._term} to {term}")
        self._term = max(self._term, term)

    # Quota and capacity.

    def _queue(self, change: Change, name: str) -> None:
        if name not in fleet.QUEUES:
            return
        flavors = change.record.body()["spec"]["resourceGroups"][0]["flavors"]
        now = dict(self._nominal[-1][1]) if self._nominal else {}
        now[name] = {flavor["name"]: int(flavor["quotas"][0]["nominal"]) for flavor in flavors}
        self._nominal.append((self._time.now(), now))

    def _most(self, queue: str | None, flavor: str) -> int:
        """The most that a queue, or all queues together, owned recently."""
        since = self._time.now() - _STALE_SECONDS
        while len(self._nominal) > 1 and self._nominal[1][0] < since:
            self._nominal.popleft()
        totals = [
            sum(of.get(flavor, 0) for name, of in value.items() if queue in (None, name))
            for _, value in self._nominal
        ]
        return max(totals, default=0)

    def _charge(self, name: str, status: _Status) -> None:
        before, waited = self._claimed.pop(name, (Counter(), frozenset()))
        leaving, claim = self._releasing.get(name, Counter()), status.claim
        if before and not self._is_waiting(waited):
            self._ran[name] = before + leaving
        elif not before and not leaving:
            self._ran[name] = Counter()  # another attempt
        ran = self._ran[name]
        usage = _begin(claim.queue or status.queue, claim, status.releasing) if claim else Counter()
        leaving = _usage(status.queue, status.releasing)
        self._ran[name] = ran & (usage + leaving)  # the rest has ended
        # Usage added while it waited for others never ran, so it need not end.
        self._releasing[name] = leaving & (ran - usage)
        if claim is None:
            self._late.discard(name)
            return
        victims = frozenset(
            wait.workload.name for wait in claim.waits_for if wait.workload is not None
        )
        self._claimed[name] = (usage, victims)
        grown = {place for place, many in usage.items() if many > before[place]}
        if grown and claim.term < self._term:
            self._late.add(name)
        elif grown:
            self._late.discard(name)
            if not self._is_waiting(victims) and not self._is_brought_back(name):
                self._check_totals(name, grown)

    def _is_waiting(self, victims: frozenset[str]) -> bool:
        return any(self._releasing.get(victim) for victim in victims)

    def _check_totals(self, name: str, grown: set[tuple[str, str, str]]) -> None:
        """Checks the total usage of all that may run now; claims that wait for victims do not.

        A late write by the leader of an earlier term is excluded: the hub could not know it. So are
        pods that an agent without its disk brought back: nobody knows their flavor.
        """
        grown = {place for place in grown if place[1]}
        total: Usage = Counter()
        for claimed, (usage, victims) in self._claimed.items():
            if claimed in self._late:
                continue
            total.update(usage & self._ran[claimed] if self._is_waiting(victims) else usage)
        for usage in self._releasing.values():
            total.update(usage)
        for flavor in sorted({place[1] for place in grown}):
            used = sum(many for place, many in total.items() if place[1] == flavor)
            if used > self._most(None, flavor):
                self._log.report(
                    f"{name}: all hold {used} of {flavor}, and own {self._most(None, flavor)}"
                )
        for queue, flavor in sorted({place[:2] for place in grown}):
            used = sum(many for place, many in total.items() if place[:2] == (queue, flavor))
            most = self._most(queue, flavor) + fleet.BORROWING
            if used > most:
                self._log.report(f"{name}: {queue} holds {used} of {flavor}, and may have {most}")


def _term(change: Change) -> int:
    return int(change.record.body()["spec"].get("leaseTransitions") or 0)


def _usage(queue: str, placements: tuple[_Placement, ...]) -> Usage:
    usage: Usage = Counter()
    for placement in placements:
        for pods in placement.pod_sets:
            many = int(pods.requests.get(fleet.GPU, 0)) * (pods.count - pods.finished)
            usage[queue, pods.flavors.get(fleet.GPU, ""), placement.cluster] += many
    return usage


def _begin(queue: str, claim: _Claim, releasing: tuple[_Placement, ...]) -> Usage:
    """The quota usage of a claim, without replicas that start once others of it are gone."""
    usage = _usage(queue, claim.placements)
    for placement in releasing:
        many = sum(_usage(queue, (placement,)).values()) if placement.gives_way_to else 0
        for place in [place for place in usage if place[2] == placement.gives_way_to and many]:
            usage[place] -= many
    return usage


def _preemptor(old: _Status, new: _Status) -> str:
    """The workload that preempted this claim with this write."""
    if old.claim is None or new.claim is not None or not new.history:
        return ""
    by = new.history[-1].preempted_by
    return by.name if by is not None else ""


def _describe(status: _Status) -> str:
    return _told_claim(status.claim) if status.claim is not None else "none"


def _told_claim(claim: _Claim) -> str:
    parts = [
        f"{part.cluster}:{sum(pods.count for pods in part.pod_sets)}"
        f"{part.tasks and ' ' + part.tasks}"
        for part in claim.placements
    ]
    return f"{claim.attempt}@{claim.term}({', '.join(parts)})"
