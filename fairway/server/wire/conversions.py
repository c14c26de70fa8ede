"""The conversion webhook: converts objects to another version of their kind for an API server.

The response depends on the request alone and reveals nothing else, but converting costs time and
memory. So only a caller that was told the path may ask (`secret_path`). An embedded store converts
by itself: there the path does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fairway.api import versions
from fairway.api.crds import CONVERSION_PATH
from fairway.api.errors import BadRequest
from fairway.api.meta import JsonObject
from fairway.server.wire.exchange import Request, Response, json_response
from fairway.server.wire.secret_path import SecretPath

_KIND = "ConversionReview"
_API_VERSION = "apiextensions.k8s.io/v1"


class _Asked(msgspec.Struct, rename={"api_version": "desiredAPIVersion"}):
    uid: str
    api_version: str
    objects: list[dict[str, Any]]


class _Review(msgspec.Struct):
    request: _Asked


class Conversions:
    """Answers a server that asks for conversions."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        prefix = f"{CONVERSION_PATH}/"
        self._path = SecretPath(prefix, purpose="fairway conversion webhook", secret=secret)
        self.is_open = False  # true: a server may ask

    def path(self) -> str:
        return self._path.path()

    def is_asked(self, request: Request) -> bool:
        return self.is_open and self._path.is_asked(request)

    async def answer(self, request: Request) -> Response:
        """The response to a question."""
        try:
            asked = msgspec.json.decode(request.body, type=_Review).request
        except msgspec.MsgspecError as fault:
            raise BadRequest(f"the body is no {_KIND} of {_API_VERSION}: {fault}") from None
        return json_response(
            {
                "apiVersion": _API_VERSION,
                "kind": _KIND,
                "response": {"uid": asked.uid, **_describe(asked)},
            }
        )


def _describe(asked: _Asked) -> JsonObject:
    strange = [object_ for object_ in asked.objects if not _is_known(object_, asked.api_version)]
    if strange:
        first = f"{strange[0].get('apiVersion')} {strange[0].get('kind')}"
        message = f"this hub cannot convert {first} to {asked.api_version}"
        return {"result": {"status": "Failure", "message": message}}
    converted = [versions.convert(object_, asked.api_version) for object_ in asked.objects]
    return {"result": {"status": "Success"}, "convertedObjects": converted}


def _is_known(body: JsonObject, api_version: str) -> bool:
    group, _, version = api_version.rpartition("/")
    was_group, _, was = str(body.get("apiVersion", "")).rpartition("/")
    kind = str(body.get("kind", ""))
    if was_group != group or not versions.has_room(body):
        return False
    return versions.knows(group, kind, version) and versions.knows(group, kind, was)
