"""Questions: what is worked out when read, and never stored.

They are subresources, so that rights hold for them like for everything else:

    workloads/NAME/explain      why it waits, and what would let it start
    workloads/NAME/log          the output of its pods, as text, followed if asked
    fleets/fleet/decisions      what was decided lately, the latest last
    fleets/fleet/standing       queues with what they hold and who is next
    fleets/fleet/snapshot       everything that a decision looks at, for `fairway plan`
    fleets/fleet/whatif         the plan with some changes beside the plan without; by POST

Who answers is given from outside; the server knows only what may be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from fairway.api.errors import BadRequest, MethodNotAllowed, NotFound, Unavailable
from fairway.api.meta import GROUP
from fairway.schema.node import JsonObject
from fairway.server import options
from fairway.server.exchange import Request, Response, json_response
from fairway.server.objects import Call
from fairway.store.interface import Store

SUBRESOURCES = {
    "workloads": ("explain", "log"),
    "fleets": ("decisions", "standing", "snapshot", "whatif"),
}
_ASKED_BY_POST = frozenset({"whatif"})
_DECISIONS = 100
_DECISIONS_MOST = 5_000
_BEGIN_SECONDS = 0.25  # for which the head of an answer waits for the first output


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which output of which pod of a workload."""

    namespace: str
    name: str
    cluster: str = ""  # empty: where it runs, or ran last
    pod: str = ""
    container: str = ""
    follow: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    is_previous: bool = False


class Answers(Protocol):
    """Who knows."""

    async def explain(self, namespace: str, name: str) -> JsonObject | None: ...

    async def decisions(self, workload: str, most: int) -> list[JsonObject]: ...

    async def standing(self) -> JsonObject: ...

    async def snapshot(self) -> JsonObject: ...

    async def whatif(self, change: JsonObject) -> JsonObject: ...

    def log(self, request: LogRequest) -> AsyncIterator[bytes]: ...


class Questions:
    """Answers what is worked out when read."""

    def __init__(self, store: Store, answers: Answers | None = None) -> None:
        self._store = store
        self.answers_from: Answers | None = answers
        self.is_deciding = False  # whether there is, was or will be somebody who answers

    def answers(self, call: Call) -> bool:
        target = call.target
        return target.group == GROUP and target.subresource in SUBRESOURCES.get(target.plural, ())

    async def answer(self, call: Call) -> Response:
        if call.target.verb != verb_of(call.target.subresource):
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        if self.answers_from is None:
            raise self._unanswered()
        if call.target.plural == "workloads":
            # Raises NotFound for one that does not exist.
            await self._store.get(call.key, call.target.name, call.namespace)
        match call.target.subresource:
            case "explain":
                return await self._explain(call, self.answers_from)
            case "log":
                return await _log(call, self.answers_from)
            case "decisions":
                most = min(_number(call.request, "limit") or _DECISIONS, _DECISIONS_MOST)
                workload = call.request.parameter("workload")
                found = await self.answers_from.decisions(workload, most)
                return json_response({"decisions": found})
            case "standing":
                return json_response(await self.answers_from.standing())
            case "whatif":
                change = options.object_body(call.request)
                return json_response(await self.answers_from.whatif(change))
            case _:
                return json_response(await self.answers_from.snapshot())

    def _unanswered(self) -> Unavailable:
        if not self.is_deciding:
            return Unavailable("this hub makes no decisions")
        return Unavailable(
            "the hub is starting or ending, ask again in a moment",
            details={"retryAfterSeconds": 1},
        )

    async def _explain(self, call: Call, answers: Answers) -> Response:
        found = await answers.explain(call.namespace, call.target.name)
        if found is None:
            raise NotFound("nothing is to be decided on it any more", details={})
        return json_response(found)


def verb_of(subresource: str) -> str:
    """The verb by which a question is asked: one that carries much is a POST."""
    return "create" if subresource in _ASKED_BY_POST else "get"


async def _log(call: Call, answers: Answers) -> Response:
    request = call.request
    wanted = LogRequest(
        namespace=call.namespace,
        name=call.target.name,
        cluster=request.parameter("cluster"),
        pod=request.parameter("pod"),
        container=request.parameter("container"),
        follow=bool(request.flag("follow")),
        tail_lines=_number(request, "tailLines"),
        since_seconds=_number(request, "sinceSeconds"),
        is_previous=bool(request.flag("previous")),
    )
    stream = _Chunks(answers.log(wanted))
    await stream.begin()
    return Response(stream=stream, content_type="text/plain; charset=utf-8")


class _Chunks:
    """The chunks of an iterator, which ends when the client goes."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._first = asyncio.ensure_future(_next(chunks))

    async def begin(self) -> None:
        """Reads ahead for a moment, so that what cannot be read at all is refused as such."""
        done, _ = await asyncio.wait((self._first,), timeout=_BEGIN_SECONDS)
        if done:
            self._first.result()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        first = await self._first
        if first is not None:
            yield first
            async for chunk in self._chunks:
                yield chunk

    async def aclose(self) -> None:
        if not self._first.done():
            self._first.cancel()
            await asyncio.wait((self._first,))
        close: Any = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequest(f"{name}: expected a whole number, got {text!r}")
    return int(text)
