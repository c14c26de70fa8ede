"""Everything an agent writes to its hub: heartbeats, reports, statuses, and works it puts back.

Each call that the hub answers is a sign of life; the hub's silence is counted from the last one.
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
from fairway.api.names import ADOPTED, AGENT_LEASE, CUT_OFF, ENDED, report_name, work_namespace
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
_LEASE_PERIODS = 4  # the duration of a lease, in heartbeats


class Hub:
    """The hub, as the agent of one cluster writes to it."""

    def __init__(
        self,
        store: Store,
        cluster: str,
        *,
        clock: Clock,
        epoch: int,
        heard_at: float | None = None,
    ) -> None:
        """`heard_at` is when the hub last answered an earlier run of the agent, if known."""
        self.store = store
        self.cluster = cluster
        self.namespace = work_namespace(cluster)
        self.heard_at = clock.now() if heard_at is None else heard_at
        # Monotonic, since the wall clock may be set: works are stopped by this.
        self._silent_since = clock.monotonic() - max(0.0, clock.now() - self.heard_at)
        self._has_called = False
        self._clock = clock
        self._epoch = epoch
        # A hub of an earlier version ignores fields it does not know instead of refusing the write.
        self._write = Write(
            user=f"system:fairway:agent:{cluster}",
            manager="fairway-agent",
            field_validation="Ignore",
        )
        self._versions: dict[str, str] = {}  # of our reports
        self._has_versions = False
        self._may_be_cut_off = True  # an earlier run may have said so

    def silent_seconds(self) -> float:
        """How long the hub has not answered; zero until the agent has called it once."""
        return self._clock.monotonic() - self._silent_since if self._has_called else 0.0

    def silent_at(self, seconds: float) -> float:
        """When the hub will have been silent for `seconds`, if it does not answer before."""
        return self._clock.now() + seconds - self.silent_seconds()

    async def _call(self, call: Awaitable[T]) -> T:
        answer = await call
        self._hear()
        return answer

    def _hear(self) -> None:
        self.heard_at = self._clock.now()
        self._silent_since = self._clock.monotonic()

    async def beat(self, period_seconds: float) -> None:
        """Sends a heartbeat: renews the agent's lease."""
        spec = {
            "holderIdentity": f"{self.cluster}/{self._epoch}",
            "leaseDurationSeconds": max(1, round(_LEASE_PERIODS * period_seconds)),
            "renewTime": micro_timestamp(self._clock.now()),
            "leaseTransitions": self._epoch,
        }
        try:
            word = {"metadata": _NOT_CUT_OFF} if self._may_be_cut_off else {}
            patch = Patch(type="merge", body={**word, "spec": spec})
            await self._call(
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
        """Reports that the agent runs but cannot reach its cluster; the lease is not renewed.

        Without heartbeats, the hub counts the cluster as silent. From this annotation it knows that
        nothing stops what runs there, whatever was agreed on, and it goes on waiting. Repeating it
        changes nothing, so the hub stores it only once.
        """
        self._may_be_cut_off = True
        patch = Patch(type="merge", body={"metadata": {"annotations": {CUT_OFF: "true"}}})
        try:
            await self._call(
                self.store.patch(
                    LEASES, AGENT_LEASE, patch, namespace=self.namespace, write=self._write
                )
            )
        except NotFound:
            self._hear()  # there never was a heartbeat: nothing of ours runs there
        finally:
            self._has_called = True

    async def _create(self, kind: ResourceKey, body: JsonObject) -> Stored:
        """Creates an object in the cluster's namespace, and the namespace if it is missing."""
        try:
            return await self._call(
                self.store.create(kind, body, namespace=self.namespace, write=self._write)
            )
        except NotFound:
            stored = await self._call(self.store.get(CLUSTERS, self.cluster))
            # When the cluster is deleted, its namespace and everything in it go as well.
            owner = owner_of(stored.object())
            namespace = {"metadata": {"name": self.namespace, "ownerReferences": [owner]}}
            with suppress(AlreadyExists):  # a concurrent call of this agent was faster
                await self._call(self.store.create(NAMESPACES, namespace, write=self._write))
        return await self._call(
            self.store.create(kind, body, namespace=self.namespace, write=self._write)
        )

    async def put_back(self, work: Work, *, has_ended: bool = False) -> None:
        """Creates a work on the hub that the hub has lost."""
        metadata = ObjectMeta(
            name=work.metadata.name,
            namespace=self.namespace,
            labels={**work.metadata.labels, ADOPTED: ENDED if has_ended else "true"},
            annotations=work.metadata.annotations,
        )
        lost = replace(work, metadata=metadata, status=WorkStatus())
        try:
            await self._create(WORKS, to_plain(lost))
        except AlreadyExists:
            return  # it is there again

    async def has_lost_reports(self, chunks: int) -> bool:
        """Whether reports on the hub are not those that were last written.

        A hub that was restored has earlier ones, from which a difference cannot be understood.
        """
        before = dict(self._versions)
        await self._find_reports(chunks)
        return before != self._versions

    async def write_report(self, report: ClusterReport) -> None:
        """Writes a report over the previous one of that name."""
        if not self._has_versions:
            await self._find_reports(report.spec.chunks)
        name = report.metadata.name
        body = to_plain(report)
        version = self._versions.get(name)
        try:
            if version is None:
                # Apply, not create: rights restricted to names do not permit create.
                patch = Patch(type="apply", body=body, force=True)
                stored, _ = await self.store.patch(REPORTS, name, patch, write=self._write)
            else:
                body["metadata"]["resourceVersion"] = version
                stored = await self.store.update(REPORTS, body, write=self._write)
        except (Conflict, NotFound):
            self._has_versions = False  # something else wrote or removed it
            raise
        self._hear()
        self._versions[name] = version_of(stored)

    async def _find_reports(self, chunks: int) -> None:
        """Finds reports of earlier runs, and deletes those of chunks that no longer exist.

        Each report is read by name, since an agent outside the hub may not list reports.
        """
        self._versions.clear()
        chunk = 0
        while await self._find_chunk(chunk, is_used=chunk < chunks) or chunk < chunks:
            chunk += 1
        self._has_versions = True

    async def _find_chunk(self, chunk: int, *, is_used: bool) -> bool:
        """Whether there is a report of a chunk; reports of an unused chunk are deleted."""
        is_there = False
        for is_difference in (False, True):
            name = report_name(self.cluster, chunk, is_difference=is_difference)
            try:
                stored = await self._call(self.store.get(REPORTS, name))
            except (NotFound, Forbidden):  # beyond the names that the agent may read, none exist
                continue
            is_there = True
            if is_used:
                self._versions[name] = version_of(stored)
            else:
                await self.store.delete(REPORTS, name, write=self._write)
        return is_there

    async def write_work_status(self, name: str, status: WorkStatus) -> None:
        """Replaces the status of a work; does nothing if the work is gone."""
        patch = Patch(
            type="json", body=[{"op": "add", "path": "/status", "value": to_plain(status)}]
        )
        try:
            await self._call(
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

    async def read_cluster_status(self) -> JsonObject:
        """The cluster's status, as the hub has it; empty if it does not know the cluster."""
        try:
            stored = await self._call(self.store.get(CLUSTERS, self.cluster))
        except NotFound:
            return {}
        status: JsonObject = stored.object().get("status") or {}
        return status

    async def write_cluster_status(self, status: JsonObject) -> None:
        """Changes the fields of the cluster's status that the agent owns."""
        patch = Patch(type="merge", body={"status": status})
        try:
            await self._call(
                self.store.patch(
                    CLUSTERS, self.cluster, patch, subresource="status", write=self._write
                )
            )
        except NotFound:
            return
