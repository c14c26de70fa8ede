"""The API of a hub over its store: authorization, audit and metrics included."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from fairway.clock import Clock
from fairway.hub.backing import Backing
from fairway.hub.upkeep import Keeping
from fairway.page import built_files
from fairway.schema.node import JsonObject
from fairway.server.access import escalation
from fairway.server.access.audit import AuditLog
from fairway.server.access.discretion import PartsShown
from fairway.server.access.fairness import Fairness, Shares
from fairway.server.access.identity import Identity
from fairway.server.access.openid.flow import Flow
from fairway.server.access.openid.id_tokens import IdTokens
from fairway.server.access.openid.provider import Provider
from fairway.server.access.openid.settings import Settings as OpenIdSettings
from fairway.server.access.rbac import Authorizer
from fairway.server.access.review_kinds import Reviewer
from fairway.server.access.secret_box import Sealing, secret_of
from fairway.server.access.service_accounts import ServiceAccountTokens
from fairway.server.access.sign_in import SigningIn
from fairway.server.access.token_review import Vouching
from fairway.server.access.tokens import Authenticator
from fairway.server.api import Api
from fairway.server.documents.page import Page
from fairway.server.documents.plain_paths import Documents
from fairway.server.metrics import Metrics
from fairway.server.objects import Gate, Objects
from fairway.server.questions.questions import Questions
from fairway.server.questions.streams import Talks
from fairway.server.routes import Target
from fairway.server.upkeep import Upkeep
from fairway.server.wire.admissions import Admissions
from fairway.server.wire.conversions import Conversions
from fairway.server.wire.watches import Streams
from fairway.store.keys import RBAC


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInOptions:
    """How users sign in, besides tokens of the hub's own."""

    openid: OpenIdSettings | None = None
    page_urls: tuple[str, ...] = ()  # where users open the page, besides the hub's own address
    is_page_read_only: bool = False


@dataclass(frozen=True, slots=True)
class OpenId:
    """The parts that know a company's OpenID provider, while the hub runs."""

    provider: Provider
    id_tokens: IdTokens
    flow: Flow


def make_openid(options: SignInOptions, clock: Clock) -> OpenId | None:
    settings = options.openid
    if settings is None:
        return None
    provider = Provider(settings, clock)
    id_tokens = IdTokens(settings, provider, clock)
    return OpenId(provider, id_tokens, Flow(settings, provider, id_tokens))


def make_api(
    backing: Backing,
    data: Path,
    audit_log: AuditLog,
    clock: Clock,
    *,
    keeping: Keeping,
    shares: Shares,
    openid: OpenId | None = None,
    is_page_read_only: bool = False,
) -> Api:
    metrics = Metrics()
    store, authorizer = backing.store, backing.authorizer
    service_accounts = ServiceAccountTokens(data, backing.find_uid, clock=clock)
    authenticator = Authenticator(data, service_accounts, clock=clock)
    backing.observe(metrics)

    def gather() -> None:
        backing.gather(metrics)
        metrics.set_audit_lines_lost(audit_log.lost_lines)
        disk = shutil.disk_usage(data)
        metrics.set_disk(free=disk.free, whole=disk.total)

    reviewer = Reviewer(
        authorizer=authorizer,
        authenticator=authenticator,
        service_accounts=service_accounts,
        store=store,
        id_tokens=openid.id_tokens if openid else None,
    )
    documents = Documents(
        catalogue=backing.catalogue,
        metrics=metrics,
        ready=backing.ready,
        gather=gather,
    )
    return Api(
        catalogue=backing.catalogue,
        authenticator=authenticator,
        authorizer=authorizer,
        objects=Objects(
            store,
            clock,
            Streams(store, clock, metrics),
            gate=_gate(authorizer),
            parts=PartsShown(store, authorizer),
        ),
        reviewer=reviewer,
        questions=Questions(store, authorizer),
        talks=Talks(store, clock),
        documents=documents,
        page=Page(built_files()),
        signing_in=SigningIn(
            sealing=Sealing(lambda: secret_of(data)),
            clock=clock,
            flow=openid.flow if openid else None,
            is_read_only=is_page_read_only,
        ),
        conversions=Conversions(lambda: secret_of(data)),
        admissions=Admissions(lambda: secret_of(data)),
        fairness=Fairness(clock, shares, refused=metrics.request_refused),
        audit_log=audit_log,
        metrics=metrics,
        clock=clock,
        upkeep=Upkeep(back_up=keeping.back_up, rotate_key=keeping.rotate_key),
        id_tokens=openid.id_tokens if openid else None,
        vouching=Vouching(backing.vouch, clock) if backing.vouch is not None else None,
    )


def _gate(authorizer: Authorizer) -> Gate:
    """A gate that keeps callers from granting rights that they do not hold."""

    def gate(identity: Identity, target: Target, body: JsonObject, old: JsonObject | None) -> None:
        if target.group == RBAC:
            escalation.confirm(
                authorizer,
                identity,
                body,
                old=old,
                namespace=target.namespace,
                request_name=target.name,
            )

    return gate
