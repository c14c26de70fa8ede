"""Questions: what is worked out when read, and never stored.

They are subresources, so that rights hold for them like for everything else:

    workloads/NAME/explain      why it waits, and what would let it start
    workloads/NAME/pods         its pods by name, a page at a time, and how many are in which state
    workloads/NAME/log          the output of its pods, as text, followed if asked
    workloads/NAME/exec         a command in one of its pods; see `talks`, as for the next two
    workloads/NAME/portforward  a port of one of its pods
    clusters/NAME/stream        the stream by which an agent is reached that calls its hub
    workloads/NAME/traffic      how the load of a service should be shared by its clusters
    fleets/fleet/traffic        the same of all services
    fleets/fleet/decisions      what was decided lately, the latest last
    fleets/fleet/history        how queues, clusters and services stood over the last hours and days
    fleets/fleet/standing       queues with what they hold and who is next
    fleets/fleet/timeline       who had which GPUs when, and who is expected next
    fleets/fleet/snapshot       everything that a decision looks at, for `fairway plan`
    fleets/fleet/whatif         the plan with some changes beside the plan without; by POST

What is asked by people of one team among others tells no names of the others' workloads: such an
answer goes through `discreet`, with what the caller `may` see. The snapshot is everything, and so
for those alone who may see everything; how all traffic is shared is for who shares it.

Who answers is given from outside; the server knows only what may be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from fairway.api.discretion import MayLook, discreet
from fairway.api.errors import BadRequest, MethodNotAllowed, NotFound, Unavailable
from fairway.api.meta import GROUP
from fairway.schema.node import JsonObject
from fairway.server import options
from fairway.server.discretion import may_look
from fairway.server.exchange import ByteStream, Request, Response, json_response
from fairway.server.histories import HistoryRequest, history_request
from fairway.server.objects import Call
from fairway.server.rbac import Authorizer
from fairway.server.routes import OPENED
from fairway.store.interface import Store

SUBRESOURCES = {
    "workloads": ("explain", "pods", "log", "exec", "portforward", "traffic"),
    "clusters": ("stream",),
    "fleets": ("decisions", "standing", "history", "snapshot", "timeline", "whatif", "traffic"),
}
_ASKED_BY_POST = frozenset({"whatif"})
_OPENED = frozenset(subresource for _, subresource in OPENED)
_DECISIONS = 100
_DECISIONS_MOST = 5_000
_SPANS = 100
_SPANS_MOST = 1_000
_HOUR = 3600.0
_FROM_NOW_BELOW = 1e8  # moments so small are seconds from now

_PODS = 500
_PODS_MOST = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """Which pod of a workload, and who asks."""

    namespace: str
    name: str
    cluster: str = ""  # empty: where it runs, or ran last
    pod: str = ""
    container: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest(PodRequest):
    """Which output of it."""

    follow: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    is_previous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """Which part of the timeline; moments below a hundred million are seconds from now."""

    by: Literal["cluster", "queue"] = "cluster"
    start: float = -_HOUR
    end: float = _HOUR / 4
    most: int = _SPANS  # spans of a group that are told one by one

    def between(self, now: float) -> tuple[float, float]:
        """From when to when."""
        start, end = (
            now + one if abs(one) < _FROM_NOW_BELOW else one for one in (self.start, self.end)
        )
        if not start < end:
            raise BadRequest("from: expected a moment before to")
        return start, end


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsRequest(PodRequest):
    """Which page of its pods."""

    most: int
    after: str = ""  # as an earlier page said how it goes on


class Answers(Protocol):
    """Who knows."""

    async def explain(self, namespace: str, name: str, may: MayLook) -> JsonObject | None: ...

    async def decisions(self, workload: str, most: int) -> list[JsonObject]: ...

    async def standing(self) -> JsonObject: ...

    async def snapshot(self) -> JsonObject: ...

    async def timeline(self, request: TimelineRequest, may: MayLook) -> JsonObject: ...

    async def traffic(self, namespace: str, name: str) -> JsonObject: ...

    async def whatif(self, change: JsonObject) -> JsonObject: ...

    async def pods(self, request: PodsRequest) -> JsonObject: ...

    async def history(self, request: HistoryRequest) -> JsonObject: ...

    async def log(self, request: LogRequest) -> ByteStream:
        """Output as it comes; returns once it is known that there is such output."""
        ...


class Questions:
    """Answers what is worked out when read."""

    def __init__(
        self, store: Store, authorizer: Authorizer, answers: Answers | None = None
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self.answers_from: Answers | None = answers
        self.is_deciding = False  # whether there is, was or will be somebody who answers

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
            case "pods":
                return json_response(await self.answers_from.pods(_page(call)))
            case "decisions":
                most = min(_number(call.request, "limit") or _DECISIONS, _DECISIONS_MOST)
                workload = call.request.parameter("workload")
                found = await self.answers_from.decisions(workload, most)
                return json_response(discreet({"decisions": found}, self.may(call)))
            case "traffic":
                is_one = call.target.plural == "workloads"
                whose = (call.namespace, call.target.name) if is_one else ("", "")
                return json_response(await self.answers_from.traffic(*whose))
            case "standing":
                answer = await self.answers_from.standing()
                return json_response(discreet(answer, self.may(call)))
            case "timeline":
                asked = _timeline(call.request)
                return json_response(await self.answers_from.timeline(asked, self.may(call)))
            case "history":
                wanted = history_request(call.request, self.may(call))
                return json_response(await self.answers_from.history(wanted))
            case "whatif":
                change = options.object_body(call.request)
                answer = await self.answers_from.whatif(change)
                return json_response(discreet(answer, self.may(call)))
            case _:
                return json_response(await self.answers_from.snapshot())

    def may(self, call: Call) -> MayLook:
        """Of which namespaces the caller may know what is in them; see `api/discretion`."""
        return may_look(self._authorizer, call.identity, within=call.namespace)

    def _unanswered(self) -> Unavailable:
        if not self.is_deciding:
            return Unavailable("this hub makes no decisions")
        return Unavailable(
            "the hub is starting or ending, ask again in a moment",
            details={"retryAfterSeconds": 1},
        )

    async def _explain(self, call: Call, answers: Answers) -> Response:
        found = await answers.explain(call.namespace, call.target.name, self.may(call))
        if found is None:
            raise NotFound("nothing is to be decided on it any more", details={})
        return json_response(found)


def verb_of(subresource: str) -> str:
    """The verb by which a question is asked: one that carries much is a POST."""
    return "create" if subresource in _ASKED_BY_POST | _OPENED else "get"


def _page(call: Call) -> PodsRequest:
    most = min(_number(call.request, "limit") or _PODS, _PODS_MOST)
    return PodsRequest(**pod_of(call), most=most, after=call.request.parameter("continue"))


async def _log(call: Call, answers: Answers) -> Response:
    request = call.request
    wanted = LogRequest(
        **pod_of(call),
        follow=bool(request.flag("follow")),
        tail_lines=_number(request, "tailLines"),
        since_seconds=_number(request, "sinceSeconds"),
        is_previous=bool(request.flag("previous")),
    )
    stream = await answers.log(wanted)
    return Response(stream=stream, content_type="text/plain; charset=utf-8")


def pod_of(call: Call) -> dict[str, Any]:
    """Which pod a request is about, and who asks."""
    request = call.request
    return {
        "namespace": call.namespace,
        "name": call.target.name,
        "cluster": request.parameter("cluster"),
        "pod": request.parameter("pod"),
        "container": request.parameter("container"),
        "user": call.identity.user,
        "groups": tuple(call.identity.groups),
    }


def _timeline(request: Request) -> TimelineRequest:
    plain = TimelineRequest()
    by = request.parameter("by") or plain.by
    if by not in ("cluster", "queue"):
        raise BadRequest(f"by: expected cluster or queue, got {by!r}")
    most = _number(request, "most")
    return TimelineRequest(
        by="queue" if by == "queue" else "cluster",
        start=_seconds(request, "from", plain.start),
        end=_seconds(request, "to", plain.end),
        most=plain.most if most is None else min(most, _SPANS_MOST),
    )


def _seconds(request: Request, name: str, default: float) -> float:
    text = request.parameter(name)
    try:
        found = float(text) if text else default
    except ValueError:
        found = float("nan")
    if not abs(found) < float("inf"):
        raise BadRequest(f"{name}: expected seconds, got {text!r}")
    return found


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequest(f"{name}: expected a whole number, got {text!r}")
    return int(text)
