"""Joining by push: an account in the cluster for the hub, with the least rights it needs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import yaml

from fairway.agent.drivers.kubernetes import rights as member_rights
from fairway.agent.join.hub_side import (
    Credential,
    Refused,
    apply_all,
    make_namespace,
    own_namespace,
    token_of,
)
from fairway.api.meta import API_VERSION, JsonObject
from fairway.api.names import work_namespace
from fairway.client.access import Access
from fairway.kubeapi import KubeApi
from fairway.store.keys import CLUSTERS

NAMESPACE = "fairway-system"  # of the hub's account, in the cluster
SECRET = "fairway-kubeconfig"  # noqa: S105 - the name of one, on the hub
KEY = "kubeconfig"
CREDENTIAL_SECONDS = 30 * 24 * 3600  # the hub renews it every few days
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A cluster that the hub reaches by itself."""

    cluster: str
    mode: str = "Observe"
    context: str = ""  # of the kubeconfig
    topology: Sequence[JsonObject] = ()  # levels, the outermost first; none: left unchanged


def member_objects(
    kinds: Sequence[tuple[str, str]],
    *,
    may_act: bool,
    allowed: Sequence[str] = (),
    may_renew: bool = True,
) -> list[JsonObject]:
    """The objects that give an agent its rights in a cluster: to read, or to act as well.

    An agent inside the cluster gets tokens from its pod, and need not renew its own.
    """
    name = member_rights.AGENT
    account = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    objects: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": NAMESPACE},
        },
        member_rights.agent_role(kinds, may_act=may_act),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": reference,
            "subjects": [account],
        },
    ]
    if may_renew:
        objects += renewal_objects()
    if may_act:
        objects.append(member_rights.tenant_role(kinds, allowed=allowed))
    return objects


def renewal_objects() -> list[JsonObject]:
    """The right of the hub's account to request tokens of its own, and of no other account."""
    name = f"{member_rights.AGENT}-token"
    metadata = {"name": name, "namespace": NAMESPACE}
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "verbs": ["create"],
        "resourceNames": [member_rights.AGENT],
    }
    subject = {"kind": "ServiceAccount", "name": member_rights.AGENT, "namespace": NAMESPACE}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]


async def prepare(member: KubeApi, objects: Sequence[JsonObject]) -> Credential:
    """Makes the hub's account in a cluster, and returns a token of it."""
    await apply_all(member, objects)
    return await token_of(member, NAMESPACE, member_rights.AGENT, CREDENTIAL_SECONDS)


def context_of(token: str) -> str:
    """The context name of a token: a new token has a new name, so that the hub notices it."""
    return f"token-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def kubeconfig(access: Access, token: str) -> str:
    """A self-contained kubeconfig for the account of a token."""
    context = context_of(token)
    if access.proxy:
        # The hub may not reach the cluster by the proxy that is used here.
        raise Refused(f"{access.server} is reached by a proxy from here; join it by --pull")
    server: JsonObject = {"server": access.server}
    if access.authority:
        server["certificate-authority-data"] = base64.b64encode(access.authority).decode()
    if access.is_insecure:
        server["insecure-skip-tls-verify"] = True
    if access.tls_server_name:
        server["tls-server-name"] = access.tls_server_name
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": server}],
        "users": [{"name": member_rights.AGENT, "user": {"token": token}}],
        "contexts": [
            {"name": context, "context": {"cluster": context, "user": member_rights.AGENT}}
        ],
        "current-context": context,
    }
    return yaml.safe_dump(content, sort_keys=False)


def hub_objects(pushed: Pushed, config: str) -> list[JsonObject]:
    """The objects that the hub needs for a cluster: the kubeconfig Secret and the Cluster."""
    namespace = work_namespace(pushed.cluster)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": namespace},
        "data": {KEY: base64.b64encode(config.encode()).decode()},
    }
    return [secret, cluster_object(pushed)]


def cluster_object(pushed: Pushed) -> JsonObject:
    named = {"namespace": work_namespace(pushed.cluster), "name": SECRET, "key": KEY}
    spec: JsonObject = {
        "mode": pushed.mode,
        "kubernetes": {"connection": "Push", "kubeconfig": named, "context": pushed.context},
    }
    if pushed.topology:
        spec["topology"] = list(pushed.topology)
    return {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {"name": pushed.cluster},
        "spec": spec,
    }


async def enter(hub: KubeApi, pushed: Pushed, config: str) -> None:
    """Creates a cluster on the hub."""
    await make_namespace(hub, work_namespace(pushed.cluster))
    await apply_all(hub, hub_objects(pushed, config))
    await own_namespace(hub, msgspec.json.decode(await hub.get(CLUSTERS, pushed.cluster)))
