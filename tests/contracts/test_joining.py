"""Who was invited can only ask, and an agent reaches what is its own cluster's: on either hub."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairway.agent.hub import Hub
from fairway.agent.join import agent_side, hub_side, rights, sealed_box
from fairway.agent.join.hub_side import Refused, Request, Wanted
from fairway.agent.join.invitations import BadInvitation, Invitation, read
from fairway.api.errors import ApiError, Forbidden, NotFound, Unauthorized
from fairway.api.meta import ObjectMeta
from fairway.api.names import work_namespace
from fairway.api.report import ClusterReport, ClusterReportSpec
from fairway.app import HubOptions, open_hub
from fairway.app.agent_process import AgentFolder, PullOptions, join, renew
from fairway.client.access import Access
from fairway.client.kubeconfig import load_access
from fairway.clock import SystemClock
from fairway.hub.on_kubernetes import prepare_kubernetes
from fairway.kubeapi import KubeApi, path_of
from fairway.store.interface import Patch, Selection, WatchFrom
from fairway.store.keys import (
    ACCOUNTS,
    CLUSTERS,
    FLEETS,
    LEASES,
    NAMESPACES,
    QUEUES,
    REPORTS,
    SECRETS,
    WORKLOADS,
    WORKS,
)
from fairway.store.kubernetes.store import KubernetesStore
from fairway.streams.requests import PROTOCOL
from tests.waiting import PATIENCE_SECONDS

CLOCK = SystemClock()
OWN, OTHER = "fairway-cluster-edge", "fairway-cluster-other"
MERGE = Patch(type="merge", body={"metadata": {"labels": {"touched": "yes"}}})


async def heeded(call: Callable[[], Awaitable[Any]]) -> None:
    """Calls until the server heeds the rights that were given: a moment after they were."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await call()
            except Forbidden:
                await asyncio.sleep(0.05)
            else:
                return


@dataclass(frozen=True, kw_only=True)
class Admin:
    """An administrator at their hub."""

    api: KubeApi
    access: Access
    opened: list[KubeApi] = field(default_factory=list)

    async def invite(self, cluster: str = "edge", **wanted: Any) -> Invitation:
        invitation = await hub_side.invite(self.api, self.access, cluster, Wanted(**wanted))
        namespace = work_namespace(cluster)
        guest = self.as_account(namespace, rights.GUEST)
        await heeded(lambda: guest.get(SECRETS, rights.GUEST, namespace))
        return invitation

    def as_account(self, namespace: str, name: str) -> KubeApi:
        """With the rights of an account, though not by its token, which servers remember."""
        return self.api.acting_as(f"system:serviceaccount:{namespace}:{name}")

    def as_token(self, token: str) -> KubeApi:
        return self.seen_by(replace(self.access, token=token, certificate=b"", key=b""))

    def seen_by(self, access: Access) -> KubeApi:
        """The hub as somebody else sees it, until the test ends."""
        self.opened.append(KubeApi(access, CLOCK))
        return self.opened[-1]


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.real)])
async def admin(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Admin]:
    """On a hub that has another cluster already, with works of its own."""
    if request.param == "embedded":
        options = HubOptions(data=tmp_path / "hub", port=0, has_controllers=False)
        async with open_hub(options) as hub:
            async for found in _prepared(load_access(str(hub.kubeconfig))):
                yield found
        return
    access = load_access(str(request.getfixturevalue("real").kubeconfig))
    store = KubernetesStore(KubeApi(access, CLOCK))
    await prepare_kubernetes(store, CLOCK)
    await store.close()
    async for found in _prepared(access):
        yield found


async def _prepared(access: Access) -> AsyncIterator[Admin]:
    api = KubeApi(access, CLOCK)
    try:
        await _clear(api)
        await hub_side.make_namespace(api, OTHER)
        await hub_side.apply_all(api, [_cluster("other"), _work(OTHER), _report("other-0")])
        admin = Admin(api=api, access=access)
        yield admin
        for item in admin.opened:
            await item.close()
    finally:
        await _clear(api)
        await api.close()


async def _clear(api: KubeApi) -> None:
    for kind, name, namespace in (
        (CLUSTERS, "edge", ""),
        (CLUSTERS, "other", ""),
        (REPORTS, "edge-0", ""),
        (REPORTS, "other-0", ""),
        (WORKS, "team.train", OTHER),
        (WORKS, "team.train", OWN),
        (ACCOUNTS, rights.AGENT, OWN),
        (ACCOUNTS, rights.GUEST, OWN),
        (SECRETS, rights.GUEST, OWN),
    ):
        try:
            await api.delete(kind, name, namespace=namespace)
        except NotFound:
            continue


def _cluster(name: str) -> dict[str, Any]:
    identity = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
    return {**identity, "spec": {"kubernetes": {"connection": "Pull"}}}


def _work(namespace: str, name: str = "team.train") -> dict[str, Any]:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Work",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "cluster": "other",
            "attempt": 1,
            "term": 1,
            "workload": {"namespace": "team", "name": "train", "uid": "1"},
        },
    }


def _report(name: str) -> dict[str, Any]:
    identity = {"apiVersion": "fairway.dev/v1alpha1", "kind": "ClusterReport"}
    spec = {
        "cluster": name.rpartition("-")[0],
        "agentEpoch": 1,
        "sequence": 1,
        "seenAt": "2026-01-01T00:00:00Z",
    }
    return {**identity, "metadata": {"name": name}, "spec": spec}


def asker(host: str = "here") -> tuple[bytes, Request]:
    key = sealed_box.new_key()
    return key, Request(public_key=sealed_box.public_of(key), host=host)


async def admitted(admin: Admin) -> KubeApi:
    """The hub as the accepted agent of a cluster sees it."""
    invitation = await admin.invite()
    key, request = asker()
    guest = admin.seen_by(invitation.access())
    await agent_side.ask(guest, "edge", request)
    await hub_side.accept(admin.api, "edge", request)
    credential = await agent_side.await_acceptance(guest, "edge", key, CLOCK)
    agent = admin.as_account(OWN, rights.AGENT)
    await heeded(lambda: agent.get(CLUSTERS, "edge"))
    await heeded(lambda: listed(agent, WORKS, Selection(namespace=OWN)))
    return admin.as_token(credential.token)


async def watched(api: KubeApi, kind: Any, namespace: str) -> None:
    start = WatchFrom(bookmarks=True)
    async for _ in api.watch(kind, Selection(namespace=namespace), start, read=bytes):
        return


async def called(api: KubeApi, cluster: str) -> None:
    path = path_of(CLUSTERS, cluster, subresource="stream")
    async with api.websocket(path, protocols=(PROTOCOL,)):
        return


async def listed(api: KubeApi, kind: Any, selection: Selection) -> None:
    await api.page(kind, selection, read=bytes)


def beyond(api: KubeApi, namespace: str = OTHER) -> dict[str, Any]:
    """What nobody may do who has no business with another cluster, as sentences and calls."""
    secrets, accounts = SECRETS, ACCOUNTS
    status = {"status": {"phase": "Ready"}}
    seen = Patch(type="merge", body=status)
    return {
        "read another's works": listed(api, WORKS, Selection(namespace=namespace)),
        "read everybody's works": listed(api, WORKS, Selection()),
        "watch another's works": watched(api, WORKS, namespace),
        "read one work of another": api.get(WORKS, "team.train", namespace),
        "change a work of another": api.patch(WORKS, "team.train", MERGE, namespace=namespace),
        "say how another's work is": api.patch(
            WORKS, "team.train", seen, namespace=namespace, subresource="status"
        ),
        "make a work for another": api.create(
            WORKS, _work(namespace, "team.b"), namespace=namespace
        ),
        "read another cluster": api.get(CLUSTERS, "other"),
        "read all clusters": listed(api, CLUSTERS, Selection()),
        "say how another cluster is": api.patch(CLUSTERS, "other", seen, subresource="status"),
        "let itself be managed": api.patch(
            CLUSTERS, "edge", Patch(type="merge", body={"spec": {"mode": "Manage"}})
        ),
        "make a cluster": api.create(CLUSTERS, _cluster("third")),
        "delete its cluster": api.delete(CLUSTERS, "edge"),
        "read another's report": api.get(REPORTS, "other-0"),
        "read all reports": listed(api, REPORTS, Selection()),
        "report for another": api.patch(
            REPORTS, "other-0", Patch(type="apply", body=_report("other-0"), force=True)
        ),
        "report under any name": api.create(REPORTS, _report("third-0")),
        "delete another's report": api.delete(REPORTS, "other-0"),
        "beat for another": api.create(
            LEASES, {"metadata": {"name": "fairway-agent"}, "spec": {}}, namespace=namespace
        ),
        "read another's secrets": listed(api, secrets, Selection(namespace=namespace)),
        "read all secrets of its own namespace": listed(api, secrets, Selection(namespace=OWN)),
        "get a token of another": api.create(
            accounts,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            namespace=namespace,
            name="fairway-agent",
            subresource="token",
        ),
        "answer for another's pods": called(api, "other"),
        "read workloads": listed(api, WORKLOADS, Selection()),
        "make workloads": api.create(
            WORKLOADS, {"metadata": {"name": "a"}, "spec": {}}, namespace="default"
        ),
        "read queues": listed(api, QUEUES, Selection()),
        "change the fleet": api.patch(FLEETS, "fleet", MERGE),
        "make a namespace": api.create(NAMESPACES, {"metadata": {"name": "third"}}),
        "act as an administrator": api.acting_as("admin", ("system:masters",)).get(
            CLUSTERS, "other"
        ),
    }


async def outcomes(calls: dict[str, Any]) -> dict[str, str]:
    """How each call ended: the name of its refusal, or that it was done."""
    found = {}
    for sentence, call in calls.items():
        try:
            await call
        except ApiError as error:
            found[sentence] = type(error).__name__
        else:
            found[sentence] = "done"
    return found


async def test_a_stolen_credential_reaches_that_cluster_alone(admin: Admin) -> None:
    api = await admitted(admin)
    tried = await outcomes(beyond(api))
    assert tried == dict.fromkeys(tried, "Forbidden")


async def test_an_agent_can_do_all_that_agents_do(admin: Admin) -> None:
    api = await admitted(admin)
    await hub_side.apply_all(admin.api, [_work(OWN)])
    store = KubernetesStore(api)
    hub = Hub(store, "edge", clock=CLOCK, epoch=1)
    for _ in range(2):
        await hub.beat(10.0)
        await hub.write_report(_typed_report())
    await hub.write_cluster_status({"nodes": 3})
    again = Hub(store, "edge", clock=CLOCK, epoch=2)  # which finds the reports of an earlier run
    await again.write_report(_typed_report())
    await listed(api, WORKS, Selection(namespace=OWN))
    await watched(api, WORKS, OWN)
    await listed(api, CLUSTERS, Selection(fields="metadata.name=edge"))
    await listed(api, FLEETS, Selection(fields="metadata.name=fleet"))
    patch = Patch(type="merge", body={"status": {}})
    await api.patch(WORKS, "team.train", patch, namespace=OWN, subresource="status")
    await store.close()


def _typed_report() -> ClusterReport:
    seen_at = datetime(2026, 1, 1, tzinfo=UTC)
    spec = ClusterReportSpec(cluster="edge", agent_epoch=1, sequence=1, seen_at=seen_at)
    return ClusterReport(metadata=ObjectMeta(name="edge-0"), spec=spec)


async def test_an_invitation_is_worth_nothing_but_to_ask(admin: Admin) -> None:
    invitation = await admin.invite()
    assert read(invitation.text()) == invitation
    guest = admin.seen_by(invitation.access())
    tried = await outcomes(beyond(guest))
    assert tried == dict.fromkeys(tried, "Forbidden")
    tried = await outcomes(beyond(guest, OWN))
    own = await outcomes(
        {
            "get the agent's token": agent_side.renew_credential(guest, "edge"),
            "read its cluster": guest.get(CLUSTERS, "edge"),
            "withdraw the request": guest.delete(SECRETS, rights.GUEST, namespace=OWN),
        }
    )
    assert {**tried, **own} == dict.fromkeys({**tried, **own}, "Forbidden")


async def test_a_second_agent_of_the_same_name_is_refused(admin: Admin) -> None:
    invitation = await admin.invite()
    guest = admin.seen_by(invitation.access())
    key, first = asker("here")
    other_key, second = asker("elsewhere")
    await agent_side.ask(guest, "edge", first)
    await agent_side.ask(guest, "edge", first)  # whoever starts again is not another
    with pytest.raises(Refused, match="another agent has asked to be edge, from here"):
        await agent_side.ask(guest, "edge", second)
    await hub_side.accept(admin.api, "edge", first)
    with pytest.raises(Refused, match="another agent was accepted"):
        await agent_side.await_acceptance(guest, "edge", other_key, CLOCK)
    credential = await agent_side.await_acceptance(guest, "edge", key, CLOCK)
    agent = admin.as_token(credential.token)
    await agent_side.use_up(agent, "edge")
    with pytest.raises(Refused, match="the invitation is over"):
        await agent_side.ask(admin.seen_by(invitation.access()), "edge", second)
    with pytest.raises(Refused, match="has an agent"):
        await admin.invite()


async def test_a_new_invitation_ends_an_agents_credential_and_older_invitations(
    admin: Admin,
) -> None:
    first = await admin.invite()
    second = await admin.invite()
    _, request = asker()
    with pytest.raises(Refused, match="the invitation is over"):
        await agent_side.ask(admin.seen_by(first.access()), "edge", request)
    await agent_side.ask(admin.seen_by(second.access()), "edge", request)
    agent = await admitted(admin)
    await agent.get(CLUSTERS, "edge")
    await admin.invite(replaces=True)
    await refused(agent)


async def test_a_cluster_that_was_removed_can_join_again_at_once(admin: Admin) -> None:
    await admin.invite()
    await admin.api.delete(CLUSTERS, "edge")
    await admin.invite()
    place = msgspec.json.decode(await admin.api.get(CLUSTERS, "edge"))["metadata"]
    namespace = msgspec.json.decode(await admin.api.get(NAMESPACES, OWN))["metadata"]
    assert [owner["uid"] for owner in namespace["ownerReferences"]] == [place["uid"]]
    assert "deletionTimestamp" not in namespace


async def refused(agent: KubeApi) -> None:
    """A server may remember for some seconds that a token was good."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await agent.get(CLUSTERS, "edge")
            except (Unauthorized, Forbidden):
                break
            await asyncio.sleep(0.2)


async def test_an_agent_keeps_its_credential_to_itself_and_renews_it(
    admin: Admin, tmp_path: Path
) -> None:
    folder = AgentFolder(tmp_path / "agent")
    invitation = await admin.invite()
    options = PullOptions(data=folder.folder, invitation=invitation, tell=lambda _: None)
    joining = asyncio.ensure_future(join(folder, options, CLOCK))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (request := await hub_side.join_request(admin.api, "edge")) is None:
            await asyncio.sleep(0.05)
    assert request.public_key == sealed_box.public_of(folder.key())
    await hub_side.accept(admin.api, "edge", request, mode="Manage")
    membership = await joining
    assert await join(folder, options, CLOCK) == membership  # the same invitation, used up
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.folder.iterdir()}
    assert modes == {"token": 0o600, "hub.json": 0o600}
    before = (folder.folder / "token").read_text()
    hub = admin.seen_by(folder.access(membership))
    await hub.get(CLUSTERS, "edge")
    await renew(folder, membership, hub, CLOCK)
    assert (folder.folder / "token").read_text() != before
    await hub.get(CLUSTERS, "edge")
    with pytest.raises(NotFound):
        await admin.api.get(ACCOUNTS, rights.GUEST, OWN)


def test_credentials_are_renewed_while_most_of_their_life_is_left() -> None:
    week = hub_side.Credential(token="", expires_at="1970-01-08T00:00:00Z")
    assert agent_side.due_at(week, 0.0) == 24 * 3600.0


def test_what_is_sealed_for_one_key_is_opened_by_that_key_alone() -> None:
    key, other = sealed_box.new_key(), sealed_box.new_key()
    sealed = sealed_box.seal(sealed_box.public_of(key), b"a token")
    assert sealed_box.open_sealed(key, sealed) == b"a token"
    altered = sealed[:-8] + ("A" if sealed[-8] != "A" else "B") + sealed[-7:]
    for wrong, text in ((other, sealed), (key, altered), (key, ""), (key, "no text of ours")):
        with pytest.raises(sealed_box.NotSealedForUs):
            sealed_box.open_sealed(wrong, text)


@pytest.mark.parametrize(
    "text",
    ["", "fwj1.", "fwj1.e30", "fwj2.abc", "fwj1." + "A" * 70_000],
    ids=["nothing", "only its beginning", "without a server", "of another form", "far too long"],
)
def test_a_text_that_is_no_invitation_is_refused(text: str) -> None:
    with pytest.raises(BadInvitation):
        read(text)
