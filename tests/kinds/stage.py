"""Where a scenario is played: one object in a namespace of its own, and every status it has.

An act changes something (the object, or what its pods do); then the stage waits until the status
has not changed for a while, and notes each change together with the act it came after.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairway.client import Client, Scope
from tests.kubernetes.kubelet import Kubelet, Pod

QUIET_SECONDS = 2.5
ACT_SECONDS_MAX = 40
Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that happens, and what must have come of it before the next act."""

    what: str
    does: Callable[[Stage], object]
    until: Callable[[Json], bool] = lambda _status: True


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A sample, what is different in its spec, and what happens to it."""

    name: str
    sample: str
    document: int = 0
    spec: Json = field(default_factory=dict)
    before: tuple[Json, ...] = ()  # objects of the namespace that must be there
    acts: tuple[Act, ...] = ()

    @property
    def file(self) -> str:
        return f"{self.sample.removesuffix('.yaml')}/recorded-{self.name}.yaml"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One status, and what was true of the object when it had it."""

    what: str
    generation: int
    spec: Json
    status: Json


class Stage:
    """One object that is watched, and its pods."""

    def __init__(self, client: Client, kubelet: Kubelet, manifest: Json) -> None:
        self.client, self.kubelet, self.manifest = client, kubelet, manifest
        self.namespace = manifest["metadata"]["namespace"]
        self.kind = client.kind_of(manifest)
        self.spec: Json = {}  # what acts changed
        self.changes: list[Change] = []
        self._what, self._seen_at, self._last = "", time.monotonic(), None
        self._events: Any = None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def make(self) -> None:
        """Creates the object and begins to watch it."""
        name = self.manifest["metadata"]["name"]
        made = self.client.create(self.manifest)
        self._note(made)
        scope = Scope(namespace=self.namespace, fields=f"metadata.name={name}")
        self._events = self.client.watch(
            self.kind, scope=scope, resource_version=made["metadata"]["resourceVersion"]
        )
        self._thread.start()

    def change(self, **spec: Any) -> None:
        """Changes the object's spec."""
        self.spec = {**self.spec, **spec}  # no act changes another part of what one changed
        name = self.manifest["metadata"]["name"]
        self.client.patch(self.kind, name, {"spec": spec}, namespace=self.namespace)

    def found(self) -> Json:
        name = self.manifest["metadata"]["name"]
        return self.client.get(self.kind, name, namespace=self.namespace)

    def wait_for(self, chosen: Callable[[Pod], bool], count: int) -> list[Pod]:
        """So many pods on nodes that are as they must be, by name, once there are."""
        until = time.monotonic() + ACT_SECONDS_MAX
        while time.monotonic() < until:
            every = self.client.list("pods", scope=Scope(namespace=self.namespace)).items
            here = [
                item for item in every if "containerStatuses" in item["status"] and chosen(item)
            ]
            if len(here) >= count:
                return sorted(here, key=lambda item: str(item["metadata"]["name"]))[:count]
            time.sleep(0.2)
        raise TimeoutError(f"{len(here)} pods instead of {count} for {self._what!r}")

    def play(self, act: Act) -> None:
        self._what, self._seen_at = act.what, time.monotonic()
        act.does(self)
        until = time.monotonic() + ACT_SECONDS_MAX
        while time.monotonic() < until:
            time.sleep(0.2)
            is_quiet = time.monotonic() - self._seen_at > QUIET_SECONDS
            if is_quiet and act.until(self._last or {}):
                return
        raise TimeoutError(f"{self.kind.kind} after {act.what!r}: {self._last}")

    def close(self) -> None:
        """Deletes the object, whose end also ends the watch."""
        if self._thread.is_alive():
            self.client.delete(
                self.kind, self.manifest["metadata"]["name"], namespace=self.namespace,
                options={"propagationPolicy": "Background"},
            )  # fmt: skip
            self._thread.join(timeout=ACT_SECONDS_MAX)

    def _follow(self) -> None:
        with contextlib.closing(self._events) as events:
            for event in events:
                if event.type == "DELETED":
                    return
                is_kept = "deletionTimestamp" not in event.object["metadata"]
                if event.type != "BOOKMARK" and is_kept:
                    self._note(event.object)

    def _note(self, found: Json) -> None:
        status = found.get("status", {})
        self._seen_at = time.monotonic()
        if status == self._last:
            return
        self._last = status
        generation = found["metadata"].get("generation", 0)
        spec = copy.deepcopy(self.spec)
        self.changes.append(
            Change(what=self._what, generation=generation, spec=spec, status=status)
        )
