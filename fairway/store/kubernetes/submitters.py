"""Who submitted a native object, recorded by the server.

A user may write any annotation into a Job, and the hub makes the Job's workload. So that nobody
submits in the name of another user, a mutating admission policy records who names the queue of a
native object, as `creators` does for workloads, and restores the annotation on every change, also
of the status. It removes the annotation from objects without a queue: they may get one later.

The policy has a name of its own: the time of its creation says from when on native objects are
stamped (see `stamps`).
"""

from __future__ import annotations

import logging

import msgspec

from fairway.api.errors import ApiError
from fairway.api.meta import GROUP
from fairway.api.submission import SUBMITTED_BY
from fairway.client.errors import UnknownKind
from fairway.kinds.held_back import groups
from fairway.kinds.registry import built_in
from fairway.schema.node import JsonObject
from fairway.store.kubernetes.admission import (
    API_VERSION,
    binding_of,
    mutating,
    own_name,
    put,
)
from fairway.store.kubernetes.creators import IS_NEW, NAMES, USER, is_for_others, note_in
from fairway.store.kubernetes.held_back import resource_rules, submitted_queue
from fairway.store.kubernetes.stamps import in_force_since
from fairway.store.kubernetes.store import KubernetesStore

_log = logging.getLogger(__name__)

NAME = f"submitted-by.{GROUP}"


async def note_submitters(store: KubernetesStore) -> str:
    """Makes the server record who submits native objects; returns since when, empty if it does not.

    A new policy is in force some moments later; until then what objects say does not count.
    """
    try:
        body = policy(await own_name(store))
        await store.api.discovery.of({"apiVersion": API_VERSION, "kind": body["kind"]})
        return in_force_since(await put(store, body), await put(store, binding_of(body)))
    except UnknownKind:
        why = "it has no mutating admission policies"
    except ApiError as fault:
        why = str(fault)
    _log.warning("native objects count as submitted by no user: %s", why)
    return ""


def policy(hub: str) -> JsonObject:
    """The policy, for a hub of this name."""
    possible = [group for group in groups(built_in()) if group.means.is_possible]
    spec = {
        "matchConstraints": {
            "resourceRules": [
                *resource_rules(possible, ("CREATE", "UPDATE")),
                *resource_rules(possible, ("UPDATE",), "/status"),
            ]
        },
        "matchConditions": [{"name": "metadata", "expression": _is_relevant()}],
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in _variables(msgspec.json.encode(hub).decode()).items()
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch()}}],
    }
    return mutating(NAME, spec)


def _is_relevant() -> str:
    """Whether a write may change the queue or the annotation; most writes of a status do not."""
    fields = ("labels", "annotations", "ownerReferences")
    changes = [f"object.metadata.?{field} != oldObject.metadata.?{field}" for field in fields]
    return " || ".join((IS_NEW, *changes))


def _variables(hub: str) -> dict[str, str]:
    """The queue before and after a write, and the submitter after it; empty: none."""
    said = note_in("object")
    moved = f"({USER} == {hub} ? {said} : {NAMES})"
    new = f"({is_for_others(hub)} ? {said} : {NAMES})"
    kept = note_in("oldObject")
    return {
        "queue": submitted_queue("object"),
        "oldQueue": f"oldObject == null ? '' : {submitted_queue('oldObject')}",
        "submitter": f"!({IS_NEW}) && variables.queue == variables.oldQueue ? {kept}"
        f" : variables.queue == '' ? '' : {IS_NEW} ? {new} : {moved}",
    }


def _patch() -> str:
    """Sets the annotation, or removes it."""
    annotations = "/metadata/annotations"
    path = f"{annotations}/{SUBMITTED_BY.replace('/', '~1')}"
    add = f"JSONPatch{{op: 'add', path: '{path}', value: variables.submitter}}"
    remove = f"JSONPatch{{op: 'remove', path: '{path}'}}"
    # A chart has other uses for two braces in a row.
    create = f"JSONPatch{{op: 'add', path: '{annotations}', value: {{}} }}"
    has = "has(object.metadata.annotations)"
    is_noted = f"{has} && '{SUBMITTED_BY}' in object.metadata.annotations"
    return (
        f"variables.submitter != '' ? ({has} ? [{add}] : [{create}, {add}])"
        f" : {is_noted} ? [{remove}] : []"
    )
