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
knows its address and its certificate. The right to write a configuration is the right to be shown
any object, so a policy confines this one to the kinds that the hub checks, all of which it reads
anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
from fairway.store.keys import WEBHOOKS, WORKLOADS, WORKS
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
    others = f"request.userInfo.username != {json.dumps(hub)}"
    native = {"others": others, "submitted": is_submitted("object")}
    natives = _native_rules()
    defaulted = {"matchExpressions": [{"key": DEFAULT_QUEUE, "operator": "Exists"}]}
    webhooks = [
        _webhook(NAME, _our_rules(), {"users": f"{others} || ({_is_for_a_user(hub)})"}),
        _webhook(f"native.{NAME}", natives, {**native, "named": _names_a_queue()}),
        {
            **_webhook(f"default.{NAME}", natives, {**native, "unnamed": f"!({_names_a_queue()})"}),
            "namespaceSelector": defaulted,
        },
    ]
    return {**placeholder(), "webhooks": [{**each, "clientConfig": client} for each in webhooks]}


def _is_for_a_user(hub: str) -> str:
    """Whether the hub creates an object for a user, and not for itself."""
    creator = f"object.metadata.?annotations[?{json.dumps(CREATED_BY)}].orValue({json.dumps(HUB)})"
    return f"request.operation == 'CREATE' && !({creator} in {json.dumps([HUB, hub])})"


def _names_a_queue() -> str:
    """Whether a native object names a queue of ours; those of Kueue are left to Kueue."""
    places = (f"object.metadata.?{field}" for field in ("labels", "annotations"))
    return " || ".join(f"{place}[?{json.dumps(QUEUE[0])}].hasValue()" for place in places)


def confinement() -> list[JsonObject]:
    """A policy, with its binding, that lets the configuration ask about these kinds only."""
    kind, metadata = "ValidatingAdmissionPolicy", {"name": NAME}
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [WEBHOOKS.group],
                    "apiVersions": [WEBHOOKS.version],
                    "resources": [WEBHOOKS.plural],
                    "resourceNames": [NAME],
                    "operations": list(_OPERATIONS),
                }
            ]
        },
        "validations": [
            {
                "expression": f"object.?webhooks.orValue([]).all(webhook, {_is_confined()})",
                "message": "a hub is asked only about kinds that it checks, and may be down",
                "reason": "Forbidden",
            }
        ],
    }
    bound = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec},
        {"apiVersion": API_VERSION, "kind": f"{kind}Binding", "metadata": metadata, "spec": bound},
    ]


def _is_confined() -> str:
    """Whether a webhook fails open, and asks about no other kinds."""
    allowed = sorted(
        f"{group}/{plural}"
        for rule in [*_our_rules(), *_native_rules()]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    )
    is_allowed = f"group + '/' + plural in {json.dumps(list(dict.fromkeys(allowed)))}"
    pairs = f"rule.apiGroups.all(group, rule.resources.all(plural, {is_allowed}))"
    return f"webhook.failurePolicy == 'Ignore' && webhook.?rules.orValue([]).all(rule, {pairs})"


def _webhook(name: str, rules: Sequence[JsonObject], conditions: Mapping[str, str]) -> JsonObject:
    return {
        "name": name,
        "rules": list(rules),
        "matchConditions": [
            {"name": condition, "expression": expression}
            for condition, expression in conditions.items()
        ],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _native_rules() -> list[JsonObject]:
    """Native kinds that can be held back; others are refused if they have a queue."""
    possible = (group for group in groups(built_in()) if group.means.is_possible)
    return resource_rules(possible, _OPERATIONS)


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
