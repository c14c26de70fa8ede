"""From a request to its response.

`Api.answer` has all steps in one place: authenticate, wait for one's turn, find the target,
impersonate, authorize, read the body, execute, audit. Every error is returned as a `Status`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

import msgspec

from fairway.api.errors import (
    ApiError,
    BadRequest,
    InternalError,
    NotFound,
    Unauthorized,
    Unavailable,
)
from fairway.clock import Clock
from fairway.resources.catalogue import Catalogue
from fairway.server.access import audit, rbac, read_only
from fairway.server.access.discretion import part_of
from fairway.server.access.fairness import (
    EXEMPT,
    WEBHOOKS,
    Caller,
    CallerSeat,
    Fairness,
    caller_of,
    is_probe,
)
from fairway.server.access.identity import ANONYMOUS, Identity
from fairway.server.access.impersonation import impersonate
from fairway.server.access.openid.id_tokens import IdTokens
from fairway.server.access.rbac import Authorizer
from fairway.server.access.rbac_rules import Attributes
from fairway.server.access.review_kinds import Reviewer
from fairway.server.access.sign_in import SigningIn
from fairway.server.access.token_review import Vouching
from fairway.server.access.tokens import Authenticator
from fairway.server.documents import discovery
from fairway.server.documents.page import Page
from fairway.server.documents.plain_paths import Documents
from fairway.server.metrics import Metrics
from fairway.server.objects import Call, Objects
from fairway.server.questions.questions import Questions
from fairway.server.questions.streams import Talks
from fairway.server.routes import Target, target_of
from fairway.server.upkeep import PREFIX as UPKEEP
from fairway.server.upkeep import Upkeep
from fairway.server.wire.admissions import Admissions, CheckWrite
from fairway.server.wire.bodies import read_body
from fairway.server.wire.conversions import Conversions
from fairway.server.wire.exchange import Request, Response, json_response

_log = logging.getLogger(__name__)
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(slots=True)
class _Seen:
    """What is known of a request so far, for metrics and audit."""

    identity: Identity = ANONYMOUS
    impersonated_by: Identity | None = None
    shown: Identity | ApiError | None = None  # who is calling, or why that is not known
    target: Target | None = None
    is_in_part: bool = False  # allowed to see only a part of the object


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The parts that answer requests."""

    catalogue: Catalogue
    authenticator: Authenticator
    authorizer: Authorizer
    objects: Objects
    reviewer: Reviewer
    questions: Questions
    talks: Talks
    documents: Documents
    page: Page
    signing_in: SigningIn
    conversions: Conversions
    admissions: Admissions
    fairness: Fairness
    audit_log: audit.AuditLog
    metrics: Metrics
    clock: Clock
    upkeep: Upkeep
    id_tokens: IdTokens | None = None  # of a company's provider
    vouching: Vouching | None = None  # another server that knows tokens

    def open_webhooks(self, check: CheckWrite | None) -> None:
        """Lets an API server ask, about writes too; None: no server may."""
        self.admissions.check = check
        self.conversions.is_open = check is not None

    async def answer(self, request: Request) -> Response:
        """Answers a request; every failure is a response as well."""
        started = time.perf_counter()
        seen = _Seen()
        self.metrics.request_began()
        try:
            response = await self._answer(request, seen)
        except ApiError as error:
            response = _refuse(error)
        except RecursionError:
            response = _refuse(BadRequest("the body of the request is nested too deeply"))
        except Exception:
            _log.exception("a request failed: %s %s", request.method, request.path)
            response = _refuse(InternalError("an internal error occurred; the hub's log says more"))
        finally:
            self.metrics.request_ended()
        self._record(request, response, seen, time.perf_counter() - started)
        return response

    async def _answer(self, request: Request, seen: _Seen) -> Response:
        """Answers in turn: a caller that uses more than its share is refused before its body is
        read."""
        seat = await self.fairness.enter(await self._caller(request, seen))
        if seat is None:
            return await self._answer_seated(request, seen)
        try:
            response = await self._answer_seated(request, seen)
            seat.charge(len(response.body))
            if response.stream is not None or response.meeting is not None:
                await _count_as_stream(response, seat)
        except BaseException:
            seat.leave()
            raise
        return replace(response, seat=seat)  # a cached response stays as it is

    async def _caller(self, request: Request, seen: _Seen) -> Caller:
        if is_probe(request.path):
            return EXEMPT
        if any(webhook.is_asked(request) for webhook in (self.conversions, self.admissions)):
            return WEBHOOKS
        shown = await self._shown(request, seen)
        return caller_of(None if isinstance(shown, ApiError) else shown, request.source)

    async def _shown(self, request: Request, seen: _Seen) -> Identity | ApiError:
        """The identity that a request shows, or why it does not hold; found out once."""
        if seen.shown is None:
            try:
                seen.shown = await self._authenticate(request)
            except ApiError as fault:
                seen.shown = fault
        return seen.shown

    async def _answer_seated(self, request: Request, seen: _Seen) -> Response:
        if (signed := await self.signing_in.answer(request, self._authenticate)) is not None:
            return signed
        # The page's files are the same for all users and hold no data, so they need no identity.
        if (static := self.page.answer(request)) is not None:
            return static
        for webhook in (self.conversions, self.admissions):
            if webhook.is_asked(request):
                return await webhook.answer(await request.whole())
        target = seen.target = target_of(request)
        acting = await self._admit(request, target, seen)
        request = await read_body(request, target)
        if not target.is_resource:
            return await self._answer_path(request)
        resource = self.catalogue.find(target.group, target.version, target.plural)
        call = Call(
            request=request,
            target=target,
            resource=resource,
            identity=acting,
            is_in_part=seen.is_in_part,
        )
        if self.reviewer.answers(call):
            return await self.reviewer.answer(call)
        if self.questions.answers(call):
            return await self.questions.answer(call)
        if self.talks.answers(call):
            return await self.talks.answer(call, lambda: self._is_admitted(request, target))
        return await self.objects.answer(call)

    async def _admit(self, request: Request, target: Target, seen: _Seen) -> Identity:
        """Authenticates, impersonates and authorizes; returns the identity that acts."""
        shown = await self._shown(request, seen)
        if isinstance(shown, ApiError):
            raise shown
        identity = seen.identity = shown
        if read_only.is_marked(identity):
            read_only.confirm(target)
        acting = impersonate(identity, request.headers, self.authorizer.authorize)
        if acting is not identity:
            seen.identity, seen.impersonated_by = acting, identity
        seen.is_in_part = self._authorize(request, target, acting)
        return acting

    async def _is_admitted(self, request: Request, target: Target) -> bool:
        """Whether a long-running request would be admitted now."""
        try:
            await self._admit(request, target, _Seen())
        except ApiError:
            return False
        return True

    async def _authenticate(self, request: Request) -> Identity:
        given = request.header("authorization")
        if not given:
            return ANONYMOUS
        scheme, _, token = given.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        within = self.signing_in.open_token(token)
        identity = await self._identify(within or token, request.source) if token else None
        if identity is None:
            self.metrics.authentication_failed()
            raise Unauthorized("Unauthorized")
        return identity if within is None else read_only.mark_read_only(identity)

    async def _identify(self, token: str, source: str) -> Identity | None:
        """The identity of a token; an unavailable verifier does not stop the next one."""
        identity = self.authenticator.authenticate(token)
        away: Unavailable | None = None
        if identity is None and self.id_tokens is not None and self.id_tokens.is_ours(token):
            try:
                identity = await self.id_tokens.identity(token)
            except Unavailable as error:
                away = error
        if identity is None and self.vouching is not None:
            identity = await self.vouching.identity(token, source)
        if identity is None and away is not None:
            raise away
        return identity

    def _authorize(self, request: Request, target: Target, identity: Identity) -> bool:
        """Whether the caller may see only a part; raises Forbidden if it may see nothing.

        Nothing is looked up before, so that a refusal does not reveal what exists.
        """
        wanted = _attributes(request, target, identity)
        decision = self.authorizer.authorize(wanted)
        if decision.allowed:
            return False
        part = part_of(wanted)
        if part is not None and self.authorizer.authorize(part).allowed:
            return True
        raise rbac.forbidden(wanted, decision.reason)

    async def _answer_path(self, request: Request) -> Response:
        document = discovery.answer(request, self.catalogue)
        if document is not None:
            version = discovery.aggregated_version(request)
            if document.get("kind") == "APIGroupDiscoveryList":
                kind = (
                    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                )
                return json_response(document, content_type=kind)
            return json_response(document)
        response = await self.documents.answer(request) or await self.upkeep.answer(request)
        if response is None:
            raise NotFound("the server could not find the requested resource", details={})
        return response

    def _record(self, request: Request, response: Response, seen: _Seen, seconds: float) -> None:
        target = seen.target
        verb = target.verb if target is not None else request.method.lower()
        self.metrics.request_answered(verb, _qualified(target), response.status, seconds)
        if target is None or not (verb in _WRITES or target.path.startswith(UPKEEP)):
            return
        wanted = _attributes(request, target, seen.identity)
        if not wanted.name and response.status == 201:
            wanted = msgspec.structs.replace(wanted, name=_name_of(response.body))
        self.audit_log.record(
            audit.entry(
                wanted,
                now=self.clock.now(),
                code=response.status,
                request_id=request.header("audit-id"),
                impersonated_by=seen.impersonated_by,
                source_address=request.source,
                user_agent=request.header("user-agent"),
                dry_run=request.parameter("dryRun") == "All",
            )
        )


async def _count_as_stream(response: Response, seat: CallerSeat) -> None:
    try:
        seat.become_stream()
    except ApiError:
        if response.stream is not None:
            await response.stream.aclose()
        raise


def _refuse(error: ApiError) -> Response:
    response = json_response(error.status(), status=error.code)
    seconds = error.details.get("retryAfterSeconds")
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_named = msgspec.json.Decoder(_Named).decode


def _name_of(body: bytes) -> str:
    """The name of a new object, from the response, since the path has none."""
    try:
        return _decode_named(body).metadata.name
    except msgspec.MsgspecError:
        return ""


def _qualified(target: Target | None) -> str:
    if target is None or not target.group:
        return target.plural if target is not None else ""
    return f"{target.plural}.{target.group}"


def _attributes(request: Request, target: Target, identity: Identity) -> Attributes:
    if not target.is_resource:
        return Attributes(
            user=identity.user, groups=identity.groups, verb=target.verb, path=target.path
        )
    name = target.name
    if not name and target.verb in ("list", "watch", "deletecollection"):
        name = rbac.exact_name(request.parameter("fieldSelector"))
    return Attributes(
        user=identity.user,
        groups=identity.groups,
        verb=target.verb,
        group=target.group,
        resource=target.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=name,
    )
