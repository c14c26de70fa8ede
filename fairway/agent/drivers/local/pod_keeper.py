"""Reconciles the works of this machine: which pods start, wait, continue and end.

It decides from what is on disk and in the manifests; a second `carry_on` changes nothing.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from fairway.agent.drivers.interface import DriverFault
from fairway.agent.drivers.local import plans, volumes
from fairway.agent.drivers.local.environment import PodFault, Surroundings
from fairway.agent.drivers.local.hosts import Hosts, free_ports
from fairway.agent.drivers.local.isolation import give
from fairway.agent.drivers.local.machine import Machine
from fairway.agent.drivers.local.observation import note_checkpoint, pods_of_object
from fairway.agent.drivers.local.plans import Ground, Limits, Plain
from fairway.agent.drivers.local.pods import LocalPod, boot, write_json
from fairway.agent.drivers.local.slots import DoesNotFit, Share, Slots
from fairway.agent.drivers.local.works import (
    FindKind,
    Kept,
    Waiting,
    faults_of,
    hosts_of,
    kept_objects,
    object_of,
    owner_of,
    uid_of,
)
from fairway.agent.drivers.pod_replacement import Part, ended_next
from fairway.api.amounts import Amounts
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.kinds.decision import PART, REVISION
from fairway.kinds.interface import Kind, Pod
from fairway.kinds.plain import child, maps_at, namespace_of, text, texts
from fairway.kinds.pod_starts import due
from fairway.kinds.pods import pod_requests

_OVER = ("Succeeded", "Failed")
_NOBODY = ""  # the owner of placeholder pods
_ATTEMPTS_KEPT = 2  # attempts whose output is kept


class Keeping:
    """All works of the machine."""

    def __init__(
        self,
        *,
        find_kind: FindKind,
        clock: Clock,
        folder: Path,
        machine: Machine,
        limits: Limits,
        slots: Slots,
        started: Callable[[LocalPod], None],
        changed: Callable[[], None],
    ) -> None:
        self.works: dict[str, Kept] = {}
        self.machine = machine
        self._find_kind = find_kind
        self._clock = clock
        self._folder = folder
        self._limits = limits
        self._slots = slots
        self._started = started
        self._changed = changed

    # Requests

    def apply(self, work: Work) -> None:
        name = work.metadata.name
        kept = self.works.get(name)
        if kept is None:
            kept = Kept(folder=self._folder / "works" / name, work=work)
            kept.folder.mkdir(mode=0o700, exist_ok=True)
            self.works[name] = kept
        if kept.is_removed or kept.attempt != work.spec.attempt:
            kept.next = work
        else:
            kept.work, kept.next, kept.stop = work, None, None
            kept.hosts = None
        kept.save()
        self.carry_on(kept)

    def stop(self, name: str, number: signal.Signals, grace_seconds: float) -> None:
        kept = self.works.get(name)
        if kept is None:
            return
        kept.stop, kept.next = (number, grace_seconds), None
        kept.save()
        self._end_all(kept, number, grace_seconds)
        self.carry_on(kept)

    def remove(self, name: str) -> None:
        kept = self.works.get(name)
        if kept is None:
            return
        kept.is_removed, kept.next = True, None
        kept.save()
        self.carry_on(kept)

    # Events

    def adopt(self, kept: Kept, pod: LocalPod) -> None:
        """Takes a pod of an earlier driver; it replaces an earlier pod of the same name."""
        self.forget(kept, pod)
        kept.pods[pod.key] = pod
        if not pod.is_over:
            self._slots.hold(pod.key, pod.share)

    def forget(self, kept: Kept, pod: LocalPod) -> None:
        """Forgets a pod, and those that it replaced."""
        for key in [key for key, value in kept.pods.items() if _is_same(value, pod)]:
            del kept.pods[key]

    def may_start(self, pod: LocalPod) -> bool:
        """Whether a plan without a state may still be started."""
        return pod.plan["boot"] == boot() and not pod.is_ending

    def pod_changed(self, pod: LocalPod) -> None:
        kept = self.works.get(pod.work)
        self._changed()
        if kept is None:
            return
        note_checkpoint(kept, pod)
        if pod.is_over:
            self._slots.give_back(pod.key)
            if pod.is_ending:
                kept.pods.pop(pod.key, None)
        if pod.is_over or pod.is_ready:
            self.carry_on(kept)  # the next pod of an earlier template may end now

    def all_pods(self) -> Iterator[LocalPod]:
        for kept in self.works.values():
            yield from kept.pods.values()

    # Reconciling

    def carry_on(self, kept: Kept) -> None:
        """Reconciles a work as far as possible now, and then works that wait for room."""
        self._go_on(kept)
        for other in list(self.works.values()):
            if other.waiting and other is not kept:
                self._go_on(other)
        self._changed()

    def tick(self) -> None:
        """Checks what no event shows: jobs past their deadline, and pods that wait to start."""
        for kept in list(self.works.values()):
            bodies = kept.objects.values()
            has_deadline = any("activeDeadlineSeconds" in child(body, "spec") for body in bodies)
            is_live = any(not pod.is_over and not pod.is_ending for pod in kept.pods.values())
            if kept.waiting or (has_deadline and is_live):
                self._go_on(kept)

    def _go_on(self, kept: Kept) -> None:
        if kept.next is not None or kept.is_removed:
            self._end_all(kept, signal.SIGTERM)
            if kept.pods:
                return
            if kept.next is None:
                shutil.rmtree(kept.folder, ignore_errors=True)
                del self.works[kept.name]
                return
            self._begin_attempt(kept, kept.next)
        if kept.stop is not None:
            for pod in list(kept.pods.values()):
                if not pod.is_ending:
                    self._end(kept, pod, *kept.stop)
            self._make_objects(kept)
        elif kept.work.spec.desired == "Reserve":
            self._reserve(kept)
        else:
            self._run(kept)

    def _begin_attempt(self, kept: Kept, work: Work) -> None:
        """Begins a new attempt, once nothing is left of the one before."""
        kept.work, kept.next = work, None
        kept.is_removed, kept.stop = False, None
        kept.hosts, kept.checkpointed_at = None, None
        kept.objects, kept.ports, kept.created, kept.finals = {}, {}, {}, {}
        old = sorted((kept.folder / "pods").glob("*"), key=lambda path: int(path.name))
        for folder in old[: -(_ATTEMPTS_KEPT - 1)]:
            shutil.rmtree(folder, ignore_errors=True)
        kept.save()

    def _run(self, kept: Kept) -> None:
        if kept.hosts is None:
            self._make_objects(kept)
            if kept.faults:
                return  # what runs already goes on
            self._drop_placeholders(kept)
            kept.hosts = hosts_of(kept, self._find_kind)
            if self._give_ports(kept, kept.hosts):
                kept.save()
        owners = {owner_of(body) for body in kept.objects.values()}
        for pod in list(kept.pods.values()):
            if pod.owner not in owners:
                self._end(kept, pod, signal.SIGTERM)
        for position, body in list(kept.objects.items()):
            kind = self._find_kind(body)
            if kind is not None and position not in kept.faults:
                self._end_unwanted(kept, kind, body)
                self._start_due(kept, position, kind, body)

    def _make_objects(self, kept: Kept) -> None:
        """Makes the objects of a work; none if any of them cannot be made."""
        objects: dict[int, JsonObject] = {}
        kept.faults = {}
        for position, manifest in enumerate(kept.work.spec.manifests):
            if manifest.update == "ReadOnly":
                continue  # a machine has no objects except those of its works
            kind = self._find_kind(manifest.object)
            try:
                objects[position] = object_of(manifest, kind, kept)
            except DriverFault as fault:
                kept.faults[position] = str(fault)
        if not kept.faults:
            kept.objects = objects

    def _give_ports(self, kept: Kept, hosts: Hosts) -> bool:
        """Allocates ports for pods that read their own; returns whether there are new ones."""
        missing = [port for port in hosts.own_ports() if port not in kept.ports]
        taken = {port for work in self.works.values() for port in work.ports.values()}
        free = free_ports(len(missing), taken)
        if len(free) < len(missing):
            kept.faults = dict.fromkeys(kept.objects, "no port of this machine is free for it")
            return False
        kept.ports.update(zip(missing, free, strict=True))
        return bool(missing)

    def _end_unwanted(self, kept: Kept, kind: Kind, body: JsonObject) -> None:
        """Ends pods that are surplus, that changed, or whose job is over."""
        owner = owner_of(body)
        wanted = {pod.name: pod for pod in kind.pods(body)}
        is_over = self._is_over(kept, kind, body)
        kept.waiting = {
            name: waiting_pod
            for name, waiting_pod in kept.waiting.items()
            if waiting_pod.owner != owner or (name in wanted and not is_over)
        }
        there = kept.by_name(owner)
        parts = [_part(there[name], pod) for name, pod in wanted.items() if name in there]
        changed = set(ended_next(body, len(wanted), parts))
        for name, pod in there.items():
            if name not in wanted or name in changed or (is_over and not pod.is_over):
                self._end(kept, pod, signal.SIGTERM)

    def _is_over(self, kept: Kept, kind: Kind, body: JsonObject) -> bool:
        """Whether an object is over by its own rules; then its status never changes again."""
        owner = owner_of(body)
        if owner not in kept.finals:
            status = kind.play(body, pods_of_object(kept, owner), now=self._now())
            if kind.read({**body, "status": status}).phase not in _OVER:
                return False
            kept.finals[owner] = status
            kept.save()
            self._changed()
        return True

    def _start_due(self, kept: Kept, position: int, kind: Kind, body: JsonObject) -> None:
        owner = owner_of(body)
        if owner in kept.finals:
            return
        held = kept.by_name(owner)
        for pod in due(kind, body, pods_of_object(kept, owner), now=self._now()):
            before = held.get(pod.name)
            remakes = before.remakes + 1 if before is not None else 0
            wait = Waiting(pod=pod, owner=owner, remakes=remakes, since=self._now())
            if before is not None and not before.has_begun:
                # No supervisor holds back what replaces a pod whose own could not start.
                wait.not_before = self._now() + self._backoff_seconds(remakes)
                wait.message = "its supervisor could not start, and is tried again after a while"
            kept.waiting[pod.name] = wait
        for name, waiting_pod in list(kept.waiting.items()):
            if waiting_pod.owner == owner and self._start(kept, waiting_pod, position, body):
                del kept.waiting[name]

    def _start(self, kept: Kept, wait: Waiting, position: int, body: JsonObject) -> bool:
        """Starts a pod if there is room; returns whether it no longer waits."""
        if self._now() < wait.not_before:
            return False
        pod = wait.pod
        try:
            ground = self._ground(kept, pod, body)
            plans.check(ground)
        except PodFault as fault:
            kept.faults[position] = f"pod {pod.name}: {fault}"
            return True
        folder = ground.folder
        key = kept.key_of(folder)
        share = self._room(key, pod.spec, wait)
        if share is None:
            return False
        made, folders = plans.plan(ground, share)
        made |= _record(kept, wait, key, share)
        try:
            self._make_pod(kept, wait, made, ground, folders)
        except OSError as fault:
            # For example a full disk; the pod waits, and is tried again.
            kept.pods.pop(key, None)
            self._slots.give_back(key)
            shutil.rmtree(folder, ignore_errors=True)
            wait.failures += 1
            wait.not_before = self._now() + self._backoff_seconds(wait.failures)
            wait.message = f"the machine could not start it: {fault}"
            return False
        return True

    def _ground(self, kept: Kept, pod: Pod, body: JsonObject) -> Ground:
        assert kept.hosts is not None
        return Ground(
            around=self._surroundings(kept, pod, body),
            folder=kept.new_folder(pod.name),
            hosts=kept.hosts,
            ports=kept.ports,
            devices=self.machine.devices,
            limits=self._limits,
        )

    def _room(self, key: str, spec: JsonObject, wait: Waiting) -> Share | None:
        selector = texts(spec, "nodeSelector")
        if any(self.machine.labels.get(name) != value for name, value in selector.items()):
            wait.message = "0/1 nodes match the pod's node selector"
            return None
        share = self._slots.take(key, Amounts.of(pod_requests(spec)))
        if isinstance(share, DoesNotFit):
            wait.message = share.message
            return None
        return share

    def _make_pod(
        self,
        kept: Kept,
        wait: Waiting,
        made: Plain,
        ground: Ground,
        folders: list[volumes.VolumePlan],
    ) -> None:
        now, folder = self._now(), ground.folder
        has_waited = wait.not_before > 0
        made |= {
            "start_at": now if has_waited else now + self._backoff_seconds(wait.remakes),
            "planned_at": now,
            "boot": boot(),
            "wake": str(self._folder / "wake"),
        }
        own = (*ground.scratch, ground.shared)
        for place in (folder / "logs", *own):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        volumes.make(folders)
        give(own, made["containers"][0]["sandbox"])  # all containers are of one user
        write_json(folder / "plan.json", made)
        pod = LocalPod(folder, made)
        self.adopt(kept, pod)
        pod.start()
        self._started(pod)
        self._changed()

    def _backoff_seconds(self, times: int) -> float:
        """How long to wait before a pod is started again that was started so many times."""
        first, most = self._limits.backoff_seconds
        return min(first * 2 ** min(times - 1, 30), most) if times else 0.0

    def _surroundings(self, kept: Kept, pod: Pod, body: JsonObject) -> Surroundings:
        return Surroundings(
            pod=pod,
            namespace=namespace_of(body),
            node=self.machine.name,
            allocatable=self.machine.allocatable,
            uid=uid_of(kept.name, str(kept.attempt), pod.name),
            settings=kept_objects(kept, "ConfigMap"),
            secrets=kept_objects(kept, "Secret"),
        )

    # Placeholders

    def _reserve(self, kept: Kept) -> None:
        """Makes placeholder pods, one for each pod that would run first; they have no process."""
        for position, manifest in enumerate(kept.work.spec.manifests):
            kind = self._find_kind(manifest.object)
            if kind is None or faults_of(kind, manifest.object):
                continue
            for pod in due(kind, kind.release(manifest.object), (), now=self._now()):
                self._hold_room(kept, pod, f"placeholder-{position}-{pod.name}")

    def _hold_room(self, kept: Kept, pod: Pod, name: str) -> None:
        if name in kept.by_name(_NOBODY):
            return
        try:
            folder = kept.new_folder(name)
        except PodFault:
            return  # it is told when the pod is to start
        key = kept.key_of(folder)
        wait = kept.waiting.setdefault(
            name, Waiting(pod=pod, owner=_NOBODY, remakes=0, since=self._now())
        )
        share = self._room(key, pod.spec, wait)
        if share is None:
            return
        del kept.waiting[name]
        now = self._now()
        record = _record(kept, wait, key, share)
        made = {**record, "pod": name, "planned_at": now, "containers": []}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(folder / "state.json", {"phase": "Ready", "since": now, "started_at": now})
        write_json(folder / "plan.json", made)
        holder = LocalPod(folder, made)
        holder.look()
        kept.pods[key] = holder

    def _drop_placeholders(self, kept: Kept) -> None:
        kept.waiting = {
            name: waiting_pod
            for name, waiting_pod in kept.waiting.items()
            if waiting_pod.owner != _NOBODY
        }
        for pod in list(kept.by_name(_NOBODY).values()):
            self._end(kept, pod, signal.SIGTERM)

    # Ending

    def _end_all(self, kept: Kept, number: signal.Signals, grace: float | None = None) -> None:
        kept.waiting.clear()
        for pod in list(kept.pods.values()):
            self._end(kept, pod, number, grace)

    def _end(
        self, kept: Kept, pod: LocalPod, number: signal.Signals, grace: float | None = None
    ) -> None:
        """Ends a pod; a pod that is over, or is a placeholder, is dropped at once."""
        self._changed()
        is_again = pod.is_ending
        if pod.is_over or pod.is_placeholder:
            pod.is_ending = True
            write_json(pod.folder / "stop.json", {})
            kept.pods.pop(pod.key, None)
            self._slots.give_back(pod.key)
            if pod.is_placeholder:
                shutil.rmtree(pod.folder, ignore_errors=True)
            return
        if not is_again or grace is not None:
            pod.end(number, grace if grace is not None else float(pod.plan["grace_seconds"]))

    def _now(self) -> float:
        return self._clock.now()


def _record(kept: Kept, wait: Waiting, key: str, share: Share) -> Plain:
    """What a later driver needs to recognize the pod."""
    images = {text(container, "image") for container in maps_at(wait.pod.spec, "containers")} - {""}
    return {
        "key": key,
        "work": kept.name,
        "attempt": kept.attempt,
        "pod": wait.pod.name,
        "pod_set": wait.pod.pod_set,
        "index": wait.pod.index,
        "owner": wait.owner,
        "remakes": wait.remakes,
        "amounts": dict(share.amounts),
        "devices": {name: list(held) for name, held in share.devices.items()},
        "shape": _shape(wait.pod),
        "revision": wait.pod.labels.get(REVISION, ""),
        "is_beside": PART in wait.pod.labels,
        "note": f"not used here: image {', '.join(sorted(images))}" if images else "",
    }


def _shape(pod: Pod) -> str:
    """A digest of what a pod is made from; pods with equal digests need no replacement."""
    return uid_of(json.dumps(pod.spec, sort_keys=True) + pod.labels.get(REVISION, ""))


def _part(pod: LocalPod, wanted: Pod) -> Part:
    return Part(
        name=pod.name,
        index=wanted.index,
        is_ready=pod.is_ready,
        is_current=not _is_changed(pod, wanted),
        is_live=not pod.is_ending,
    )


def _is_changed(pod: LocalPod, wanted: Pod) -> bool:
    """Whether a service's pod is from an earlier manifest; pods of jobs are never replaced."""
    is_service = text(wanted.spec, "restartPolicy", default="Always") == "Always"
    return is_service and pod.plan["shape"] != _shape(wanted)


def _is_same(pod: LocalPod, other: LocalPod) -> bool:
    return (pod.name, pod.attempt) == (other.name, other.attempt)
