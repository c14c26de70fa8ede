"""Writes on a real kube-apiserver that only the hub can check: the server asks it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fairway.api.errors import ApiError, Forbidden, NotFound
from fairway.clock import SystemClock
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.hub.webhooks import Address, Webhooks
from fairway.kubeapi import KubeApi
from fairway.store.interface import Patch, ResourceKey, Write
from fairway.store.keys import JOBS, NAMESPACES, WEBHOOKS, WORKLOADS
from fairway.store.kubernetes import checked_writes
from fairway.store.kubernetes.store import KubernetesStore
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.test_hub import JOB, PATIENCE_SECONDS, POLICY, clean_store, hub_on, until_all
from tests.kubernetes.test_submitters import until_counted
from tests.waiting import seen

pytestmark = pytest.mark.real

OBJECTS = """
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: closed}
spec: {uncovered: Unlimited, submitters: {users: [ada], groups: [lab]}}
---
apiVersion: fairway.dev/v1alpha1
kind: Queue
metadata: {name: small}
spec: {waitingWorkloadsMax: 1}
---
apiVersion: v1
kind: Namespace
metadata: {name: checked, labels: {fairway.dev/default-queue: closed}}
"""
NATIVE = """
apiVersion: batch/v1
kind: Job
metadata: {name: native, namespace: %s, labels: {%s}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: training}]}
"""
DENIED = 'admission webhook "%s" denied the request: '
SENTENCE = (
    "queue closed takes no workloads of eve in namespace %s: its submitters name neither; use"
    " another queue, or have the namespace, the user or a group added to its spec.submitters"
)


@dataclass(frozen=True, kw_only=True)
class People:
    """People who may write everything, as far as RBAC goes."""

    api: KubeApi

    async def apply(
        self, text: str, *, who: str = "eve", group: str = "people", dry_run: bool = False
    ) -> str:
        """Applies objects; returns what was done, warnings and refusals."""
        api = self.api.acting_as(who, (group, "system:masters"))
        said = []
        for body in yaml.safe_load_all(text):
            served, metadata = await api.discovery.of(body), body["metadata"]
            kind = ResourceKey(served.group, served.version, served.plural)
            patch = Patch(type="apply", body=body, force=True)
            namespace = metadata.get("namespace", "")
            write = Write(user=who, manager="people", dry_run=dry_run)
            try:
                await api.patch(kind, metadata["name"], patch, namespace=namespace, write=write)
            except ApiError as fault:
                said.append(str(fault))
            else:
                said.append(f"{metadata['name']} applied")
            said.extend(f"Warning: {warning}" for warning in write.warnings)
        return "\n".join(said)

    async def until_said(self, text: str, said: str, *, who: str = "eve") -> str:
        """Tries a write until it is answered so: the server and the hub know a change soon."""
        return await seen(
            lambda: self.apply(text, who=who, dry_run=True), lambda answer: said in answer, said
        )


def workload(number: int, queue: str) -> str:
    return (JOB % (number, number)).replace("queue: research", f"queue: {queue}")


def pointing(api: KubeApi) -> Webhooks:
    """Points a server at a hub that is not there."""
    client = {"url": "https://127.0.0.1:1"}
    address = Address(
        client=client,
        own_name="admin",
        admission_path=lambda: "/admit/word",
        conversion_path=lambda: "/convert/word",
    )
    return Webhooks(store=KubernetesStore(api), clock=SystemClock(), address=address)


async def point_at_nothing(store: KubernetesStore) -> None:
    """As a hub that has gone leaves the server."""
    task = asyncio.ensure_future(pointing(store.api).run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(NotFound):
                    await store.get(WEBHOOKS, checked_writes.NAME)
                    return
                await asyncio.sleep(0.05)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_server_asks_the_hub_about_writes_that_it_cannot_check(
    real: ControlPlane, tmp_path: Path
) -> None:
    async with clean_store(real) as store:
        people = People(api=store.api)
        await prepare_kubernetes(store, SystemClock())
        await point_at_nothing(store)
        # While no hub answers, everything passes.
        await people.apply(OBJECTS)
        assert "train-0 applied" in await people.apply(workload(0, "closed"))
        await until_counted(store)
        async with hub_on(real, tmp_path):
            # The core holds what passed.
            held = await until_all(
                store, 1, lambda item: item.status.reason == "NotASubmitter", "is held"
            )
            assert held["train-0"].status.claim is None

            ours = DENIED % checked_writes.NAME
            refusal = f'{ours}workloads.fairway.dev "train-1" is forbidden: spec.queue: '
            await people.until_said(workload(1, "closed"), refusal + SENTENCE % "default")
            assert "train-1 applied" in await people.apply(workload(1, "closed"), who="ada")
            assert "train-2 applied" in await people.apply(workload(2, "closed"), group="lab")
            own = yaml.safe_load(workload(3, "closed"))
            # As the hub does for a user at its own address.
            with pytest.raises(Forbidden, match="queue closed takes no workloads of grace"):
                await store.create(WORKLOADS, own, namespace="default", write=Write(user="grace"))

            labelled = NATIVE % ("default", "fairway.dev/queue: closed")
            native = (
                f'jobs.batch "native" is forbidden: metadata.labels[fairway.dev/queue]: {SENTENCE}'
            )
            assert DENIED % f"native.{checked_writes.NAME}" + native % "default" in (
                await people.apply(labelled)
            )
            # Its workload is the hub's own write, which is not refused; the submitter is noted.
            assert "native applied" in await people.apply(labelled, who="ada")
            await until_all(store, 3, lambda item: item.status.phase == "Running", "run")
            await until_all(store, 1, lambda item: item.status.reason == "NotASubmitter", "is held")
            await store.delete(JOBS, "native", namespace="default", write=Write())
            assert DENIED % f"default.{checked_writes.NAME}" in (
                await people.until_said(NATIVE % ("checked", ""), SENTENCE % "checked")
            )
            await people.until_said(NATIVE % ("default", ""), "native applied")

            assert "train-4 applied" in await people.apply(workload(4, "small"))
            full = "queue small already has its maximum of 1 pending workloads; try again when"
            await people.until_said(workload(5, "small"), full)
            assert full in await people.apply(workload(1, "small"), who="ada")

            broken = POLICY % '{clusters: {expressions: ["cluster.name ="]}}'
            position = (
                "spec.clusters.expressions[0]: not a valid CEL expression: 1:14: Syntax error"
            )
            assert position in await people.apply(broken)
            breach = "fleet policy ours does not allow image training"
            await people.apply(POLICY % "{registries: [ghcr.io], enforcement: Warn}")
            warned = await people.until_said(workload(6, "closed"), f"Warning: {breach}", who="ada")
            assert "train-6 applied" in warned
            await people.apply(POLICY % "{registries: [ghcr.io]}")
            await people.until_said(
                workload(6, "closed"), f"is forbidden: spec.template: {breach}", who="ada"
            )
        await store.delete(NAMESPACES, "checked", write=Write())


async def test_a_hub_without_the_right_says_so_once_and_goes_on(
    real: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    async with clean_store(real) as store:
        await prepare_kubernetes(store, SystemClock())
        caplog.clear()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await pointing(store.api.acting_as("weak")).run()
        warnings = [item for item in caplog.records if item.levelno >= logging.WARNING]
        conversion, admission = (item.getMessage() for item in warnings)
        assert conversion.startswith("flavors.fairway.dev is served in one version only: ")
        assert admission.startswith("the server does not ask this hub about writes, so submitters,")
