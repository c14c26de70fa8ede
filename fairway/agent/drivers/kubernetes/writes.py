"""Writes to the cluster, under the right identity and at a limited rate.

A write that the cluster rejects is `Refused`, which is reported; a write that fails without an
answer is a `DriverFault`, which is retried. A missing namespace is created, with its tenant rights.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from fairway.agent.drivers.interface import DriverFault
from fairway.agent.drivers.kubernetes import marks, rights
from fairway.agent.drivers.kubernetes.watches import read_object
from fairway.agent.settings import Rate
from fairway.api.cluster import KubernetesDriver
from fairway.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    UnsupportedMediaType,
)
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.clock import Clock
from fairway.kinds.plain import text
from fairway.kubeapi import KubeApi
from fairway.store.interface import Deletion, Patch, PatchType, ResourceKey, Write
from fairway.store.keys import ACCOUNTS, CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS

T = TypeVar("T")

_REFUSALS = (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    UnsupportedMediaType,
)
# These pass by themselves: the object changes, or what it lacks arrives.
_PASSING = (AlreadyExists, Conflict, NotFound)
# After rights are granted, the server needs a moment until they take effect.
_HEED_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


class Refused(Exception):
    """The cluster rejects this; unless it may pass, it would reject it again."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


def _refusal(fault: ApiError) -> Refused:
    return Refused(str(fault), may_pass=isinstance(fault, _PASSING))


async def _nothing() -> Sequence[tuple[str, str]]:
    return ()


class Hands:
    """The writes of one driver."""

    def __init__(
        self, api: KubeApi, cluster: str, settings: KubernetesDriver, clock: Clock
    ) -> None:
        # Finds the kinds that tenants' workloads may consist of, as groups and plurals.
        self.find_tenant_kinds: Callable[[], Awaitable[Sequence[tuple[str, str]]]] = _nothing
        self._api = api
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._rate = Rate()

    async def get(
        self, kind: ResourceKey, name: str, namespace: str, work: Work | None
    ) -> JsonObject | None:
        """Reads an object; None if it does not exist, or the agent has no right to see it yet."""
        try:
            return read_object(await self._as(work, namespace).get(kind, name, namespace))
        except (NotFound, Forbidden):
            return None
        except ApiError as fault:
            raise DriverFault(str(fault)) from fault

    async def create(
        self, kind: ResourceKey, body: JsonObject, namespace: str, work: Work | None
    ) -> JsonObject:
        write = self._write()
        return read_object(
            await self._do(
                lambda api: api.create(kind, body, namespace=namespace, write=write),
                namespace,
                work,
            )
        )

    async def patch(
        self,
        kind: ResourceKey,
        name: str,
        body: JsonObject,
        namespace: str,
        work: Work | None,
        *,
        type: PatchType = "merge",
        force: bool = False,
    ) -> JsonObject:
        patch, write = Patch(type=type, body=body, force=force), self._write()
        raw, _ = await self._do(
            lambda api: api.patch(kind, name, patch, namespace=namespace, write=write),
            namespace,
            work,
        )
        return read_object(raw)

    async def delete(
        self, kind: ResourceKey, name: str, namespace: str, work: Work | None, how: Deletion
    ) -> None:
        """Deletes an object; it is fine if it is gone or another has taken its name."""
        await self._wait()
        try:
            await self._as(work, namespace).delete(
                kind, name, namespace=namespace, how=how, write=self._write()
            )
        except (NotFound, Conflict):
            return
        except _REFUSALS as fault:
            raise _refusal(fault) from fault
        except ApiError as fault:
            raise DriverFault(str(fault)) from fault

    async def make_own(self, kind: ResourceKey, body: JsonObject) -> None:
        """Creates an object under the agent's own identity, unless it exists."""
        await self._wait()
        try:
            try:
                await self._make(kind, body)
            except NotFound:
                if not await self._prepare(text(body, "metadata", "namespace")):
                    raise
                await self._make(kind, body)
        except _REFUSALS as fault:
            raise _refusal(fault) from fault
        except ApiError as fault:
            raise DriverFault(str(fault)) from fault

    async def remove_own(self, kind: ResourceKey, name: str, namespace: str = "") -> bool:
        """Deletes an object under the agent's own identity; returns whether it existed."""
        await self._wait()
        try:
            await self._api.delete(kind, name, namespace=namespace, write=self._write())
        except NotFound:
            return False
        except ApiError as fault:
            raise DriverFault(str(fault)) from fault
        return True

    def _write(self) -> Write:
        return Write(manager=marks.MANAGER)

    def _as(self, work: Work | None, namespace: str) -> KubeApi:
        if work is not None and work.spec.executor is not None:
            return self._api.acting_as(rights.executor_of(work, namespace))
        if self._settings.act_as == "Tenant":
            return self._api.acting_as(rights.account(namespace))
        return self._api

    async def _wait(self) -> None:
        while delay := self._rate.take(self._settings.requests_per_second, self._clock.now()):
            await self._clock.sleep(delay)

    async def _do(
        self, call: Callable[[KubeApi], Awaitable[T]], namespace: str, work: Work | None
    ) -> T:
        await self._wait()
        api = self._as(work, namespace)
        try:
            try:
                return await call(api)
            except (Forbidden, NotFound) as fault:
                if not await self._prepare(namespace):
                    raise
                return await self._heed(call, api, fault)
        except _REFUSALS as fault:
            raise _refusal(fault) from fault
        except ApiError as fault:
            raise DriverFault(str(fault)) from fault

    async def _heed(
        self, call: Callable[[KubeApi], Awaitable[T]], api: KubeApi, last: ApiError
    ) -> T:
        for seconds in _HEED_SECONDS:
            await self._clock.sleep(seconds)
            try:
                return await call(api)
            except Forbidden as fault:
                last = fault
        raise last

    # Namespaces.

    async def _prepare(self, namespace: str) -> bool:
        """Creates a missing namespace; returns whether this agent made the namespace."""
        own = marks.label(self._cluster)
        try:
            raw = await self._api.get(NAMESPACES, namespace)
            labels = msgspec.json.decode(raw)["metadata"].get("labels", {})
            if labels.get(marks.CLUSTER) != own:
                return False
        except Forbidden:
            return False
        except NotFound:
            await self._make(NAMESPACES, rights.namespace_of_tenant(namespace, own))
        if self._settings.act_as == "Tenant":
            await self._prepare_role(own)
            await self._make(ACCOUNTS, rights.tenant_account(namespace))
            await self._make(ROLE_BINDINGS, rights.tenant_binding(namespace))
        return True

    async def _prepare_role(self, own: str) -> None:
        """Creates the role of tenants if there is none; updates the kinds of one we created."""
        try:
            raw = await self._api.get(CLUSTER_ROLES, rights.TENANT)
            labels = msgspec.json.decode(raw)["metadata"].get("labels", {})
            if labels.get(marks.CLUSTER) != own:
                return
        except NotFound:
            pass
        role = rights.tenant_role(await self.find_tenant_kinds())
        role["metadata"]["labels"] = {marks.CLUSTER: own}
        patch = Patch(type="apply", body=role, force=True)
        await self._api.patch(CLUSTER_ROLES, rights.TENANT, patch, write=self._write())

    async def _make(self, kind: ResourceKey, body: JsonObject) -> None:
        """Creates an object under the agent's own identity, unless it exists."""
        namespace = text(body, "metadata", "namespace")
        try:
            await self._api.create(kind, body, namespace=namespace, write=self._write())
        except AlreadyExists:
            return
