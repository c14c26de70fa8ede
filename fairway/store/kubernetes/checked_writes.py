"""The webhook by which a real server asks the hub about writes that it cannot check itself.

The schemas of our kinds and the server's own policies cannot look at other objects: at the
submitters of a queue, at how many workloads are pending, at fleet policies. Nor can they compile an
expression. The hub can; see `fairway.submission`.

The server asks only about kinds that the hub checks, and about native objects only if they have a
queue and no controller or agent made them. It does not ask about writes of the hub itself, unless
the hub creates an object for a user who came to the hub's own address. It never asks about a status
or another subresource. A write that the hub cannot be asked about passes: what it checks is checked
again when a workload is decided, so a hub that is down stops nothing.

An administrator creates the configuration without webhooks; the leader adds them, since only a hub
knows its address and its certificate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from fairway.api import crds
from fairway.api.meta import GROUP
from fairway.api.submission import CREATED_BY, HUB
from fairway.kinds.held_back import groups
from fairway.kinds.native import DEFAULT_QUEUE, QUEUE
from fairway.kinds.registry import built_in
from fairway.resources.custom import custom_resources
from fairway.resources.resource import Resource
from fairway.schema.expressions import has_expressions
from fairway.schema.node import JsonObject
from fairway.store.keys import WORKLOADS, WORKS
from fairway.store.kubernetes.admission import API_VERSION
from fairway.store.kubernetes.held_back import is_submitted, resource_rules

NAME = f"checks.{GROUP}"
_OPERATIONS = ("CREATE", "UPDATE")
_TIMEOUT_SECONDS = 3


def placeholder() -> JsonObject:
    """The configuration as an administrator creates it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
    }


def configuration(client: JsonObject, hub: str) -> JsonObject:
    """The configuration for a hub of this name, reached in this way."""
    name = json.dumps(hub)
    others = ("others", f"request.userInfo.username != {name}")
    creator = f"object.metadata.?annotations[?{json.dumps(CREATED_BY)}].orValue({json.dumps(HUB)})"
    for_users = f"request.operation == 'CREATE' && {creator} != {json.dumps(HUB)}"
    submitted = ("submitted", is_submitted("object"))
    queue = json.dumps(QUEUE[0])
    places = (
        f"object.metadata.?{field}[?{queue}].hasValue()" for field in ("labels", "annotations")
    )
    named = " || ".join(places)
    natives = resource_rules(
        (group for group in groups(built_in()) if group.means.is_possible), _OPERATIONS
    )
    defaulted = {"matchExpressions": [{"key": DEFAULT_QUEUE, "operator": "Exists"}]}
    webhooks = [
        _webhook(NAME, _our_rules(), [("users", f"{others[1]} || ({for_users})")]),
        _webhook(f"native.{NAME}", natives, [others, submitted, ("named", named)]),
        {
            **_webhook(f"default.{NAME}", natives, [others, submitted, ("unnamed", f"!({named})")]),
            "namespaceSelector": defaulted,
        },
    ]
    return {**placeholder(), "webhooks": [{**each, "clientConfig": client} for each in webhooks]}


def _webhook(
    name: str, rules: Sequence[JsonObject], conditions: Iterable[tuple[str, str]]
) -> JsonObject:
    return {
        "name": name,
        "rules": list(rules),
        "matchConditions": [
            {"name": condition, "expression": expression} for condition, expression in conditions
        ],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _our_rules() -> list[JsonObject]:
    return [
        {
            "apiGroups": [resource.group],
            "apiVersions": [resource.version],
            "resources": [resource.plural],
            "operations": list(_OPERATIONS),
        }
        for definition in crds.definitions()
        for resource in custom_resources(definition)
        if _is_checked(resource)
    ]


def _is_checked(resource: Resource) -> bool:
    if resource.plural == WORKS.plural:
        return False  # the hub alone writes them
    return resource.plural == WORKLOADS.plural or has_expressions(resource.schema)
