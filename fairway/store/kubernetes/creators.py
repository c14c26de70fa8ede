"""Who created and who submitted a workload, recorded by the server; and the hub's finalizer.

Queues accept workloads, and limits for each user count them, by the annotation
`fairway.dev/submitted-by`: the user and groups that named the queue; `fairway.dev/created-by` is
the creator. The embedded store sets both, and no client can. On Kubernetes people use the server
directly, so a mutating admission policy of the server does the same: it records who writes, and
restores the annotations on every change. Only the hub may say for whom it creates an object or
names another queue. `submitters` does the same for native objects. A workload that has the hub's
finalizer from the start does not need it added before a claim, which saves a write and a cycle.
Servers before Kubernetes 1.36 have no such policies.

A policy that an administrator applied is tested by the same dry run as the hub's own.
"""

from __future__ import annotations

import logging

import msgspec

from fairway.api.errors import ApiError, Unavailable
from fairway.api.meta import API_VERSION, GROUP
from fairway.api.names import FINALIZER
from fairway.api.submission import CREATED_BY, SUBMITTED_BY
from fairway.client.errors import UnknownKind
from fairway.clock import Clock
from fairway.schema.node import JsonObject
from fairway.store.interface import BY_HUB, Write
from fairway.store.keys import WORKLOADS
from fairway.store.kubernetes.admission import API_VERSION as ADMISSION_VERSION
from fairway.store.kubernetes.admission import binding_of, mutating, own_name, put
from fairway.store.kubernetes.stamps import in_force_since
from fairway.store.kubernetes.store import KubernetesStore

_log = logging.getLogger(__name__)

NAME = f"created-by.{GROUP}"
_TRIAL = Write(user=BY_HUB.user, manager=BY_HUB.manager, dry_run=True)
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 60.0


async def note_creators(store: KubernetesStore, *, clock: Clock) -> str:
    """Makes the server record who creates workloads; returns since when, empty if it does not."""
    try:
        await store.api.discovery.of(
            {"apiVersion": ADMISSION_VERSION, "kind": "MutatingAdmissionPolicy"}
        )
        body = policy(await own_name(store))
        made = await put(store, body), await put(store, binding_of(body))
        await _settle(store, clock)
    except UnknownKind:
        why = "it has no mutating admission policies"
    except ApiError as fault:
        why = str(fault)
    else:
        return in_force_since(*made)
    _log.warning("the server does not note who creates workloads, so limits by user fail: %s", why)
    return ""


async def _settle(store: KubernetesStore, clock: Clock) -> None:
    """Returns once a dry run shows the annotation.

    It takes some seconds until the server has the policy, and some more until the policy knows the
    kind, during which it refuses every workload.
    """
    body = {
        "apiVersion": API_VERSION,
        "kind": "Workload",
        "metadata": {"generateName": "trial-"},
        "spec": {"queue": "trial", "podSets": [{"name": "main"}]},
    }
    until = clock.now() + _PATIENCE_SECONDS
    fault = Unavailable("it does not note the creator of a trial")
    while clock.now() < until:
        try:
            raw = await store.api.create(WORKLOADS, body, namespace="default", write=_TRIAL)
        except Unavailable as refusal:
            fault = refusal
        else:
            if CREATED_BY in (msgspec.json.decode(raw)["metadata"].get("annotations") or {}):
                return
        await clock.sleep(_LOOK_SECONDS)
    raise fault


def policy(hub: str) -> JsonObject:
    """The policy, for a hub of this name."""
    notes = f"{{'{CREATED_BY}': variables.creator, '{SUBMITTED_BY}': variables.submitter}}"
    annotated = f"annotations: {notes}"
    with_notes = f"Object{{metadata: Object.metadata{{{annotated}}}}}"
    with_all = f"Object{{metadata: Object.metadata{{{annotated}, finalizers: ['{FINALIZER}']}}}}"
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [GROUP],
                    "apiVersions": ["*"],
                    "resources": ["workloads"],
                    "operations": ["CREATE", "UPDATE"],
                }
            ]
        },
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in _variables(msgspec.json.encode(hub).decode()).items()
        ],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": f"request.operation == 'CREATE' ? {with_all} : {with_notes}"
                },
            }
        ],
    }
    return mutating(NAME, spec)


def _variables(hub: str) -> dict[str, str]:
    """The annotations: what the hub says for others; for other users, their identity.

    A user who names another queue becomes the submitter.
    """
    queue = "(has(%s.spec) && has(%s.spec.queue) ? %s.spec.queue : '')"
    is_moved = f"{queue % (('object',) * 3)} != {queue % (('oldObject',) * 3)}"
    said, creator = note_in("object"), note_in("object", CREATED_BY)
    resubmitter = f"{is_moved} ? ({USER} == {hub} ? {said} : {NAMES}) : {note_in('oldObject')}"
    return {
        "creator": f"{IS_NEW} ? ({is_for_others(hub)} ? {creator} : {USER})"
        f" : {note_in('oldObject', CREATED_BY)}",
        "submitter": f"{IS_NEW} ? ({is_for_others(hub)} ? {said} : {NAMES}) : ({resubmitter})",
    }


# Expressions over a request, for this policy and that of native objects.

USER = "request.userInfo.username"
IS_NEW = "request.operation == 'CREATE'"
_ONE_LINE = "!%s.contains('\\n')"
_GROUPS = f"request.userInfo.groups.filter(g, {_ONE_LINE % 'g'})"
# As `fairway.api.submission.note_of` writes it.
NAMES = f"([{_ONE_LINE % USER} ? {USER} : ''] + {_GROUPS}).join('\\n')"


def is_for_others(hub: str) -> str:
    """Whether the hub creates an object for a user, whom it always names as the creator."""
    return f"({USER} == {hub} && {_has_note('object', CREATED_BY)})"


def note_in(variable: str, key: str = SUBMITTED_BY) -> str:
    """The value of an annotation of an object; empty if it has none."""
    return f"({_has_note(variable, key)} ? {variable}.metadata.annotations['{key}'] : '')"


def _has_note(variable: str, key: str) -> str:
    annotations = f"{variable}.metadata.annotations"
    return f"has({annotations}) && '{key}' in {annotations}"
