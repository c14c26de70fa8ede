"""Who created and who submitted a workload, recorded by the server; and the hub's finalizer.

Limits for each user count by the annotation `fairway.dev/created-by`, and queues accept workloads
by `fairway.dev/submitted-by`: the user and groups that named the queue. The embedded store sets
both, and no client can. On Kubernetes people use the server directly, so a mutating admission
policy of the server does the same: it records who writes, and restores the annotations on every
change. Only the hub may say for whom it creates. A workload that has the hub's finalizer from the
start does not need it added before a claim, which saves a write and a cycle. Servers before
Kubernetes 1.36 have no such policies.

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
from fairway.store.kubernetes.admission import own_name, put
from fairway.store.kubernetes.store import KubernetesStore

_log = logging.getLogger(__name__)

NAME = f"created-by.{GROUP}"
_TRIAL = Write(user=BY_HUB.user, manager=BY_HUB.manager, dry_run=True)
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 60.0


async def note_creators(store: KubernetesStore, *, clock: Clock) -> bool:
    """Makes the server record who creates workloads; returns whether it does."""
    try:
        await store.api.discovery.of(
            {"apiVersion": ADMISSION_VERSION, "kind": "MutatingAdmissionPolicy"}
        )
        for body in (policy(await own_name(store)), binding()):
            await put(store, body)
        await _settle(store, clock)
    except UnknownKind:
        why = "it has no mutating admission policies"
    except ApiError as fault:
        why = str(fault)
    else:
        return True
    _log.warning("the server does not note who creates workloads, so limits by user fail: %s", why)
    return False


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
    return {
        "apiVersion": ADMISSION_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
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
        },
    }


def _variables(hub: str) -> dict[str, str]:
    """The annotations: what the hub says when it creates; for other users, their identity.

    A user who names another queue becomes the submitter.
    """
    user, lines = "request.userInfo.username", "!%s.contains('\\n')"
    groups = f"request.userInfo.groups.filter(g, {lines % 'g'})"
    names = f"([{lines % user} ? {user} : ''] + {groups}).join('\\n')"
    queue = "(has(%s.spec) && has(%s.spec.queue) ? %s.spec.queue : '')"
    is_new = "request.operation == 'CREATE'"
    is_moved = f"{queue % (('object',) * 3)} != {queue % (('oldObject',) * 3)}"
    by_hub = f"{user} == {hub}"
    said, kept = _note_in("object"), _note_in("oldObject")
    creator = f"{by_hub} && {said[CREATED_BY][0]} ? {said[CREATED_BY][1]} : {user}"
    submitter = f"{by_hub} ? {_or_none(*said[SUBMITTED_BY])} : {names}"
    resubmitter = f"!({by_hub}) && {is_moved} ? {names} : {_or_none(*kept[SUBMITTED_BY])}"
    return {
        "creator": f"{is_new} ? ({creator}) : {_or_none(*kept[CREATED_BY])}",
        "submitter": f"{is_new} ? ({submitter}) : ({resubmitter})",
    }


def _note_in(variable: str) -> dict[str, tuple[str, str]]:
    """For each annotation: whether an object has it, and its value."""
    result = f"{variable}.metadata.annotations"
    return {
        key: (f"has({result}) && '{key}' in {result}", f"{result}['{key}']")
        for key in (CREATED_BY, SUBMITTED_BY)
    }


def _or_none(condition: str, value: str) -> str:
    return f"({condition} ? {value} : '')"


def binding() -> JsonObject:
    return {
        "apiVersion": ADMISSION_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME},
    }
