"""The API of a hub over its store: who may do what, and what is told of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fairway.api.errors import NotFound
from fairway.clock import Clock
from fairway.page import built_files
from fairway.schema.node import JsonObject
from fairway.server import escalation
from fairway.server.api import Api
from fairway.server.audit import AuditLog
from fairway.server.documents import Documents
from fairway.server.identity import Identity
from fairway.server.metrics import Metrics
from fairway.server.objects import Gate, Objects
from fairway.server.page import Page
from fairway.server.questions import Questions
from fairway.server.rbac import Authorizer
from fairway.server.reviewing import Reviewer
from fairway.server.routes import Target
from fairway.server.service_accounts import FindUid, ServiceAccountTokens
from fairway.server.tokens import Authenticator
from fairway.server.watching import Streams
from fairway.store.embedded.history import Change
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from fairway.store.keys import CLUSTER_ROLES

_SYSTEM = Write(user="system:fairway", manager="fairway-hub")
_RBAC = "rbac.authorization.k8s.io"
_UID_KINDS = {"ServiceAccount": "serviceaccounts", "Pod": "pods", "Secret": "secrets"}


def make_api(store: EmbeddedStore, data: Path, audit_log: AuditLog, clock: Clock) -> Api:
    metrics = Metrics()
    authorizer = _follow_roles(store)
    service_accounts = ServiceAccountTokens(data, _find_uid(store), clock=clock)
    authenticator = Authenticator(data, service_accounts, clock=clock)
    store.writer.figures.observers.append(metrics.batch_committed)
    reviewer = Reviewer(
        authorizer=authorizer,
        authenticator=authenticator,
        service_accounts=service_accounts,
        store=store,
    )
    documents = Documents(
        catalogue=store.catalogue,
        metrics=metrics,
        ready=lambda: {"store": store.writer.is_open},
        gather=lambda: _gather(metrics, store, audit_log),
    )
    return Api(
        catalogue=store.catalogue,
        authenticator=authenticator,
        authorizer=authorizer,
        objects=Objects(store, clock, Streams(store, clock, metrics), _gate(authorizer)),
        reviewer=reviewer,
        questions=Questions(store),
        documents=documents,
        page=Page(built_files()),
        audit_log=audit_log,
        metrics=metrics,
        clock=clock,
    )


def _follow_roles(store: EmbeddedStore) -> Authorizer:
    """An authorizer that knows every role and binding from the moment it is on disk."""
    kinds = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
    objects = [body for plural in kinds for body in store.bodies((_RBAC, plural))]
    authorizer = Authorizer(objects)

    def follow(change: Change) -> None:
        if change.kind[0] != _RBAC:
            return
        body = change.record.body()
        if change.is_removed:
            namespace, name = change.record.name
            authorizer.remove(body["kind"], name, namespace)
        else:
            authorizer.upsert(body)
        if body["kind"] == "ClusterRole":
            store.run(_write_aggregations(store, authorizer))

    store.followers.append(follow)
    store.run(_write_aggregations(store, authorizer))
    return authorizer


async def _write_aggregations(store: EmbeddedStore, authorizer: Authorizer) -> None:
    """Writes the gathered rules of aggregated roles onto them, for people to see."""
    for role in authorizer.unwritten_aggregations():
        patch = Patch(type="merge", body={"rules": role["rules"]})
        with suppress(NotFound):  # deleted meanwhile
            await store.patch(CLUSTER_ROLES, role["metadata"]["name"], patch, write=_SYSTEM)


def _find_uid(store: EmbeddedStore) -> FindUid:
    def find(kind: str, namespace: str, name: str) -> str | None:
        return store.uid_of(("", _UID_KINDS.get(kind, "")), (namespace, name))

    return find


def _gate(authorizer: Authorizer) -> Gate:
    """Nobody hands out rights that they do not hold."""

    def gate(identity: Identity, target: Target, body: JsonObject, old: JsonObject | None) -> None:
        if target.group == _RBAC:
            escalation.confirm(
                authorizer,
                identity,
                body,
                old=old,
                namespace=target.namespace,
                request_name=target.name,
            )

    return gate


def _gather(metrics: Metrics, store: EmbeddedStore, audit_log: AuditLog) -> None:
    metrics.set_objects(store.counts())
    metrics.set_version(store.writer.published)
    metrics.set_audit_lines_lost(audit_log.lost_lines)
