"""The admission webhook: an API server asks whether a write is right.

The answer depends on queues, namespaces and policies that not every user may read, and API servers
do not authenticate to a webhook unless they are configured to. So the path ends with a word that
only the server is told; without the word, the path does not exist. A question changes nothing.

What answers is given from outside; without it, the path does not exist either.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from fairway.api.errors import BadRequest, Forbidden, Invalid
from fairway.api.meta import JsonObject
from fairway.server.wire.exchange import Request, Response, json_response

_PATH = "/admit/"
_KIND = "AdmissionReview"
_API_VERSION = "admission.k8s.io/v1"
_PURPOSE = b"fairway admission webhook"


class AskedResource(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of the object that is written."""

    group: str = ""
    version: str
    resource: str


class AskedUser(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes, as the server knows the user."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One write that a server asks about."""

    uid: str
    resource: AskedResource
    operation: Literal["CREATE", "UPDATE"]
    object: dict[str, Any]
    old_object: dict[str, Any] | None = None
    namespace: str = ""
    user_info: AskedUser = AskedUser()


class _Review(msgspec.Struct):
    request: Asked


# Returns warnings; raises Forbidden or Invalid for a write that is not right.
CheckWrite = Callable[[Asked], Awaitable[list[str]]]


class Admissions:
    """Answers a server that asks about writes."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret
        self.check: CheckWrite | None = None

    def path(self) -> str:
        """The path of the webhook; the same at all replicas that share a secret."""
        return _PATH + hmac.new(self._secret(), _PURPOSE, hashlib.sha256).hexdigest()

    async def answer(self, request: Request) -> Response | None:
        """The response to a question; None: the request is something else."""
        if request.method != "POST" or not request.path.startswith(_PATH) or self.check is None:
            return None
        if not hmac.compare_digest(request.path.encode(), self.path().encode()):
            return None
        try:
            asked = msgspec.json.decode(request.body, type=_Review).request
        except msgspec.MsgspecError as fault:
            raise BadRequest(f"the body is no {_KIND} of {_API_VERSION}: {fault}") from None
        response = {"uid": asked.uid, **await _judge(asked, self.check)}
        return json_response({"apiVersion": _API_VERSION, "kind": _KIND, "response": response})


async def _judge(asked: Asked, check: CheckWrite) -> JsonObject:
    try:
        warnings = await check(asked)
    except (Forbidden, Invalid) as fault:
        return {"allowed": False, "status": fault.status()}
    return {"allowed": True, "warnings": warnings}
