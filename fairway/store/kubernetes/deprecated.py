"""A policy by which a real server warns of deprecated fields.

New values are refused by rules in the definitions themselves. A server does not report existing
values, unless an admission policy that only warns finds them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator

from fairway.api.errors import ApiError
from fairway.api.meta import GROUP
from fairway.client.errors import UnknownKind
from fairway.resources.custom import custom_resources
from fairway.resources.resource import Resource
from fairway.schema.deprecation import ITEMS, VALUES
from fairway.schema.node import JsonObject
from fairway.store.kubernetes.admission import API_VERSION, put
from fairway.store.kubernetes.store import KubernetesStore

NAME = f"deprecated-fields.{GROUP}"

_log = logging.getLogger(__name__)


async def warn_of_deprecated(store: KubernetesStore, definitions: Iterable[JsonObject]) -> None:
    """Makes the server warn; a server that cannot still refuses new values."""
    try:
        for body in warning(definitions):
            await store.api.discovery.of({"apiVersion": API_VERSION, "kind": body["kind"]})
            await put(store, body)
    except (UnknownKind, ApiError) as fault:
        _log.warning("the server does not warn of deprecated fields: %s", fault)


def warning(definitions: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The policy and its binding; nothing if no field is deprecated."""
    resources = [
        resource
        for each in definitions
        for resource in custom_resources(each)
        if resource.deprecated_fields
    ]
    if not resources:
        return
    policy, metadata = "ValidatingAdmissionPolicy", {"name": NAME}
    spec: JsonObject = {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": [_match(resource) for resource in resources]},
        "validations": [
            validation for resource in resources for validation in _validations(resource)
        ],
    }
    bound = {"policyName": NAME, "validationActions": ["Warn"]}
    yield {"apiVersion": API_VERSION, "kind": policy, "metadata": metadata, "spec": spec}
    yield {
        "apiVersion": API_VERSION,
        "kind": f"{policy}Binding",
        "metadata": metadata,
        "spec": bound,
    }


def _match(resource: Resource) -> JsonObject:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": ["UPDATE"],  # no object with such a field is created
    }


def _validations(resource: Resource) -> Iterator[JsonObject]:
    names = json.dumps(resource.api_version), json.dumps(resource.kind)
    another = f"object.apiVersion != {names[0]} || object.kind != {names[1]}"
    for field in resource.deprecated_fields:
        expression = f"{another} || !{_is_set('dyn(object)', field.steps)}"
        yield {"expression": expression, "message": str(field)}


def _is_set(place: str, steps: tuple[str, ...]) -> str:
    """The CEL expression for whether a field is set."""
    for index, step in enumerate(steps):
        rest, name = steps[index + 1 :], f"at{len(steps) - index}"
        if step == ITEMS:
            return f"{place}.orValue([]).exists({name}, {_is_set(name, rest)})"
        if step == VALUES:
            below = _is_set(f"{place}[?{name}]", rest)
            return f"{place}.orValue({{}}).exists({name}, {below})"
        place = f"{place}[?{json.dumps(step)}]"
    return f"{place}.hasValue()"
