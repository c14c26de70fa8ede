"""The hub's side of joining by pull, with an administrator's own rights.

`invite` prepares the objects of a cluster and returns the invitation; `accept` gives the agent that
asked its credential. Both can be repeated: existing objects are brought to the desired state.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from fairway.agent.join import rights, sealed_box
from fairway.agent.join.invitations import Invitation
from fairway.api.errors import AlreadyExists, NotFound
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.names import work_namespace
from fairway.client.access import Access
from fairway.kubeapi import KubeApi
from fairway.store.interface import Patch, Write
from fairway.store.keys import ACCOUNTS, CLUSTERS, NAMESPACES, SECRETS, resource_of

CREDENTIAL_SECONDS = 7 * 24 * 3600
GOING_SECONDS_MAX = 60.0
_WRITE = Write(manager="fairway-join")


class Refused(Exception):
    """The request was not carried out; the message says why, and what to do."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says when it asks to join."""

    public_key: str
    host: str = ""
    version: str = ""
    asked_at: str = ""

    @property
    def fingerprint(self) -> str:
        return sealed_box.fingerprint(self.public_key)


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A token of an account, and when it expires."""

    token: str
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a cluster is to join."""

    mode: str = "Observe"
    seconds: int = 3600  # lifetime of the invitation
    replaces: bool = False  # whether to replace the cluster's current agent
    streams: str = ""  # where the hub accepts streams, if not at its API server
    streams_authority: str = ""  # the CA of the certificate there, as PEM


async def invite(hub: KubeApi, access: Access, cluster: str, wanted: Wanted) -> Invitation:
    """Prepares the objects of a cluster, and invites its agent; voids earlier invitations."""
    namespace = work_namespace(cluster)
    await make_namespace(hub, namespace)
    place = await _place(hub, cluster, wanted)
    await own_namespace(hub, place)
    owner = rights.owner_of(place)
    for kind in (SECRETS, ACCOUNTS):
        with suppress(NotFound):
            await hub.delete(kind, rights.GUEST, namespace=namespace, write=_WRITE)
    await apply_all(hub, rights.guest_objects(cluster, owner))
    guest = await token_of(hub, namespace, rights.GUEST, wanted.seconds)
    return Invitation(
        server=access.server,
        cluster=cluster,
        token=guest.token,
        authority=access.authority.decode(),
        tls_server_name=access.tls_server_name,
        streams=wanted.streams,
        streams_authority=wanted.streams_authority,
    )


async def _place(hub: KubeApi, cluster: str, wanted: Wanted) -> JsonObject:
    """The Cluster object of a joining cluster, not accepted yet."""
    try:
        result = _decode(await hub.get(CLUSTERS, cluster))
    except NotFound:
        spec = {"kubernetes": {"connection": "Pull"}, "accepted": False, "mode": wanted.mode}
        identity = {"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": cluster}}
        return _decode(await hub.create(CLUSTERS, {**identity, "spec": spec}, write=_WRITE))
    if not _is_pull(result):
        raise Refused(f"{cluster} is a cluster that the hub reaches by itself already")
    if result["spec"].get("accepted", True):
        if not wanted.replaces:
            raise Refused(f"{cluster} has an agent; --replace takes its place away from it")
        with suppress(NotFound):
            namespace = work_namespace(cluster)
            await hub.delete(ACCOUNTS, rights.AGENT, namespace=namespace, write=_WRITE)
        await _change(hub, cluster, {"accepted": False})
    return result


async def join_request(hub: KubeApi, cluster: str) -> Request | None:
    """The request to be the agent of a cluster, if there is one."""
    try:
        secret = await hub.get(SECRETS, rights.GUEST, work_namespace(cluster))
    except NotFound:
        return None
    said = data_of(_decode(secret)).get("agent")
    return msgspec.json.decode(said, type=Request) if said else None


async def accept(hub: KubeApi, cluster: str, request: Request, *, mode: str = "") -> None:
    """Accepts the agent that asked as the agent of a cluster."""
    owner = rights.owner_of(_decode(await hub.get(CLUSTERS, cluster)))
    namespace = work_namespace(cluster)
    await apply_all(hub, rights.agent_objects(cluster, owner))
    credential = await token_of(hub, namespace, rights.AGENT, CREDENTIAL_SECONDS)
    try:
        sealed = sealed_box.seal(request.public_key, msgspec.json.encode(credential))
    except ValueError as error:
        raise Refused(f"the agent that asks to join as {cluster} shows no usable key") from error
    await _change(hub, cluster, {"accepted": True, **({"mode": mode} if mode else {})})
    body = {"data": {"credential": base64.b64encode(sealed.encode()).decode()}}
    merge = Patch(type="merge", body=body)
    await hub.patch(SECRETS, rights.GUEST, merge, namespace=namespace, write=_WRITE)


async def trust(hub: KubeApi, cluster: str, *, mode: str = "") -> bool:
    """Accepts a cluster whose agent needs no credential; false if an agent must ask first.

    An agent that was accepted before gets the current rights of agents.
    """
    result = _decode(await hub.get(CLUSTERS, cluster))
    if _is_pull(result):
        if not result["spec"].get("accepted", True):
            return False
        with suppress(NotFound):
            await hub.get(ACCOUNTS, rights.AGENT, work_namespace(cluster))
            await apply_all(hub, rights.agent_objects(cluster, rights.owner_of(result)))
    await _change(hub, cluster, {"accepted": True, **({"mode": mode} if mode else {})})
    return True


async def token_of(api: KubeApi, namespace: str, account: str, seconds: int) -> Credential:
    """A token of an account, valid for `seconds` or as long as the server grants."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    answer = await api.create(
        ACCOUNTS, body, namespace=namespace, name=account, subresource="token", write=_WRITE
    )
    status = _decode(answer)["status"]
    return Credential(token=status["token"], expires_at=status["expirationTimestamp"])


async def make_namespace(api: KubeApi, name: str) -> None:
    """Creates a namespace; first waits for the end of a namespace that is being deleted."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    disown = Patch(type="merge", body={"metadata": {"ownerReferences": None}})
    until = api.clock.now() + GOING_SECONDS_MAX
    while api.clock.now() < until:
        with suppress(AlreadyExists):
            await api.create(NAMESPACES, body, write=_WRITE)
            return
        with suppress(NotFound):
            patched, _ = await api.patch(NAMESPACES, name, disown, write=_WRITE)
            if "deletionTimestamp" not in _decode(patched)["metadata"]:
                return
        await api.clock.sleep(0.2)
    raise Refused(f"namespace {name} of a former cluster is still being removed; try again later")


async def own_namespace(hub: KubeApi, cluster: JsonObject) -> None:
    """Makes the Cluster object own its namespace, so that both are deleted together."""
    body = {"metadata": {"ownerReferences": [rights.owner_of(cluster)]}}
    name = work_namespace(cluster["metadata"]["name"])
    await hub.patch(NAMESPACES, name, Patch(type="merge", body=body), write=_WRITE)


async def apply_all(api: KubeApi, bodies: Sequence[JsonObject]) -> None:
    """Applies objects; keeps fields that others added."""
    for body in bodies:
        metadata = body["metadata"]
        await api.patch(
            resource_of(body["apiVersion"], body["kind"]),
            metadata["name"],
            Patch(type="apply", body=body, force=True),
            namespace=metadata.get("namespace", ""),
            write=_WRITE,
        )


def data_of(secret: JsonObject) -> dict[str, bytes]:
    """The decoded data of a Secret."""
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def _is_pull(cluster: JsonObject) -> bool:
    settings = cluster["spec"].get("kubernetes") or {}
    return bool(settings.get("connection") == "Pull")


async def _change(hub: KubeApi, cluster: str, spec: JsonObject) -> None:
    await hub.patch(CLUSTERS, cluster, Patch(type="merge", body={"spec": spec}), write=_WRITE)


def _decode(raw: bytes) -> JsonObject:
    decoded: JsonObject = msgspec.json.decode(raw)
    return decoded
