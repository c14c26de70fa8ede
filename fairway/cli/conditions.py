"""Waits for something to become true of one object, by watching it.

A goal checks the object, or its absence, and says whether it is reached. The watch begins with the
current state, so nothing that already holds or happens in between is missed.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from fairway.api.errors import NotFound
from fairway.cli.session import Failure, Session
from fairway.cli.targets import Target
from fairway.client.asynchronous import AsyncClient
from fairway.client.wire import Object, Scope
from fairway.schema import jsonpath


class Goal(Protocol):
    """Something that may be true of an object; None means there is no such object."""

    def is_reached(self, obj: Object | None) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The object is gone, or its name belongs to another object."""

    uid: str = ""

    def is_reached(self, obj: Object | None) -> bool:
        return obj is None or bool(self.uid and obj["metadata"].get("uid") != self.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """The object exists."""

    def is_reached(self, obj: Object | None) -> bool:
        return obj is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class HasCondition:
    """A condition has a value, for the current generation of the spec."""

    type: str
    value: str = "True"

    def is_reached(self, obj: Object | None) -> bool:
        if obj is None:
            raise Vanished
        status = obj.get("status") or {}
        generation = obj["metadata"].get("generation", 0)
        for condition in status.get("conditions") or ():
            if str(condition.get("type", "")).lower() == self.type.lower():
                seen = condition.get("observedGeneration", status.get("observedGeneration"))
                is_current = seen is None or seen >= generation
                return is_current and str(condition.get("status", "")).lower() == self.value.lower()
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class HasValue:
    """A path has a value, or if none is given, any value at all."""

    path: str
    value: str | None = None

    def is_reached(self, obj: Object | None) -> bool:
        if obj is None:
            raise Vanished
        try:
            matches = jsonpath.find(self.path, obj)
        except jsonpath.PathError as error:
            raise Failure(f"in --for: {error}") from error
        if self.value is None:
            return bool(matches)
        return any(jsonpath.show(item) == self.value for item in matches)


class Vanished(Exception):
    """The object does not exist, but the goal concerns its content."""


def wait_for(session: Session, target: Target, goal: Goal, seconds: float | None) -> None:
    """Waits until the goal is reached; raises TimeoutError when that takes too long."""
    client = session.client
    client.loop.run(_wait(client.asynchronous, target, goal, seconds))


async def _wait(client: AsyncClient, target: Target, goal: Goal, seconds: float | None) -> None:
    if seconds == 0:
        try:
            obj = await client.get(target.served, target.name, namespace=target.namespace)
        except NotFound:
            obj = None
        if not goal.is_reached(obj):
            raise TimeoutError
        return
    async with asyncio.timeout(seconds):
        await _watch(client, target, goal)


async def _watch(client: AsyncClient, target: Target, goal: Goal) -> None:
    scope = Scope(namespace=target.namespace, fields=f"metadata.name={target.name}")
    present: Object | None = None
    is_listed = False
    async with aclosing(client.watch(target.served, scope=scope)) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                is_listed = True
            else:
                present = None if event.type == "DELETED" else event.object
            # Until the list is complete, absence means nothing yet.
            if (is_listed or present is not None) and goal.is_reached(present):
                return
