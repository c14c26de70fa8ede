"""The admission webhook: an API server asks whether a write is right.

The answer depends on queues, namespaces and policies that not every user may read, so only a caller
that was told the path may ask (`secret_path`). A question changes nothing.

What answers is given from outside; without it, the path does not exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from fairway.api.errors import BadRequest, Forbidden, Invalid, Unavailable
from fairway.api.meta import JsonObject
from fairway.server.wire.exchange import Request, Response, json_response
from fairway.server.wire.secret_path import SecretPath

_KIND = "AdmissionReview"
_API_VERSION = "admission.k8s.io/v1"


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
        self._path = SecretPath("/admit/", purpose="fairway admission webhook", secret=secret)
        self.check: CheckWrite | None = None

    def path(self) -> str:
        return self._path.path()

    def is_asked(self, request: Request) -> bool:
        return self.check is not None and self._path.is_asked(request)

    async def answer(self, request: Request) -> Response:
        """The response to a question."""
        if self.check is None:
            raise Unavailable("this hub checks no writes")
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
