"""Renews the token by which a hub reaches a cluster that joined by push.

The token belongs to the hub's account in the cluster, and states its account and expiry. While most
of its life is left, the hub requests another token as that account, and replaces the old one in its
Secret. A concurrent join of the cluster wins: its token is used. Tokens of other accounts, and
Secrets that the user manages, are left alone.
"""

from __future__ import annotations

import base64
import binascii
import logging

import msgspec
import yaml

from fairway.agent.drivers.kubernetes import rights as member_rights
from fairway.agent.join import push
from fairway.agent.join.agent_side import due_between
from fairway.agent.join.hub_side import data_of, token_of
from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError, Conflict, Forbidden
from fairway.api.names import work_namespace
from fairway.client.access import Access
from fairway.client.errors import ClientError
from fairway.client.kubeconfig import access_of_text
from fairway.clock import Clock
from fairway.kubeapi import KubeApi
from fairway.schema.node import JsonObject
from fairway.store.interface import BY_HUB, Store
from fairway.store.keys import SECRETS

_log = logging.getLogger(__name__)

_AGAIN_SECONDS = 60.0  # between two renewals at least, and after one that failed
_SECONDS_MOST = 3600.0  # between checks whether the token is due
_PARTS = 3  # of a signed token


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token."""

    sub: str = ""
    iat: float = 0.0
    exp: float = 0.0

    @property
    def due_at(self) -> float:
        return due_between(self.iat, self.exp)


def claims_of(token: str) -> Claims | None:
    """The claims of a token, not verified; None if it has none."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="), type=Claims)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        return None


class Renewing:
    """Renews the token of one cluster while its driver is open."""

    def __init__(self, store: Store, cluster: Cluster, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._name = cluster.metadata.name
        self._namespace = work_namespace(self._name)
        settings = cluster.spec.kubernetes
        named = settings.kubeconfig if settings is not None else None
        self._context = settings.context if settings is not None else ""
        self._is_ours = named is not None and (named.namespace, named.name, named.key) == (
            self._namespace,
            push.SECRET,
            push.KEY,
        )

    async def run(self, api: KubeApi, access: Access) -> None:
        """Renews the token of a cluster; returns if token or Secret are not the hub's own."""
        token = access.token
        while self._is_ours:
            claims = claims_of(token)
            if claims is None or claims.sub != _ACCOUNT or not claims.exp:
                return
            left = claims.due_at - self._clock.now()
            if left > 0:
                await self._clock.sleep(min(left, _SECONDS_MOST))
                continue
            wait = _AGAIN_SECONDS
            try:
                token = await self.renew(api, token)
                api.show(token)
            except Forbidden as fault:
                # The cluster joined before accounts had this right.
                wait = _SECONDS_MOST
                _log.warning("%s: the token ends, join again: %s", self._name, fault)
            except (ApiError, ClientError, OSError, ValueError) as fault:
                _log.warning("%s: the token cannot be renewed: %s", self._name, fault)
            await self._clock.sleep(wait)

    async def renew(self, api: KubeApi, token: str) -> str:
        """A new token, once the Secret has it; if the Secret has another token, that one."""
        secret, text = await self._secret()
        if (kept := self._token_in(text)) != token:
            return kept
        given = await token_of(api, push.NAMESPACE, member_rights.AGENT, push.CREDENTIAL_SECONDS)
        config = _with_token(yaml.safe_load(text), token, given.token)
        content = yaml.safe_dump(config, sort_keys=False).encode()
        data = {**secret["data"], push.KEY: base64.b64encode(content).decode()}
        # The update has the version that was read, so that no other token is overwritten.
        changed = {**secret, "data": data}
        try:
            await self._store.update(SECRETS, changed, namespace=self._namespace, write=BY_HUB)
        except Conflict:
            return self._token_in((await self._secret())[1])
        _log.info("%s: its token was renewed, until %s", self._name, given.expires_at)
        return given.token

    async def _secret(self) -> tuple[JsonObject, str]:
        """The hub's Secret, and the kubeconfig in it."""
        secret = (await self._store.get(SECRETS, push.SECRET, self._namespace)).object()
        return secret, data_of(secret).get(push.KEY, b"").decode()

    def _token_in(self, text: str) -> str:
        return access_of_text(text, source=push.SECRET, context=self._context).token


_ACCOUNT = member_rights.account(push.NAMESPACE, member_rights.AGENT)


def _with_token(config: JsonObject, before: str, after: str) -> JsonObject:
    """A kubeconfig with the new token for each user that has the old one; all names stay."""
    users = [
        {**user, "user": {**user["user"], "token": after}}
        if (user.get("user") or {}).get("token") == before
        else user
        for user in config["users"]
    ]
    return {**config, "users": users}
