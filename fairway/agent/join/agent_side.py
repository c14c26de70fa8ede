"""The agent's side of joining by pull: asking, waiting to be accepted, and renewing.

An agent asks with its own key. Another holder of the invitation can neither read the credential
that is left for that key, nor ask once an agent has asked.
"""

from __future__ import annotations

import base64
import logging
from contextlib import suppress

import msgspec

from fairway.agent.join import hub_side, rights, sealed_box
from fairway.agent.join.hub_side import Credential, Refused, Request, data_of
from fairway.api.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized
from fairway.api.names import work_namespace
from fairway.clock import Clock, parse_timestamp
from fairway.kubeapi import KubeApi
from fairway.store.interface import Write
from fairway.store.keys import ACCOUNTS, SECRETS

_log = logging.getLogger(__name__)

_WRITE = Write(manager="fairway-agent")
_LOOK_SECONDS = 2.0
_RENEWALS = 7  # a credential is renewed after 1/7 of its life
_AGAIN_SECONDS = 60.0
_WORTHLESS = (
    "the invitation is over: it was used, withdrawn or has expired; ask for another with "
    "`fairway join --pull`"
)


async def ask(hub: KubeApi, cluster: str, request: Request) -> None:
    """Asks to become the cluster's agent; Refused if another agent has asked."""
    namespace = work_namespace(cluster)
    while True:
        try:
            secret = msgspec.json.decode(await hub.get(SECRETS, rights.GUEST, namespace))
            held = data_of(secret).get("agent")
            if held:
                _compare(cluster, msgspec.json.decode(held, type=Request), request)
                return
            said = base64.b64encode(msgspec.json.encode(request)).decode()
            secret["data"] = {"agent": said}
            await hub.replace(SECRETS, secret, namespace=namespace, write=_WRITE)
        except Conflict:
            continue  # another agent asked at the same time
        except (Unauthorized, Forbidden, NotFound) as error:
            raise Refused(_WORTHLESS) from error
        return


def _compare(cluster: str, other: Request, own: Request) -> None:
    if other.public_key != own.public_key:
        raise Refused(
            f"another agent has asked to be {cluster}, from {other.host or 'somewhere'} with the "
            f"key {other.fingerprint}; if that is none of yours, withdraw the invitation by a new "
            "`fairway join --pull`"
        )


async def await_acceptance(hub: KubeApi, cluster: str, key: bytes, clock: Clock) -> Credential:
    """Waits until an administrator accepts; returns the credential."""
    namespace = work_namespace(cluster)
    while True:
        try:
            secret = msgspec.json.decode(await hub.get(SECRETS, rights.GUEST, namespace))
        except (Unauthorized, Forbidden, NotFound) as error:
            raise Refused(_WORTHLESS) from error
        except ApiError as fault:
            _log.warning("the hub does not answer: %s", fault)
            secret = {}
        if sealed := data_of(secret).get("credential"):
            return _open(cluster, key, sealed)
        await clock.sleep(_LOOK_SECONDS)


def _open(cluster: str, key: bytes, sealed: bytes) -> Credential:
    try:
        content = sealed_box.open_sealed(key, sealed.decode())
        return msgspec.json.decode(content, type=Credential)
    except (sealed_box.NotSealedForUs, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"another agent was accepted as {cluster}") from error


async def use_up(hub: KubeApi, cluster: str) -> None:
    """Deletes a used invitation, with the rights of the agent itself."""
    for kind in (SECRETS, ACCOUNTS):
        with suppress(NotFound):
            await hub.delete(kind, rights.GUEST, namespace=work_namespace(cluster), write=_WRITE)


async def renew_credential(hub: KubeApi, cluster: str) -> Credential:
    """Gets another credential of the same account."""
    seconds = hub_side.CREDENTIAL_SECONDS
    return await hub_side.token_of(hub, work_namespace(cluster), rights.AGENT, seconds)


def due_at(credential: Credential, given_at: float) -> float:
    """When a credential is renewed: early, so that days without the hub do no harm."""
    return due_between(given_at, parse_timestamp(credential.expires_at))


def due_between(given_at: float, expires_at: float) -> float:
    """The same, for a credential that states its own issue and expiry times."""
    return given_at + max((expires_at - given_at) / _RENEWALS, _AGAIN_SECONDS)
