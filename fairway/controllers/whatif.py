"""What if: a plan on a copy of the snapshot with some changes, beside the plan without them.

Nothing is written, and nothing of it is seen by the planner that decides. It is worked out in a
process of its own, by the same function that `fairway plan` uses, one question at a time: a large
fleet takes a while, and the hub goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from fairway.api.documents import ManifestError, read_documents
from fairway.api.errors import BadRequest, InternalError, Timeout, TooManyRequests
from fairway.api.meta import GROUP

_SECONDS_MAX = 60.0
_ASKED_MOST = 8  # that wait for their turn; more are told to come again
_NAMESPACED = ("Workload", "PlacementPolicy")

JsonObject = dict[str, Any]
Identity = tuple[str, str, str]  # kind, namespace, name


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An object that is taken away."""

    kind: str
    name: str
    namespace: str = ""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is different in the copy."""

    manifests: str = ""  # YAML, put in or in place of what has the same name
    apply: tuple[JsonObject, ...] = ()  # the same, as JSON
    remove: tuple[Named, ...] = ()
    lose: tuple[str, ...] = ()  # clusters that are gone, with all that ran there


def read_change(plain: JsonObject) -> Change:
    try:
        return msgspec.convert(plain, Change)
    except msgspec.ValidationError as fault:
        raise BadRequest(f"the change cannot be read: {fault}") from fault


def changed(objects: Iterable[JsonObject], change: Change) -> list[JsonObject]:
    """The objects with the change made; the same that one would write into a dumped snapshot."""
    put = [*change.apply, *_read(change.manifests)]
    replaced = {_identity(one) for one in put}
    removed = {(one.kind, one.namespace, one.name) for one in change.remove}
    lost = frozenset(change.lose)
    kept = [
        _without(one, lost)
        for one in objects
        if _identity(one) not in replaced | removed and not _is_of(one, lost)
    ]
    return [*kept, *put]


def _read(text: str) -> list[JsonObject]:
    if not text.strip():
        return []
    try:
        return [dict(one.value) for one in read_documents(text, "manifests")]
    except ManifestError as fault:
        raise BadRequest(fault.message) from fault


def _identity(plain: JsonObject) -> Identity:
    kind, metadata = str(plain.get("kind", "")), plain.get("metadata") or {}
    is_named = kind in _NAMESPACED or not str(plain.get("apiVersion", "")).startswith(GROUP)
    namespace = str(metadata.get("namespace") or "default") if is_named else ""
    return kind, namespace, str(metadata.get("name", ""))


def _is_of(plain: JsonObject, lost: frozenset[str]) -> bool:
    match plain.get("kind"):
        case "Cluster":
            return plain["metadata"]["name"] in lost
        case "ClusterReport":
            return plain["spec"]["cluster"] in lost
        case _:
            return False


def _without(plain: JsonObject, lost: frozenset[str]) -> JsonObject:
    """What was in a cluster which is gone waits again; replicas and tasks elsewhere go on."""
    claim = (plain.get("status") or {}).get("claim") if plain.get("kind") == "Workload" else None
    if not lost or not claim:
        return plain
    placements = claim.get("placements") or ()
    if not any(one.get("cluster") in lost for one in placements):
        return plain
    left = [one for one in placements if one.get("cluster") not in lost]
    if left and plain["spec"].get("mode", "Gang") != "Gang":
        return {**plain, "status": plain["status"] | {"claim": {**claim, "placements": left}}}
    status = {key: value for key, value in plain["status"].items() if key != "claim"}
    return {**plain, "status": status | {"phase": "Waiting"}}


class WhatIf:
    """Answers what if, one question at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._asked = 0

    async def answer(self, objects: Sequence[JsonObject], now: float, change: Change) -> JsonObject:
        """The plan as it is and the plan as it would be."""
        asked = {"now": now, "before": list(objects), "after": changed(objects, change)}
        if self._asked >= _ASKED_MOST:
            raise TooManyRequests("others are asking what if; try again in a moment")
        self._asked += 1
        try:
            async with self._turn, asyncio.timeout(_SECONDS_MAX):
                answer = await _worked_out(msgspec.json.encode(asked))
        except TimeoutError as fault:
            raise Timeout(f"this takes longer than {_SECONDS_MAX:.0f} seconds") from fault
        finally:
            self._asked -= 1
        if "refused" in answer:
            raise BadRequest(str(answer["refused"]))
        return answer


async def _worked_out(question: bytes) -> JsonObject:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairway.controllers.whatif_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        answer, _ = await process.communicate(question)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise InternalError("the plan could not be made; the hub's log says more")
    found: JsonObject = msgspec.json.decode(answer)
    return found
