"""Questions: their answers are computed when read, and never stored.

They are subresources, so that rights apply to them as to everything else:

    workloads/NAME/explain      why it waits, and what would let it start
    workloads/NAME/pods         its pods by name, a page at a time, and their number by state
    workloads/NAME/log          the output of its pods, as text, followed on request
    workloads/NAME/exec         a command in one of its pods; see `streams`, as for the next two
    workloads/NAME/portforward  a port of one of its pods
    clusters/NAME/stream        the stream by which the hub reaches an agent that calls it
    workloads/NAME/traffic      how the load of a service should be shared by its clusters
    fleets/fleet/traffic        the same for all services
    fleets/fleet/decisions      recent decisions, the latest last
    fleets/fleet/history        queues, clusters and services over the last hours and days
    fleets/fleet/access         which namespaces the caller may see, and its other rights
    fleets/fleet/standing       queues with what they hold and which workloads are next
    fleets/fleet/timeline       which workloads had which GPUs when, and which are expected next
    fleets/fleet/snapshot       everything that a decision reads, for `fairway plan`
    fleets/fleet/score          what a scorer yields now, and what that would change; by POST
    fleets/fleet/whatif         the plan with some changes next to the plan without; by POST

Answers for members of one team must not name workloads of other teams: such an answer goes through
`discreet`, with the namespaces that the caller `may` see. The snapshot holds everything, so it is
only for callers that may see everything; the traffic of all services is for what routes it.

What answers is given from outside; the server knows only the questions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from fairway.api.discretion import MayLook, discreet
from fairway.api.errors import MethodNotAllowed, NotFound, Unavailable
from fairway.api.meta import GROUP
from fairway.schema.node import JsonObject
from fairway.server.access.discretion import access_of, may_look
from fairway.server.access.rbac import Authorizer
from fairway.server.objects import Call
from fairway.server.questions import parameters
from fairway.server.questions.history import HistoryRequest, history_request
from fairway.server.questions.parameters import LogRequest, PodsRequest, TimelineRequest
from fairway.server.routes import OPENED
from fairway.server.wire import options
from fairway.server.wire.exchange import ByteStream, Response, json_response
from fairway.store.interface import Store

SUBRESOURCES = {
    "workloads": ("explain", "pods", "log", "exec", "portforward", "traffic"),
    "clusters": ("stream",),
    "fleets": (
        "access",
        "decisions",
        "history",
        "score",
        "snapshot",
        "standing",
        "timeline",
        "traffic",
        "whatif",
    ),
}
_ASKED_BY_POST = frozenset({"score", "whatif"})
_OPENED = frozenset(subresource for _, subresource in OPENED)


class Answers(Protocol):
    """What answers the questions."""

    async def explain(self, namespace: str, name: str, may: MayLook) -> JsonObject | None: ...

    async def decisions(self, workload: str, most: int) -> list[JsonObject]: ...

    async def standing(self) -> JsonObject: ...

    async def snapshot(self) -> JsonObject: ...

    async def timeline(self, request: TimelineRequest, may: MayLook) -> JsonObject: ...

    async def traffic(self, namespace: str, name: str) -> JsonObject: ...

    async def whatif(self, change: JsonObject, may: MayLook) -> JsonObject: ...

    async def score(self, scorer: JsonObject) -> JsonObject: ...

    async def pods(self, request: PodsRequest) -> JsonObject: ...

    async def history(self, request: HistoryRequest) -> JsonObject: ...

    async def log(self, request: LogRequest) -> ByteStream:
        """The log as a stream; returns once it is known that the log exists."""
        ...


class Questions:
    """Answers questions."""

    def __init__(
        self, store: Store, authorizer: Authorizer, answers: Answers | None = None
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self.answers_from: Answers | None = answers
        self.is_deciding = False  # whether `answers_from` is, was or will be set

    def answers(self, call: Call) -> bool:
        target = call.target
        return (
            target.group == GROUP
            and target.subresource in SUBRESOURCES.get(target.plural, ())
            and target.subresource not in _OPENED
        )

    async def answer(self, call: Call) -> Response:
        if call.target.verb != verb_of(call.target.subresource):
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        if call.target.subresource == "access":
            return json_response(access_of(self._authorizer, call.identity))
        if self.answers_from is None:
            raise self._unanswered()
        if call.target.plural == "workloads":
            # Raises NotFound for one that does not exist.
            await self._store.get(call.key, call.target.name, call.namespace)
        return await _ANSWERED[call.target.subresource](call, self.answers_from, self.may(call))

    def may(self, call: Call) -> MayLook:
        """Which namespaces the caller may see into; see `api/discretion`."""
        return may_look(self._authorizer, call.identity, within=call.namespace)

    def _unanswered(self) -> Unavailable:
        if not self.is_deciding:
            return Unavailable("this hub makes no decisions")
        return Unavailable(
            "the hub is starting or ending, ask again in a moment",
            details={"retryAfterSeconds": 1},
        )


def verb_of(subresource: str) -> str:
    """The verb of a question: one with a body is a POST, and streams need `create`."""
    return "create" if subresource in _ASKED_BY_POST | _OPENED else "get"


async def _explain(call: Call, answers: Answers, may: MayLook) -> Response:
    result = await answers.explain(call.namespace, call.target.name, may)
    if result is None:
        raise NotFound("nothing is to be decided on it any more", details={})
    return json_response(result)


async def _pods(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(await answers.pods(parameters.pods_of(call)))


async def _log(call: Call, answers: Answers, may: MayLook) -> Response:
    stream = await answers.log(parameters.log_of(call))
    return Response(stream=stream, content_type="text/plain; charset=utf-8")


async def _traffic(call: Call, answers: Answers, may: MayLook) -> Response:
    is_one = call.target.plural == "workloads"
    whose = (call.namespace, call.target.name) if is_one else ("", "")
    return json_response(await answers.traffic(*whose))


async def _decisions(call: Call, answers: Answers, may: MayLook) -> Response:
    workload, most = parameters.decisions_of(call.request)
    # A match would confirm the name; a caller that may not see the namespace gets no decisions.
    is_seen = not workload or may(workload.partition("/")[0])
    decisions = await answers.decisions(workload, most) if is_seen else []
    return json_response(discreet({"decisions": decisions}, may))


async def _history(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(await answers.history(history_request(call.request, may)))


async def _standing(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(discreet(await answers.standing(), may))


async def _timeline(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(await answers.timeline(parameters.timeline_of(call.request), may))


async def _snapshot(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(await answers.snapshot())


async def _whatif(call: Call, answers: Answers, may: MayLook) -> Response:
    body = await options.object_body(call.request)
    answer = await answers.whatif(body, may)
    return json_response(discreet(answer, may))


async def _score(call: Call, answers: Answers, may: MayLook) -> Response:
    return json_response(await answers.score(await options.object_body(call.request)))


_ANSWERED: dict[str, Callable[[Call, Answers, MayLook], Awaitable[Response]]] = {
    "explain": _explain,
    "pods": _pods,
    "log": _log,
    "traffic": _traffic,
    "decisions": _decisions,
    "history": _history,
    "standing": _standing,
    "timeline": _timeline,
    "snapshot": _snapshot,
    "whatif": _whatif,
    "score": _score,
}
