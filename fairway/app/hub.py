"""A hub's process: store, controllers, agents and API, assembled and ended in order."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairway.agent.fleet import Agents
from fairway.app.agents import make_agents
from fairway.app.api_server import SignInOptions, make_api, make_openid
from fairway.app.embedded_store import load_demo, open_store, prepare_store
from fairway.app.local_clusters import LocalClusters
from fairway.clock import Clock, SteadyClock, SystemClock
from fairway.controllers.plane import ControlPlane, PlaneOptions, kept_up, run_all
from fairway.controllers.scheduling.planner import ProcessPlanner
from fairway.controllers.terms import Settings as TermSettings
from fairway.controllers.timeline.outbox import Outbox
from fairway.hub.admission import Admission
from fairway.hub.agent_lines import Reaching
from fairway.hub.answers import HubAnswers
from fairway.hub.authority import with_shared_authority
from fairway.hub.backing import Backing, embedded_backing
from fairway.hub.decision_log import BackgroundSink, FileSink
from fairway.hub.encryption_keys import KeySource
from fairway.hub.history_log import HistoryFile
from fairway.hub.line_log import LineFile
from fairway.hub.on_kubernetes import (
    OnKubernetes,
    backing_of,
    open_kubernetes,
    prepare_kubernetes,
)
from fairway.hub.pod_usage import AgentMeter
from fairway.hub.replicas import ReplicaAddress, among_replicas
from fairway.hub.tenants import tenant_among
from fairway.hub.trace_collector import TraceOptions, open_collector
from fairway.hub.upkeep import Keeping, drop_old_record, seal_memories
from fairway.hub.webhooks import Address, Webhooks, client_of
from fairway.kinds.registry import LiveKinds, built_in
from fairway.metrics.prometheus import PrometheusSources
from fairway.sealing import Keyring
from fairway.server.access import certificates, kubeconfig
from fairway.server.access.audit import AuditLog
from fairway.server.access.fairness import Shares
from fairway.server.access.secret_box import secret_of
from fairway.server.access.sign_in import origins_of
from fairway.server.api import Api
from fairway.server.metrics import Metrics
from fairway.server.wire.connections import ConnectionLimits
from fairway.server.wire.http import HttpServer
from fairway.store.interface import Store

_RENEWAL_SECONDS = 12 * 3600.0
# Browsers that have seen a certificate that they trust accept nothing less for half a year.
_HTTPS_ONLY = {"Strict-Transport-Security": f"max-age={180 * 24 * 3600}"}
_DECISIONS_MOST = 5_000  # rounds of decisions that are kept for the next hub
_FLUSH_SECONDS = 3.0  # for which a hub that ends sends the last traces


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
    has_controllers: bool = True  # false: stores objects, and decides nothing
    kubernetes: OnKubernetes | None = None  # where its objects are; None: in the data folder
    replica_address: str = ""  # where other replicas reach this one, if not at `address`
    replica_port: int = 0  # 0: any free one
    lease_seconds: int = 15  # after which another replica leads, if the leader is silent
    sign_in: SignInOptions = field(default_factory=SignInOptions)
    keys: KeySource = field(default_factory=KeySource)  # for what is on disk
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    shares: Shares = field(default_factory=Shares)  # of callers
    local_folders: tuple[Path, ...] = ()  # of this machine, that pods of local clusters may use
    trusts_local: bool = False  # whether tenants may run pods that are not isolated
    traces: TraceOptions = field(default_factory=TraceOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub."""

    url: str
    kubeconfig: Path
    token: str
    is_encrypted: bool  # what is on disk
    store: Store
    api: Api
    plane: ControlPlane | None = None
    agents: Agents | None = None


@asynccontextmanager
async def open_hub(options: HubOptions, *, clock: Clock | None = None) -> AsyncIterator[Hub]:
    """Runs a hub for as long as the context lasts; ends it in order, losing nothing."""
    clock = clock or SteadyClock(SystemClock())
    options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    keys = await asyncio.to_thread(lambda: options.keys.keyring(outside=options.data))
    async with _open_store(options, clock, keys) as backing:
        await asyncio.to_thread(seal_memories, options.data, keys)
        if keys is not None:
            drop_old_record(options.data)
        if options.has_demo:
            await load_demo(backing.store, backing.catalogue)
        audit_log = AuditLog(options.data / "audit.log")
        openid = make_openid(options.sign_in, clock)
        keeping = Keeping(
            data=options.data,
            clock=clock,
            moment=backing.moment,
            reseal=backing.reseal,
            source=options.keys,
            keys=keys,
        )
        try:
            api = make_api(
                backing,
                options.data,
                audit_log,
                clock,
                keeping=keeping,
                shares=options.shares,
                openid=openid,
                is_page_read_only=options.sign_in.is_page_read_only,
            )
            api.questions.is_deciding = options.has_controllers
            audit_log.start()
            async with (
                _serve(backing, api, options, clock) as served,
                _open_outbox(options, clock) as outbox,
                _run_controllers(
                    backing, api, options, keeping=keeping, served=served, outbox=outbox
                ) as (plane, agents),
            ):
                yield Hub(
                    url=served.url,
                    kubeconfig=served.kubeconfig,
                    token=api.authenticator.admin_token(),
                    is_encrypted=keys is not None,
                    store=backing.store,
                    api=api,
                    plane=plane,
                    agents=agents,
                )
        finally:
            await audit_log.close()
            if openid is not None:
                await openid.provider.close()


@asynccontextmanager
async def _open_store(
    options: HubOptions, clock: Clock, keys: Keyring | None
) -> AsyncIterator[Backing]:
    """The store of a hub, ready, for as long as the context lasts."""
    if options.kubernetes is not None:
        remote = open_kubernetes(options.kubernetes, clock)
        try:
            await prepare_kubernetes(remote, clock)
            async with backing_of(remote, clock) as backing:
                yield backing
        finally:
            await remote.close()
        return
    store = open_store(options.data, clock=clock, keys=keys)
    try:
        await prepare_store(store)
        yield embedded_backing(store)
    finally:
        await store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """Where a hub answers, and the authority by which clients trust it."""

    url: str
    kubeconfig: Path
    authority: bytes | None


@asynccontextmanager
async def _open_outbox(options: HubOptions, clock: Clock) -> AsyncIterator[Outbox | None]:
    """Where trace spans are put, for as long as the context lasts; None if none are made."""
    collector = open_collector(options.traces, clock)
    if collector is None or not options.has_controllers:
        yield None
        return
    undelivered = LineFile(options.data / "traces")
    outbox = Outbox(collector, clock, keeper=undelivered)
    try:
        yield outbox
        await outbox.flush(_FLUSH_SECONDS)
    finally:
        await collector.close()
        undelivered.close()


class _Kept:
    """What a hub keeps in files, for the next one."""

    def __init__(self, data: Path) -> None:
        self.sink = BackgroundSink(FileSink(data / "decisions"))
        self.spans = LineFile(data / "spans")
        self.decided = LineFile(data / "decided", lines_most=_DECISIONS_MOST)
        self.history = HistoryFile(data / "history")

    def close(self) -> None:
        for file in (self.sink, self.spans, self.decided, self.history):
            file.close()


@asynccontextmanager
async def _run_controllers(
    backing: Backing,
    api: Api,
    options: HubOptions,
    *,
    keeping: Keeping,
    served: _Served,
    outbox: Outbox | None,
) -> AsyncIterator[tuple[ControlPlane | None, Agents | None]]:
    """Controllers and agents, for as long as the context lasts."""
    if not options.has_controllers:
        yield None, None
        return
    store, clock, kinds = backing.store, keeping.clock, LiveKinds(built_in())
    kept = _Kept(options.data)
    folder, keys, local = options.data / "clusters", keeping.keys, _local_clusters(api, options)
    sources = PrometheusSources(clock)
    meter = AgentMeter(sources, clock)
    agents = make_agents(
        store, folder, kinds=kinds, clock=clock, keys=keys, local=local, sources=sources
    )
    keeping.agents = agents
    is_alone = options.kubernetes is None
    webhooks = Webhooks(store=store, clock=clock, address=_address(backing, api, options, served))
    plane = ControlPlane(
        store=store,
        clock=clock,
        kinds=kinds,
        options=PlaneOptions(
            terms=_terms(options),
            secret=secret_of(options.data),
            make_planner=ProcessPlanner,
            sink=kept.sink,
            decisions=kept.decided,
            spans=kept.spans,
            history=kept.history,
            outbox=outbox,
            # Only one of several replicas runs agents: two would undo each other's work.
            beside=() if is_alone else (agents, webhooks),
            is_alone=is_alone,
            sources=sources,
            meter=meter,
            measurer=meter,
            display=api.metrics.fleet,
        ),
    )
    if not is_alone:
        admission = Admission(plane.cache, backing.catalogue, own_name=backing.own_name)
        api.open_webhooks(admission.check)
    _count_plans(plane, api.metrics)
    parts = [plane.run(), *([kept_up(agents.run, clock)] if is_alone else [])]
    running = asyncio.ensure_future(run_all(parts))
    try:
        async with _reaching(agents, plane, options, clock, store) as reaching:
            api.talks.reach = meter.reach = reaching
            api.questions.answers_from = HubAnswers(plane, reaching)
            try:
                yield plane, agents
            finally:
                api.questions.answers_from = api.talks.reach = meter.reach = None
                api.open_webhooks(None)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await plane.close()
        await sources.close()
        kept.close()


def _count_plans(plane: ControlPlane, metrics: Metrics) -> None:
    """Lets a hub's metrics follow what its control plane does."""
    scheduler = plane.scheduler
    scheduler.observers.append(lambda planned, *_: metrics.plan_made(planned.faults))
    scheduler.time_observers.append(
        lambda planned, seconds: metrics.planner_called(seconds, len(planned.steps))
    )
    scheduler.failure_observers.append(metrics.planner_failed)
    plane.fleet_policies.observers.append(metrics.set_violations)
    metrics.watch_planner(lambda: plane.planner.pid)
    metrics.report_leading(lambda: plane.terms.is_leader)


def _terms(options: HubOptions) -> TermSettings:
    return TermSettings(
        identity=_identity(),
        duration_seconds=options.lease_seconds,
        # No other process can have the store of a folder open.
        takes_over_at_once=options.kubernetes is None,
    )


def _address(backing: Backing, api: Api, options: HubOptions, served: _Served) -> Address:
    """Where a server that keeps the objects asks the hub."""
    return Address(
        client=client_of(served.url, options.host_names, served.authority),
        own_name=backing.own_name,
        admission_path=api.admissions.path,
        conversion_path=api.conversions.path,
    )


def _local_clusters(api: Api, options: HubOptions) -> LocalClusters:
    def find_tenant() -> str:
        if options.kubernetes is not None:
            return "its objects are on a Kubernetes API server"
        if options.sign_in.openid is not None:
            return "users sign in with an OpenID provider"
        return tenant_among(api.authenticator.identities(), api.authorizer.bound())

    own = options.kubernetes.kubeconfig if options.kubernetes is not None else None
    files = (options.tls_key, options.keys.file, Path(own).expanduser() if own else None)
    return LocalClusters(
        hidden=(options.data, *(file for file in files if file is not None)),
        folders=options.local_folders,
        is_trusting=options.trusts_local,
        find_tenant=find_tenant,
    )


@asynccontextmanager
async def _reaching(
    agents: Agents, plane: ControlPlane, options: HubOptions, clock: Clock, store: Store
) -> AsyncIterator[Reaching]:
    """How this process reaches agents: directly, and through other replicas if there may be any."""
    async with AsyncExitStack() as stack:
        replicas = None
        if options.kubernetes is not None:
            place = ReplicaAddress(
                data=options.data,
                address=options.address,
                port=options.replica_port,
                shown=options.replica_address,
            )
            replicas = await stack.enter_async_context(among_replicas(store, place, clock))
        reaching = Reaching(agents, plane.cache, clock, replicas=replicas)
        try:
            yield reaching
        finally:
            await reaching.close()


def _identity() -> str:
    """The identity of this replica, unique among all on this machine and others."""
    return f"{socket.gethostname()}-{os.getpid()}"


@asynccontextmanager
async def _serve(
    backing: Backing, api: Api, options: HubOptions, clock: Clock
) -> AsyncIterator[_Served]:
    """The API over HTTPS, for as long as the context lasts."""

    def make() -> certificates.ServingFiles:
        return _serving_files(options, clock)

    is_shared = options.kubernetes is not None and options.tls_certificate is None
    files = await with_shared_authority(backing.store, options.data, make) if is_shared else make()
    tls = certificates.server_context(files)
    is_real = options.tls_certificate is not None and certificates.is_signed_by_another(files)
    server = HttpServer(
        api.answer,
        address=options.address,
        port=options.port,
        tls=tls,
        limits=options.connections,
        headers=_HTTPS_ONLY if is_real else {},
        clock=clock,
        closed=api.metrics.connection_closed,
    )
    api.metrics.count_connections(server.connections.__len__)
    port = await server.start()
    renewing = asyncio.ensure_future(_renew_certificate(options, tls, clock))
    try:
        url = _url(options.address, port)
        api.signing_in.origins = origins_of(_page_urls(options, url, port))
        token = api.authenticator.admin_token()
        written = kubeconfig.write(options.data, server=url, token=token, authority=files.authority)
        yield _Served(url=url, kubeconfig=written, authority=files.authority)
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        await backing.end_watches()
        await server.close()


def _serving_files(options: HubOptions, clock: Clock) -> certificates.ServingFiles:
    """TLS always, on loopback too: kubectl sends no credentials over plain HTTP."""
    if options.tls_certificate is not None and options.tls_key is not None:
        return certificates.read_certificate(options.tls_certificate, options.tls_key)
    hosts = (options.address, *options.host_names)
    return certificates.generate_certificate(options.data, hosts, clock=clock)


async def _renew_certificate(options: HubOptions, tls: ssl.SSLContext, clock: Clock) -> None:
    """Checks twice a day whether the generated certificate is due; connections stay open."""
    while options.tls_certificate is None:
        await clock.sleep(_RENEWAL_SECONDS)
        certificates.reload(tls, _serving_files(options, clock))


def _page_urls(options: HubOptions, url: str, port: int) -> list[str]:
    """Where the page is: at the names of the hub's own certificate, and at configured URLs."""
    names = ("localhost", *options.host_names)
    return [url, *(f"https://{name}:{port}" for name in names), *options.sign_in.page_urls]


def _url(address: str, port: int) -> str:
    host = "127.0.0.1" if address in ("0.0.0.0", "::", "") else address  # noqa: S104 - compared only
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}:{port}"
