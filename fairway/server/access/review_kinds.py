"""Kinds that are answered and never stored: reviews of access and identity, token requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairway.api.errors import MethodNotAllowed, NotFound
from fairway.schema.node import JsonObject
from fairway.server.access import reviews
from fairway.server.access.openid.id_tokens import IdTokens
from fairway.server.access.rbac import Authorizer
from fairway.server.access.service_accounts import ServiceAccountTokens
from fairway.server.access.tokens import Authenticator
from fairway.server.objects import Call
from fairway.server.wire import options
from fairway.server.wire.exchange import Response, json_response
from fairway.store.interface import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Answers reviews."""

    authorizer: Authorizer
    authenticator: Authenticator
    service_accounts: ServiceAccountTokens
    store: Store
    id_tokens: IdTokens | None = None

    def answers(self, call: Call) -> bool:
        is_token = call.resource.kind == "ServiceAccount" and call.target.subresource == "token"
        return is_token or not call.resource.is_stored

    async def answer(self, call: Call) -> Response:
        # The right was checked for this verb; another verb must not have the same effect.
        if call.target.verb != "create":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource", details={}
            )
        body = await options.object_body(call.request)
        if call.resource.kind == "ServiceAccount":
            return await self._token(call, body)
        body.setdefault("kind", call.resource.kind)
        body.setdefault("apiVersion", call.resource.api_version)
        if call.resource.kind == "TokenReview":
            return json_response(await self._token_review(body), status=201)
        answer = self._answers(call).get(call.resource.kind)
        if answer is None:
            raise NotFound("the server could not find the requested resource", details={})
        return json_response(answer(body), status=201)

    def _answers(self, call: Call) -> dict[str, Callable[[JsonObject], JsonObject]]:
        me, authorizer = call.identity, self.authorizer
        return {
            "SelfSubjectAccessReview": lambda body: reviews.self_subject_access_review(
                body, me, authorizer
            ),
            "SubjectAccessReview": lambda body: reviews.subject_access_review(body, authorizer),
            "LocalSubjectAccessReview": lambda body: reviews.local_subject_access_review(
                body, call.target.namespace, authorizer
            ),
            "SelfSubjectRulesReview": lambda body: reviews.self_subject_rules_review(
                body, me, authorizer
            ),
            "SelfSubjectReview": lambda body: reviews.self_subject_review(body, me),
        }

    async def _token_review(self, body: JsonObject) -> JsonObject:
        token, audiences = reviews.token_of(body)
        identities = self.authenticator.authenticate_for(token, audiences)
        if identities is None and self.id_tokens is not None and self.id_tokens.is_ours(token):
            identity = await self.id_tokens.identity(token)
            # An ID token names its client, and no audiences in the sense of reviews.
            common = self.authenticator.own_audiences(audiences)
            identities = (identity, common) if identity is not None and common else None
        return reviews.token_review(body, identities)

    async def _token(self, call: Call, body: JsonObject) -> Response:
        # Raises NotFound for an account that does not exist.
        await self.store.get(call.key, call.target.name, call.namespace)
        answered = self.service_accounts.answer(body, call.namespace, call.target.name)
        return json_response(answered, status=201)
