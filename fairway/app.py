"""The composition root: the only place where concrete parts are chosen and put together."""

from __future__ import annotations

import gc
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fairway import demo
from fairway.api import crds
from fairway.api.errors import AlreadyExists, NotFound
from fairway.clock import Clock, SystemClock
from fairway.resources.catalogue import standard_catalogue
from fairway.schema.node import JsonObject
from fairway.server import certificates, escalation, kubeconfig
from fairway.server.api import Api
from fairway.server.audit import AuditLog
from fairway.server.bootstrap_roles import bootstrap_objects
from fairway.server.documents import Documents
from fairway.server.http import HttpServer
from fairway.server.identity import Identity
from fairway.server.metrics import Metrics
from fairway.server.objects import Gate, Objects
from fairway.server.questions import Questions
from fairway.server.rbac import Authorizer
from fairway.server.reviewing import Reviewer
from fairway.server.routes import Target
from fairway.server.service_accounts import FindUid, ServiceAccountTokens
from fairway.server.tokens import Authenticator
from fairway.server.watching import Streams
from fairway.store.embedded.history import Change
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, ResourceKey, Write

_log = logging.getLogger(__name__)

_SYSTEM = Write(user="system:fairway", manager="fairway-hub")
_NAMESPACES = ("default", "fairway-system", "kube-public", "kube-system")
_RENEWAL_SECONDS = 12 * 3600.0
_RBAC = "rbac.authorization.k8s.io"
_UID_KINDS = {"ServiceAccount": "serviceaccounts", "Pod": "pods", "Secret": "secrets"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HubOptions:
    """Where a hub keeps its data and where it listens."""

    data: Path
    address: str = "127.0.0.1"
    port: int = 7878  # 0: any free one
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    host_names: tuple[str, ...] = ()  # further names for a generated certificate
    has_demo: bool = False  # begin with the demo fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub."""

    url: str
    kubeconfig: Path
    token: str
    store: EmbeddedStore
    api: Api


@asynccontextmanager
async def open_hub(options: HubOptions, *, clock: Clock | None = None) -> AsyncIterator[Hub]:
    """Runs a hub for as long as the context lasts; ends it in order, losing nothing."""
    clock = clock or SystemClock()
    options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = open_store(options.data, clock=clock)
    audit_log = AuditLog(options.data / "audit.log")
    try:
        await prepare_store(store)
        if options.has_demo:
            await load_demo(store)
        api = _make_api(store, options.data, audit_log, clock)
        audit_log.start()
        files = _serving_files(options, clock)
        tls = certificates.server_context(files)
        server = HttpServer(api.answer, address=options.address, port=options.port, tls=tls)
        port = await server.start()
        if options.tls_certificate is None:
            store.run(_renew_certificate(options, tls, clock))
        try:
            url = _url(options.address, port)
            token = api.authenticator.admin_token()
            written = kubeconfig.write(
                options.data, server=url, token=token, authority=files.authority
            )
            yield Hub(url=url, kubeconfig=written, token=token, store=store, api=api)
        finally:
            await store.end_watches()
            await server.close()
    finally:
        await store.close()
        await audit_log.close()


def settle_memory() -> None:
    """Takes what lives as long as the process out of the collector's sight.

    A hub holds many objects that never form cycles; looking through them every few hundred
    allocations costs a quarter of all writes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def open_store(folder: Path, *, clock: Clock | None = None) -> EmbeddedStore:
    """The embedded store of a data folder, read and running."""
    path = folder / "fairway.db"
    path.touch(mode=0o600)  # it holds secrets; SQLite gives its other files the same mode
    journal = SqliteJournal(path)
    store = EmbeddedStore(journal, standard_catalogue(), clock=clock)
    store.start()
    return store


async def prepare_store(store: EmbeddedStore) -> None:
    """What every hub holds from the start: namespaces, roles, and our kinds."""
    for definition in crds.definitions():
        await _apply(store, ("apiextensions.k8s.io", "v1", "customresourcedefinitions"), definition)
    for name in _NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await _create(store, ("", "v1", "namespaces"), body)
    for role in bootstrap_objects():
        await _create(store, (_RBAC, "v1", role["kind"].lower() + "s"), role)


async def load_demo(store: EmbeddedStore) -> None:
    """Puts the demo fleet into a hub; what is there already stays as it is."""
    for document in demo.documents():
        body = document.value
        group, _, version = body["apiVersion"].rpartition("/")
        resource = store.catalogue.of_kind(group, version, body["kind"])
        assert resource is not None, f"{document.place}: no such kind"
        namespace = body["metadata"].get("namespace", "")
        await _create(store, (group, version, resource.plural), body, namespace)


async def _apply(store: EmbeddedStore, kind: tuple[str, str, str], body: JsonObject) -> None:
    """Makes an object what this version of the hub says, leaving what others added."""
    patch = Patch(type="apply", body=body, force=True)
    await store.patch(ResourceKey(*kind), body["metadata"]["name"], patch, write=_SYSTEM)


async def _create(
    store: EmbeddedStore, kind: tuple[str, str, str], body: JsonObject, namespace: str = ""
) -> None:
    """Makes an object once; what an administrator made of it since then stays."""
    try:
        await store.create(ResourceKey(*kind), body, namespace=namespace, write=_SYSTEM)
    except AlreadyExists:
        return


def _make_api(store: EmbeddedStore, data: Path, audit_log: AuditLog, clock: Clock) -> Api:
    metrics = Metrics()
    authorizer = _follow_roles(store)
    service_accounts = ServiceAccountTokens(data, _find_uid(store), clock=clock)
    authenticator = Authenticator(data, service_accounts, clock=clock)
    store.writer.figures.observers.append(metrics.batch_committed)
    reviewer = Reviewer(
        authorizer=authorizer,
        authenticator=authenticator,
        service_accounts=service_accounts,
        store=store,
    )
    documents = Documents(
        catalogue=store.catalogue,
        metrics=metrics,
        ready=lambda: {"store": store.writer.is_open},
        gather=lambda: _gather(metrics, store, audit_log),
    )
    return Api(
        catalogue=store.catalogue,
        authenticator=authenticator,
        authorizer=authorizer,
        objects=Objects(store, clock, Streams(store, clock, metrics), _gate(authorizer)),
        reviewer=reviewer,
        questions=Questions(store),
        documents=documents,
        audit_log=audit_log,
        metrics=metrics,
        clock=clock,
    )


def _follow_roles(store: EmbeddedStore) -> Authorizer:
    """An authorizer that knows every role and binding from the moment it is on disk."""
    kinds = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
    objects = [body for plural in kinds for body in store.bodies((_RBAC, plural))]
    authorizer = Authorizer(objects)

    def follow(change: Change) -> None:
        if change.kind[0] != _RBAC:
            return
        body = change.record.body()
        if change.is_removed:
            namespace, name = change.record.name
            authorizer.remove(body["kind"], name, namespace)
        else:
            authorizer.upsert(body)
        if body["kind"] == "ClusterRole":
            store.run(_write_aggregations(store, authorizer))

    store.followers.append(follow)
    store.run(_write_aggregations(store, authorizer))
    return authorizer


async def _write_aggregations(store: EmbeddedStore, authorizer: Authorizer) -> None:
    """Writes the gathered rules of aggregated roles onto them, for people to see."""
    for role in authorizer.unwritten_aggregations():
        patch = Patch(type="merge", body={"rules": role["rules"]})
        with suppress(NotFound):  # deleted meanwhile
            key = ResourceKey(_RBAC, "v1", "clusterroles")
            await store.patch(key, role["metadata"]["name"], patch, write=_SYSTEM)


def _find_uid(store: EmbeddedStore) -> FindUid:
    def find(kind: str, namespace: str, name: str) -> str | None:
        return store.uid_of(("", _UID_KINDS.get(kind, "")), (namespace, name))

    return find


def _gate(authorizer: Authorizer) -> Gate:
    """Nobody hands out rights that they do not hold."""

    def gate(identity: Identity, target: Target, body: JsonObject, old: JsonObject | None) -> None:
        if target.group == _RBAC:
            escalation.confirm(
                authorizer,
                identity,
                body,
                old=old,
                namespace=target.namespace,
                request_name=target.name,
            )

    return gate


def _gather(metrics: Metrics, store: EmbeddedStore, audit_log: AuditLog) -> None:
    metrics.set_objects(store.counts())
    metrics.set_version(store.writer.published)
    metrics.set_audit_lines_lost(audit_log.lost_lines)


def _serving_files(options: HubOptions, clock: Clock) -> certificates.ServingFiles:
    """TLS always, on loopback too: kubectl sends no credentials over plain HTTP."""
    if options.tls_certificate is not None and options.tls_key is not None:
        return certificates.given(options.tls_certificate, options.tls_key)
    hosts = (options.address, *options.host_names)
    return certificates.generated(options.data, hosts, clock=clock)


async def _renew_certificate(options: HubOptions, tls: ssl.SSLContext, clock: Clock) -> None:
    """Looks twice a day whether the generated certificate is due; connections stay as they are."""
    while True:
        await clock.sleep(_RENEWAL_SECONDS)
        certificates.reload(tls, _serving_files(options, clock))


def _url(address: str, port: int) -> str:
    host = "127.0.0.1" if address in ("0.0.0.0", "::", "") else address  # noqa: S104 - compared only
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}:{port}"
