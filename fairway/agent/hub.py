"""All that an agent writes on its hub: heartbeats, reports, statuses, and works it puts back.

Each call that the hub answers is a sign of life; the agent counts the hub's silence from the last.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from fairway.agent.join.rights import owner_of
from fairway.api.codec import to_plain
from fairway.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from fairway.api.meta import JsonObject, ObjectMeta
from fairway.api.names import ADOPTED, AGENT_LEASE, CUT_OFF, report_name, work_namespace
from fairway.api.report import ClusterReport
from fairway.api.work import Work, WorkStatus
from fairway.clock import Clock, micro_timestamp
from fairway.store.interface import (
    Patch,
    ResourceKey,
    Store,
    Stored,
    Write,
)
from fairway.store.keys import CLUSTERS, LEASES, NAMESPACES, REPORTS, WORKS
from fairway.store.mirrors import version_of

T = TypeVar("T")


_NOT_CUT_OFF = {"annotations": {CUT_OFF: None}}
_LEASE_PERIODS = 4  # heartbeats for which a lease lasts


class Hub:
    """The hub, as one cluster's agent writes to it."""

    def __init__(
        self,
        store: Store,
        cluster: str,
        *,
        clock: Clock,
        epoch: int,
        heard_at: float | None = None,
    ) -> None:
        """`heard_at` is when the hub answered an earlier run of the agent, where that is known."""
        self.store = store
        self.cluster = cluster
        self.namespace = work_namespace(cluster)
        self.heard_at = clock.now() if heard_at is None else heard_at
        # Counted apart from the time of day, which may be set: works are stopped by this.
        self._silent_since = clock.monotonic() - max(0.0, clock.now() - self.heard_at)
        self._has_called = False
        self._clock = clock
        self._epoch = epoch
        # A hub of an earlier version leaves out what it does not know, rather than hear nothing.
        self._write = Write(
            user=f"system:fairway:agent:{cluster}",
            manager="fairway-agent",
            field_validation="Ignore",
        )
        self._versions: dict[str, str] = {}  # of our reports
        self._has_versions = False
        self._may_be_cut_off = True  # an earlier run may have said so

    def silent_seconds(self) -> float:
        """How long the hub has not answered; an agent that starts asks before it counts."""
        return self._clock.monotonic() - self._silent_since if self._has_called else 0.0

    def silent_at(self, seconds: float) -> float:
        """When the hub will not have answered for so long, if it stays silent."""
        return self._clock.now() + seconds - self.silent_seconds()

    async def _heard(self, call: Awaitable[T]) -> T:
        answer = await call
        self._hear()
        return answer

    def _hear(self) -> None:
        self.heard_at = self._clock.now()
        self._silent_since = self._clock.monotonic()

    async def beat(self, period_seconds: float) -> None:
        """Says that the agent lives."""
        spec = {
            "holderIdentity": f"{self.cluster}/{self._epoch}",
            "leaseDurationSeconds": max(1, round(_LEASE_PERIODS * period_seconds)),
            "renewTime": micro_timestamp(self._clock.now()),
            "leaseTransitions": self._epoch,
        }
        try:
            word = {"metadata": _NOT_CUT_OFF} if self._may_be_cut_off else {}
            patch = Patch(type="merge", body={**word, "spec": spec})
            await self._heard(
                self.store.patch(
                    LEASES, AGENT_LEASE, patch, namespace=self.namespace, write=self._write
                )
            )
            self._may_be_cut_off = False
        except NotFound:
            body = {"metadata": {"name": AGENT_LEASE, "namespace": self.namespace}, "spec": spec}
            await self._create(LEASES, body)
            self._may_be_cut_off = False
        finally:
            self._has_called = True

    async def tell_cut_off(self) -> None:
        """Says that the agent lives and does not reach its cluster: no heartbeat, and no silence.

        By the heartbeats that fail to come, the hub counts the cluster as silent. By this word it
        knows that nobody stops what runs there, whatever was agreed on, and goes on waiting. It is
        said once: what says nothing new is not written.
        """
        self._may_be_cut_off = True
        patch = Patch(type="merge", body={"metadata": {"annotations": {CUT_OFF: "true"}}})
        try:
            await self._heard(
                self.store.patch(
                    LEASES, AGENT_LEASE, patch, namespace=self.namespace, write=self._write
                )
            )
        except NotFound:
            self._hear()  # it has never beaten: nothing of ours runs there
        finally:
            self._has_called = True

    async def _create(self, kind: ResourceKey, body: JsonObject) -> Stored:
        """Makes an object in the cluster's namespace, and that if need be."""
        try:
            return await self._heard(
                self.store.create(kind, body, namespace=self.namespace, write=self._write)
            )
        except NotFound:
            stored = await self._heard(self.store.get(CLUSTERS, self.cluster))
            # With its cluster it goes as well, and all that is in it.
            owner = owner_of(stored.object())
            namespace = {"metadata": {"name": self.namespace, "ownerReferences": [owner]}}
            with suppress(AlreadyExists):  # another call of ours was faster
                await self._heard(self.store.create(NAMESPACES, namespace, write=self._write))
        return await self._heard(
            self.store.create(kind, body, namespace=self.namespace, write=self._write)
        )

    async def put_back(self, work: Work) -> None:
        """Puts a work on the hub that the hub has lost."""
        metadata = ObjectMeta(
            name=work.metadata.name,
            namespace=self.namespace,
            labels={**work.metadata.labels, ADOPTED: "true"},
            annotations=work.metadata.annotations,
        )
        lost = replace(work, metadata=metadata, status=WorkStatus())
        try:
            await self._create(WORKS, to_plain(lost))
        except AlreadyExists:
            return  # it is there again

    async def write_report(self, report: ClusterReport) -> None:
        """Writes a report over the last one of its name."""
        if not self._has_versions:
            await self._find_reports(report.spec.chunks)
        name = report.metadata.name
        body = to_plain(report)
        version = self._versions.get(name)
        try:
            if version is None:
                # By name, as nobody may make objects of any name who has rights by name.
                patch = Patch(type="apply", body=body, force=True)
                stored, _ = await self.store.patch(REPORTS, name, patch, write=self._write)
            else:
                body["metadata"]["resourceVersion"] = version
                stored = await self.store.update(REPORTS, body, write=self._write)
        except (Conflict, NotFound):
            self._has_versions = False  # somebody else wrote or removed it
            raise
        self._hear()
        self._versions[name] = version_of(stored)

    async def _find_reports(self, chunks: int) -> None:
        """Which reports there are, from earlier runs; those of chunks that are no more go.

        Each is asked for by its name, since that is all that an agent far from its hub may do.
        """
        self._versions.clear()
        chunk = 0
        while await self._find_chunk(chunk, is_used=chunk < chunks) or chunk < chunks:
            chunk += 1
        self._has_versions = True

    async def _find_chunk(self, chunk: int, *, is_used: bool) -> bool:
        """Whether there is a report on a chunk; one that is of no use any more is removed."""
        is_there = False
        for is_difference in (False, True):
            name = report_name(self.cluster, chunk, is_difference=is_difference)
            try:
                stored = await self._heard(self.store.get(REPORTS, name))
            except (NotFound, Forbidden):  # past those that it may have, there are none
                continue
            is_there = True
            if is_used:
                self._versions[name] = version_of(stored)
            else:
                await self.store.delete(REPORTS, name, write=self._write)
        return is_there

    async def write_work_status(self, name: str, status: WorkStatus) -> None:
        """Replaces the status of a work; one that is not there any more needs none."""
        patch = Patch(
            type="json", body=[{"op": "add", "path": "/status", "value": to_plain(status)}]
        )
        try:
            await self._heard(
                self.store.patch(
                    WORKS,
                    name,
                    patch,
                    namespace=self.namespace,
                    subresource="status",
                    write=self._write,
                )
            )
        except NotFound:
            return

    async def write_cluster_status(self, status: JsonObject) -> None:
        """Changes those fields of the cluster's status that are the agent's."""
        patch = Patch(type="merge", body={"status": status})
        try:
            await self._heard(
                self.store.patch(
                    CLUSTERS, self.cluster, patch, subresource="status", write=self._write
                )
            )
        except NotFound:
            return
