"""An agent in its own process, in or near its cluster, for a hub that cannot reach the cluster.

It is the same agent as in a hub, but it uses the hub's API like any client, with a credential that
is valid for its own cluster. All that it must keep is in one folder: how to reach the hub, the
credential (in files that only their owner can read) and what it remembers of works.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairway import __version__
from fairway.agent.agent import Agent, Beside
from fairway.agent.call_home import Caller
from fairway.agent.drivers.interface import DriverFault
from fairway.agent.drivers.kubernetes.driver import KubernetesDriver
from fairway.agent.fleet import Agents
from fairway.agent.join import agent_side, sealed_box
from fairway.agent.join.hub_side import Credential, Refused, Request
from fairway.agent.join.invitations import Invitation
from fairway.agent.memory import Memory
from fairway.agent.settings import AgentSettings
from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.errors import ApiError
from fairway.api.kindrule import KindRule
from fairway.app.inventories import inventory_of
from fairway.client.access import Access
from fairway.client.errors import ClientError
from fairway.clock import Clock, SystemClock, timestamp
from fairway.controllers.plane import kept_up
from fairway.hub.on_kubernetes import OnKubernetes, access_to
from fairway.kinds.registry import LiveKinds, built_in
from fairway.kinds.rules import kinds_of
from fairway.kubeapi import KubeApi
from fairway.loops import run_steadily
from fairway.metrics.prometheus import PrometheusSources
from fairway.server.access.private_files import make_private_directory, read_private, write_private
from fairway.store.interface import Store, Stored
from fairway.store.keys import KIND_RULES
from fairway.store.kubernetes.store import KubernetesStore
from fairway.store.mirrors import Mirror, Name

_log = logging.getLogger(__name__)

_AGAIN_SECONDS = 60.0
_SKEW_SECONDS = 60.0
_SECONDS_MOST = 3600.0  # between checks whether the credential is due


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """Settings of an agent in its own process."""

    data: Path
    invitation: Invitation | None = None  # None: it has joined before
    cluster: OnKubernetes = field(default_factory=OnKubernetes)  # how it is reached from here
    tell: Callable[[str], None] = _log.info


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Which hub an agent belongs to; the credential is in a file beside it."""

    server: str
    cluster: str
    expires_at: str
    given_at: float
    invitation: str  # digest of the invitation it joined by
    authority: str = ""
    tls_server_name: str = ""
    streams: str = ""  # where the hub takes streams, if elsewhere
    streams_authority: str = ""


class AgentFolder:
    """The files of an agent's membership."""

    def __init__(self, folder: Path) -> None:
        make_private_directory(folder)
        self.folder = folder
        self._token = folder / "token"
        self._file = folder / "hub.json"
        self._key = folder / "key"

    def membership(self) -> Membership | None:
        if not self._file.exists():
            return None
        return msgspec.json.decode(read_private(self._file), type=Membership)

    def keep(self, membership: Membership, credential: Credential) -> None:
        """Writes the token first: a membership without one would be useless."""
        write_private(self._token, credential.token.encode())
        write_private(self._file, msgspec.json.encode(membership))
        self._key.unlink(missing_ok=True)

    def key(self) -> bytes:
        """The key to join with, the same until it has been used."""
        if not self._key.exists():
            write_private(self._key, sealed_box.new_key())
        return read_private(self._key)

    def access(self, membership: Membership) -> Access:
        """Access to the hub for this agent, always with the newest token."""
        return Access(
            server=membership.server,
            source=str(self.folder),
            authority=membership.authority.encode(),
            tls_server_name=membership.tls_server_name,
            token_file=self._token,
        )

    def streams(self, membership: Membership) -> Access:
        """Access to where the hub takes streams, with the same token."""
        if not membership.streams:
            return self.access(membership)
        return Access(
            server=membership.streams,
            source=str(self.folder),
            authority=membership.streams_authority.encode(),
            token_file=self._token,
        )


async def run_agent(options: PullOptions, *, clock: Clock | None = None) -> None:
    """Joins the hub if it has not yet, and runs the agent until cancelled."""
    await run_steadily(lambda steady: _run_agent(options, steady), clock or SystemClock())


async def _run_agent(options: PullOptions, clock: Clock) -> None:
    folder = AgentFolder(options.data)
    membership = await join(folder, options, clock)
    hub = KubeApi(folder.access(membership), clock)
    streams = KubeApi(folder.streams(membership), clock)
    store = KubernetesStore(hub)
    kinds = LiveKinds(built_in())
    rules = _follow(store, kinds, clock)
    sources = PrometheusSources(clock)
    agents = _agents(store, options, membership.cluster, kinds, sources)
    options.tell(f"Looking after {membership.cluster} for {membership.server}.")
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(rules.run())
            tasks.create_task(keep_renewing(folder, hub, clock))
            await rules.is_complete.wait()
            tasks.create_task(kept_up(agents.run, clock))
            caller = Caller(streams, membership.cluster, agents, clock)
            tasks.create_task(kept_up(caller.run, clock))
    finally:
        await sources.close()
        await streams.close()
        await store.close()


async def join(folder: AgentFolder, options: PullOptions, clock: Clock) -> Membership:
    """The membership in a folder; with an invitation that was not used yet, a new one."""
    membership, invitation = folder.membership(), options.invitation
    if invitation is None:
        if membership is None:
            raise Refused("this agent has not joined yet: give it an invitation with --join")
        return membership
    if membership is not None and membership.invitation == invitation.digest():
        return membership
    credential = await _ask(folder, invitation, options.tell, clock)
    membership = Membership(
        server=invitation.server,
        cluster=invitation.cluster,
        expires_at=credential.expires_at,
        given_at=clock.now(),
        invitation=invitation.digest(),
        authority=invitation.authority,
        tls_server_name=invitation.tls_server_name,
        streams=invitation.streams,
        streams_authority=invitation.streams_authority,
    )
    folder.keep(membership, credential)
    hub = KubeApi(folder.access(membership), clock)
    try:
        with suppress(ApiError):  # otherwise the invitation expires by itself before long
            await agent_side.use_up(hub, membership.cluster)
    finally:
        await hub.close()
    return membership


async def _ask(
    folder: AgentFolder, invitation: Invitation, tell: Callable[[str], None], clock: Clock
) -> Credential:
    key = folder.key()
    request = Request(
        public_key=sealed_box.public_of(key),
        host=socket.gethostname(),
        version=__version__,
        asked_at=timestamp(clock.now()),
    )
    hub = KubeApi(invitation.access(), clock)
    try:
        await agent_side.ask(hub, invitation.cluster, request)
        tell(f"Asked to be {invitation.cluster}, with the key {request.fingerprint}.")
        words = f"fairway accept {invitation.cluster} --fingerprint {request.fingerprint}"
        tell(f"Waiting until an administrator of the hub runs: {words}")
        return await agent_side.await_acceptance(hub, invitation.cluster, key, clock)
    finally:
        await hub.close()


async def keep_renewing(folder: AgentFolder, hub: KubeApi, clock: Clock) -> None:
    """Renews the credential whenever it is due, for ever."""
    while True:
        membership = folder.membership()
        assert membership is not None, "it has joined"
        held = Credential(token="", expires_at=membership.expires_at)
        left = agent_side.due_at(held, membership.given_at) - clock.now()
        is_of_the_future = membership.given_at > clock.now() + _SKEW_SECONDS  # its clock was ahead
        if left > 0 and not is_of_the_future:
            await clock.sleep(min(left, _SECONDS_MOST))
            continue
        try:
            await renew(folder, membership, hub, clock)
        except (ApiError, OSError) as fault:
            _log.warning("the credential cannot be renewed: %s", fault)
            await clock.sleep(_AGAIN_SECONDS)


async def renew(folder: AgentFolder, membership: Membership, hub: KubeApi, clock: Clock) -> None:
    """Replaces the present credential with a new one."""
    credential = await agent_side.renew_credential(hub, membership.cluster)
    newer = msgspec.structs.replace(
        membership, expires_at=credential.expires_at, given_at=clock.now()
    )
    folder.keep(newer, credential)


def _agents(
    store: Store, options: PullOptions, name: str, kinds: LiveKinds, sources: PrometheusSources
) -> Agents:
    clock = sources.clock

    async def find_access() -> Access:
        try:
            return access_to(options.cluster)
        except ClientError as fault:
            raise DriverFault(str(fault)) from fault

    def make(cluster: Cluster, settings: AgentSettings) -> Agent | None:
        described = cluster.spec.kubernetes
        if described is None or described.connection != "Pull":
            _log.warning("%s is not looked after by an agent of its own", name)
            return None
        return Agent(
            name,
            store=store,
            driver=KubernetesDriver(cluster, kinds.of, clock, find_access=find_access),
            memory=Memory(options.data / "works"),
            find_kind=kinds.of,
            clock=clock,
            settings=settings,
            beside=Beside(inventory=inventory_of(cluster, clock), sources=sources),
        )

    return Agents(store, make, clock=clock, only=name)


def _follow(store: Store, kinds: LiveKinds, clock: Clock) -> Mirror:
    """Keeps the kinds up to date with the hub's rules."""
    mirror = Mirror(store, KIND_RULES, clock=clock)
    rules: dict[Name, KindRule] = {}

    def follow(name: Name, stored: Stored | None) -> None:
        if stored is None:
            rules.pop(name, None)
        else:
            rules[name] = decode(stored.raw, KindRule)
        kinds.use(built_in().plus(kinds_of(list(rules.values())).kinds))

    mirror.followers.append(follow)
    return mirror
