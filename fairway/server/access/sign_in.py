"""Requests of the page around sign-in; all but `look-only` need no identity.

    GET  /page/settings.json        what the page may offer
    POST /page/session/look-only    a look-only token, for the token in the header
    POST /page/session/begin        the URL to send the browser to
    POST /page/session/exchange     a token for the code that the browser brought back
    POST /page/session/renew        a new token before the old one expires
    POST /page/session/end          signs out, and names the provider's URL for signing out

A tab uses a path of its own, `/page/session/PLACE/renew`, so that the browser sends the cookie of
this tab and not those of all earlier tabs. A sign-in is renewed by a cookie for that path alone,
which no script can read, no other site can send, and which is useless without a secret of the tab.
The redirect address is always the page's, at an origin of the hub's own; a request from another
origin is refused.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from fairway.api.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
)
from fairway.clock import Clock
from fairway.server.access.identity import Identity
from fairway.server.access.openid.claims import TokenRefused
from fairway.server.access.openid.flow import Flow, SignedIn
from fairway.server.access.openid.provider import ProviderFault, ProviderRefusal
from fairway.server.access.rate_limit import TokenBuckets
from fairway.server.access.secret_box import LOOK_ONLY, Renewal, Sealing
from fairway.server.documents.page import PREFIX, SAFETY
from fairway.server.wire.addresses import neighbourhood
from fairway.server.wire.exchange import Request, Response, json_response

_log = logging.getLogger(__name__)

_AT_ONCE = 100  # a whole company may share the address of a proxy
_PER_SECOND = 5.0
_BODY_BYTES_MOST = 64 << 10
_COOKIE_BYTES_MOST = 3_800  # browsers keep at most 4,096 bytes with name and attributes
_WORD = re.compile(r"[A-Za-z0-9_-]{22,128}")
_WORDS = {"tab", "state", "nonce", "challenge", "verifier"}
_SESSION = f"{PREFIX}session/"
_OF_TAB = re.compile(rf"(?<=^{_SESSION})[0-9a-f]{{16}}/")
_Form = TypeVar("_Form", bound=msgspec.Struct)
Authenticate = Callable[[Request], Awaitable[Identity]]


class _Begin(msgspec.Struct, frozen=True):
    state: str
    nonce: str
    challenge: str


class _Exchange(msgspec.Struct, frozen=True):
    tab: str
    code: str
    verifier: str
    nonce: str


class _OfTab(msgspec.Struct, frozen=True):
    tab: str = ""


class SigningIn:
    """Answers the page's requests around sign-in."""

    def __init__(
        self,
        *,
        sealing: Sealing,
        clock: Clock,
        flow: Flow | None = None,
        is_read_only: bool = False,
    ) -> None:
        self._sealing = sealing
        self._flow = flow
        self._is_read_only = is_read_only
        self._clock = clock
        self._rate = TokenBuckets(clock, burst=_AT_ONCE, per_second=_PER_SECOND)
        self.origins: frozenset[str] = frozenset()  # of the page; set once they are known
        self._answers: dict[str, Callable[[Request, Flow], Awaitable[Response]]] = {
            f"{_SESSION}begin": self._begin,
            f"{_SESSION}exchange": self._exchange,
            f"{_SESSION}renew": self._renew,
            f"{_SESSION}end": self._end,
        }

    async def answer(self, request: Request, authenticate: Authenticate) -> Response | None:
        """The response to a request around sign-in; None: the request is something else."""
        if not request.path.startswith(PREFIX):
            return None
        if request.path == f"{PREFIX}settings.json":
            return self._settings(request)
        if not request.path.startswith(_SESSION):
            return None
        path = _OF_TAB.sub("", request.path)
        if path == f"{_SESSION}look-only":
            _confirm_own(request)
            return await self._look_only(await request.whole(), authenticate)
        answer = self._answers.get(path)
        if answer is None or self._flow is None:
            raise NotFound("this hub does not sign people in by a provider", details={})
        _confirm_own(request)
        self._limit(request)
        request = await request.whole()
        try:
            return await answer(request, self._flow)
        except (TokenRefused, ProviderRefusal) as refused:
            _log.warning("a sign-in failed: %s", refused)
            raise Unauthorized(f"{refused}") from refused
        except ProviderFault as fault:
            raise Unavailable(f"{self._flow.name} cannot be asked: {fault}") from fault

    def _limit(self, request: Request) -> None:
        if self._rate.take(neighbourhood(request.source)) is None:
            raise TooManyRequests(
                "there were too many sign-ins from your address, try again in a moment",
                details={"retryAfterSeconds": 1},
            )

    def open_token(self, token: str) -> str | None:
        """The token inside a look-only token; None: it is not one."""
        return self._sealing.open_token(token) if token.startswith(LOOK_ONLY) else None

    def _settings(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise _not_allowed()
        oidc = {"name": self._flow.name} if self._flow is not None else None
        return _kept_by_nobody({"oidc": oidc, "readOnly": self._is_read_only})

    async def _look_only(self, request: Request, authenticate: Authenticate) -> Response:
        """Exchanges the token in the header; renewals of the sign-in stay look-only."""
        token = request.header("authorization").partition(" ")[2].strip()
        if not token:
            raise Unauthorized("Unauthorized")
        await authenticate(request)
        form = _read(await request.whole(), _OfTab)
        sealed = token if token.startswith(LOOK_ONLY) else self._sealing.seal_token(token)
        response = _kept_by_nobody({"token": sealed})
        renewal = self._renewal(request, form.tab)
        if renewal is not None:
            changed = msgspec.structs.replace(renewal, is_look_only=True)
            self._keep(response, form.tab, changed)
        return response

    async def _begin(self, request: Request, flow: Flow) -> Response:
        form, redirect = _read(request, _Begin), self._redirect(request)
        location = await flow.begin(
            redirect=redirect, state=form.state, nonce=form.nonce, challenge=form.challenge
        )
        return _kept_by_nobody({"location": location})

    async def _exchange(self, request: Request, flow: Flow) -> Response:
        form, redirect = _read(request, _Exchange), self._redirect(request)
        session = await flow.exchange(
            redirect=redirect, code=form.code, verifier=form.verifier, nonce=form.nonce
        )
        _log.info("%s signed in to the page by %s", session.believed.identity.user, flow.name)
        return self._signed_in(session, form.tab, is_look_only=self._is_read_only)

    async def _renew(self, request: Request, flow: Flow) -> Response:
        form = _read(request, _OfTab)
        renewal = self._renewal(request, form.tab)
        if renewal is None:
            raise Unauthorized("there is nothing to renew this sign-in by")
        session = await flow.renew(renewal.refresh_token, renewal.subject)
        is_look_only = renewal.is_look_only or self._is_read_only
        return self._signed_in(session, form.tab, is_look_only=is_look_only)

    async def _end(self, request: Request, flow: Flow) -> Response:
        form, redirect = _read(request, _OfTab), self._redirect(request)
        renewal = self._renewal(request, form.tab)
        try:
            location = await flow.end(renewal.refresh_token if renewal else "", redirect=redirect)
        except (ProviderFault, ApiError) as fault:
            # Signing out succeeds anyway; the tab has already dropped its tokens.
            _log.warning("the provider was not told of a sign-out: %s", fault)
            location = ""
        response = _kept_by_nobody({"location": location or None})
        if form.tab:
            _set_cookie(response, form.tab, "", "; Max-Age=0")
        return response

    def _signed_in(self, session: SignedIn, tab: str, *, is_look_only: bool) -> Response:
        token = self._sealing.seal_token(session.token) if is_look_only else session.token
        renewal = Renewal(
            refresh_token=session.refresh_token,
            subject=session.believed.subject,
            tab=_digest(tab),
            is_look_only=is_look_only,
        )
        response = _kept_by_nobody({})
        is_kept = bool(session.refresh_token) and self._keep(response, tab, renewal)
        answer = {
            "token": token,
            # A duration by the hub's clock, since the browser's clock may be wrong.
            "lastsSeconds": session.believed.expires - self._clock.now(),
            "isRenewable": is_kept,
            "isLookOnly": is_look_only,
        }
        response.body = msgspec.json.encode(answer)
        return response

    def _keep(self, response: Response, tab: str, renewal: Renewal) -> bool:
        sealed = self._sealing.seal_renewal(renewal)
        if len(sealed) > _COOKIE_BYTES_MOST:
            _log.warning(
                "a sign-in cannot be renewed: what the provider gives for it has %d bytes, more "
                "than a cookie holds",
                len(renewal.refresh_token),
            )
            return False
        _set_cookie(response, tab, sealed)
        return True

    def _renewal(self, request: Request, tab: str) -> Renewal | None:
        """The renewal of a tab's sign-in, if the browser sent its cookie and the tab matches."""
        if not tab:
            return None
        try:
            known = SimpleCookie(request.header("cookie")).get(_cookie(tab))
        except CookieError:
            return None
        renewal = self._sealing.open_renewal(known.value) if known is not None else None
        return renewal if renewal is not None and renewal.tab == _digest(tab) else None

    def _redirect(self, request: Request) -> str:
        """The URL to which the provider sends the browser back: the page, at the same origin."""
        origin = request.header("origin")
        if origin not in self.origins:
            raise Forbidden(
                f"the page is not known to be at {origin or 'the address that was asked'}; "
                "start the hub with --page-url and the address that people open",
                details={},
            )
        return f"{origin}{PREFIX}"


def origins_of(urls: Iterable[str]) -> frozenset[str]:
    """The origins of URLs as browsers write them: without a path, and without port 443."""
    origins = set()
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        origins.add(
            f"https://{shown}" + (f":{parts.port}" if parts.port not in (None, 443) else "")
        )
    return frozenset(origins)


def _confirm_own(request: Request) -> None:
    """Refuses requests from other sites, which can neither send JSON here nor read a response."""
    if request.method != "POST":
        raise _not_allowed()
    if request.header("sec-fetch-site") not in ("", "same-origin"):
        raise Forbidden("this is for the hub's own page", details={})
    if request.header("content-type").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("the body must be application/json")


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method here", details={})


def _read(request: Request, form: type[_Form]) -> _Form:
    if len(request.body) > _BODY_BYTES_MOST:
        raise BadRequest(f"the body has more than {_BODY_BYTES_MOST} bytes")
    try:
        decoded = msgspec.json.decode(request.body, type=form)
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise BadRequest(f"the body cannot be understood: {fault}") from None
    for name in _WORDS & set(decoded.__struct_fields__):
        value = getattr(decoded, name)
        if not _WORD.fullmatch(value) and (value or form is not _OfTab):
            raise BadRequest(f"{name}: expected 22 to 128 letters, digits, - or _")
    return decoded


def _kept_by_nobody(value: object) -> Response:
    return json_response(value, headers={**SAFETY, "Cache-Control": "no-store"})


def _digest(tab: str) -> str:
    return hashlib.sha256(tab.encode()).hexdigest()


def _place(tab: str) -> str:
    return _digest(tab)[:16]


def _cookie(tab: str) -> str:
    return f"__Secure-fairway-{_place(tab)}"


def _set_cookie(response: Response, tab: str, value: str, more: str = "") -> None:
    response.headers["Set-Cookie"] = (
        f"{_cookie(tab)}={value}; Path={_SESSION}{_place(tab)}/; "
        f"Secure; HttpOnly; SameSite=Strict{more}"
    )
