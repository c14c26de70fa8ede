"""Query parameters and bodies, parsed strictly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec

from fairway.api.documents import read_value
from fairway.api.errors import (
    BadRequest,
    FieldError,
    Invalid,
    UnsupportedMediaType,
    forbidden,
    invalid,
    not_supported,
    required_field,
)
from fairway.schema.node import JsonObject
from fairway.server.access.identity import Identity
from fairway.server.wire import protobuf
from fairway.server.wire.bodies import YAML_BYTES_MAX, decode, too_large
from fairway.server.wire.duplicate_keys import duplicate_fields
from fairway.server.wire.exchange import Request
from fairway.store.interface import Deletion, Page, Patch, PatchType, Selection, WatchFrom, Write

_PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_OPTIONS_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_PROPAGATIONS = ("Background", "Foreground", "Orphan")
_MANAGER_MAX = 128


def media_type(request: Request) -> str:
    return request.header("content-type").partition(";")[0].strip().lower()


def _decoder(request: Request) -> Callable[[bytes], Any]:
    """The function that reads the JSON (or YAML, or protobuf) value in a body."""
    kind = media_type(request)
    if kind in ("application/yaml", "application/apply-patch+yaml"):
        return _decode_yaml
    if kind in ("", "*/*") or kind.endswith("json"):
        return _decode_json
    if kind == protobuf.MEDIA_TYPE:
        return protobuf.decode
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )


def _decode_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as fault:
        raise BadRequest(f"the body of the request is not JSON: {fault}") from fault


def _decode_yaml(body: bytes) -> Any:
    """The one object of a YAML text. JSON is YAML, and is read faster as JSON."""
    if body.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass  # flow-style YAML looks like JSON but is not
    if len(body) > YAML_BYTES_MAX:
        raise too_large(YAML_BYTES_MAX)
    return read_value(body)


async def object_body(request: Request) -> JsonObject:
    body = await decode(request.body, _decoder(request))
    if not isinstance(body, dict):
        raise BadRequest("the body of the request must be an object")
    return body


async def duplicate_keys(request: Request, body: JsonObject) -> list[str]:
    """The paths of keys that a body has twice; other forms than JSON refuse such keys."""
    if not media_type(request).endswith("json"):
        return []
    return await decode(request.body, lambda text: duplicate_fields(text, body))


def write_options(request: Request, identity: Identity) -> Write:
    """The user and options of a write, from the identity and the parameters."""
    dry_run = request.parameter("dryRun")
    validation = request.parameter("fieldValidation") or "Warn"
    faults: list[FieldError] = []
    if dry_run not in ("", "All"):
        faults.append(not_supported("dryRun", [dry_run], ["All"]))
    if validation not in ("Ignore", "Warn", "Strict"):
        allowed = ["", "Ignore", "Strict", "Warn"]
        faults.append(not_supported("fieldValidation", validation, allowed))
    if faults:
        kind = _OPTIONS_KINDS.get(request.method, "UpdateOptions")
        raise Invalid.of(kind, "meta.k8s.io", "", faults)
    return Write(
        user=identity.user,
        groups=identity.groups,
        manager=_manager(request),
        dry_run=dry_run == "All",
        field_validation=cast(Literal["Ignore", "Warn", "Strict"], validation),
    )


def _manager(request: Request) -> str:
    """The field manager: as given, else the user agent up to its first slash."""
    given = request.parameter("fieldManager")
    if given:
        if len(given) > _MANAGER_MAX or not given.isprintable():
            raise BadRequest("fieldManager must be at most 128 printable characters")
        return given
    agent = request.header("user-agent").partition("/")[0]
    return "".join(name for name in agent if name.isprintable())[:_MANAGER_MAX] or "unknown"


async def patch_options(request: Request) -> Patch:
    kind = _PATCH_TYPES.get(media_type(request))
    if kind is None:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(_PATCH_TYPES)
        )
    force = request.flag("force")
    if kind == "apply":
        if not request.parameter("fieldManager"):
            fault = required_field("fieldManager", "is required for apply patch")
            raise Invalid.of("PatchOptions", "meta.k8s.io", "", [fault])
        body = await decode(request.body, _decode_yaml)
        return Patch(type=kind, body=body, force=bool(force))
    if force is not None:
        fault = forbidden("force", "may not be specified for non-apply patch")
        raise Invalid.of("PatchOptions", "meta.k8s.io", "", [fault])
    return Patch(type=kind, body=await decode(request.body, _decode_json))


def selection(request: Request, namespace: str) -> Selection:
    return Selection(
        namespace=namespace,
        labels=request.parameter("labelSelector"),
        fields=request.parameter("fieldSelector"),
    )


def page(request: Request) -> Page:
    return Page(
        limit=_number(request, "limit"),
        continue_from=request.parameter("continue"),
        version=request.parameter("resourceVersion"),
        match=request.parameter("resourceVersionMatch"),
    )


def watch_from(request: Request) -> WatchFrom:
    initial = request.flag("sendInitialEvents")
    match = request.parameter("resourceVersionMatch")
    said = ""
    if initial is None and match:
        said = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif initial is not None and match != "NotOlderThan":
        said = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    if said:
        fault = forbidden("resourceVersionMatch", said)
        raise Invalid.of("ListOptions", "meta.k8s.io", "", [fault])
    return WatchFrom(
        version=request.parameter("resourceVersion"),
        bookmarks=bool(request.flag("allowWatchBookmarks")),
        initial_events=initial,
    )


def timeout_seconds(request: Request) -> int:
    return _number(request, "timeoutSeconds")


def _number(request: Request, name: str) -> int:
    text = request.parameter(name)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise BadRequest(f'invalid value "{text}" for parameter {name}: must be a whole number')
    return int(text)


async def deletion(request: Request) -> tuple[Deletion, bool]:
    """The options of a deletion, from body or parameters; and whether it is a dry run."""
    body = await object_body(request) if request.body.strip() else {}
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest("the body of a deletion must be DeleteOptions")
    dry_run = body.get("dryRun") or [request.parameter("dryRun")]
    faults: list[FieldError] = []
    if dry_run not in ([], [""], ["All"]):
        # A dry run that is not understood must not become a real deletion.
        faults.append(not_supported("dryRun", dry_run, ["All"]))
    propagation = body.get("propagationPolicy") or request.parameter("propagationPolicy")
    orphan = body.get("orphanDependents")
    if orphan is None:
        orphan = request.flag("orphanDependents")
    if propagation and propagation not in _PROPAGATIONS:
        faults.append(not_supported("propagationPolicy", propagation, _PROPAGATIONS))
    if propagation and orphan is not None:
        said = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", propagation, said))
    if faults:
        raise Invalid.of("DeleteOptions", "meta.k8s.io", "", faults)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise BadRequest("preconditions must be an object")
    how = Deletion(
        propagation=cast(Any, propagation),
        uid=str(preconditions.get("uid") or ""),
        version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=_grace(body, request),
    )
    return how, dry_run == ["All"]


def _grace(body: JsonObject, request: Request) -> int | None:
    given = body.get("gracePeriodSeconds", request.parameter("gracePeriodSeconds") or None)
    try:
        return None if given is None else int(given)
    except (TypeError, ValueError, OverflowError) as fault:
        raise BadRequest("gracePeriodSeconds must be a whole number") from fault
