"""The OpenAPI v3 paths of one served kind: its operations and their parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fairway.resources.builtin.definitions import reference
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_TOKEN_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"  # noqa: S105 - the name of a type
_BODIES = ("application/json", "application/yaml")
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"

_TYPES: dict[str, str] = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "dryRun": "string",
    "fieldManager": "string",
    "fieldSelector": "string",
    "fieldValidation": "string",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "labelSelector": "string",
    "limit": "integer",
    "orphanDependents": "boolean",
    "pretty": "string",
    "propagationPolicy": "string",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_SELECT = ("fieldSelector", "labelSelector")
_PAGE = ("continue", "limit", "resourceVersion", "resourceVersionMatch")
_WATCH = ("allowWatchBookmarks", "sendInitialEvents", "timeoutSeconds", "watch")
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")

# Verb: HTTP method, Kubernetes action, prefix of the operation's name, sentence, parameters.
_OPERATIONS: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "list": ("get", "list", "list", "List or watch {} objects.", _SELECT + _PAGE + _WATCH),
    "create": ("post", "post", "create", "Create a {}.", _WRITE),
    "deletecollection": (
        "delete",
        "deletecollection",
        "deleteCollection",
        "Delete {} objects.",
        _DELETE + _SELECT + _PAGE,
    ),
    "get": ("get", "get", "read", "Read a {}.", ("resourceVersion",)),
    "update": ("put", "put", "replace", "Replace a {}.", _WRITE),
    "patch": ("patch", "patch", "patch", "Change parts of a {}.", (*_WRITE, "force")),
    "delete": ("delete", "delete", "delete", "Delete a {}.", _DELETE),
}


def paths_of(resource: Resource, name: str, base: str) -> JsonObject:
    """Every path of a kind whose definition has this name."""
    root = f"/{base}"
    everywhere = f"{root}/{resource.plural}"
    scope = "Namespaced" if resource.namespaced else ""
    home = f"{root}/namespaces/{{namespace}}/{resource.plural}" if scope else everywhere
    make = _Operations(resource, name)
    paths = {home: make.item(("list", "create", "deletecollection"), scope=scope)}
    if resource.namespaced and "list" in resource.verbs:
        paths[everywhere] = make.item(("list",), scope="", suffix="ForAllNamespaces")
    if "get" in resource.verbs:
        other = f"{home}/{{name}}"
        paths[other] = make.item(("get", "update", "patch", "delete"), scope=scope)
        changes = ("get", "update", "patch")
        if resource.has_status:
            paths[f"{other}/status"] = make.item(changes, scope=scope, suffix="Status")
        if resource.scale is not None:
            scale = _Operations(resource, _SCALE, ("autoscaling", "v1", "Scale"))
            paths[f"{other}/scale"] = scale.item(changes, scope=scope, suffix="Scale")
        if resource.kind == "ServiceAccount" and not resource.group:
            identity = ("authentication.k8s.io", "v1", "TokenRequest")
            token = _Operations(resource, _TOKEN_REQUEST, identity)
            paths[f"{other}/token"] = token.item(("create",), scope=scope, suffix="Token")
    return {path: _with_path_parameters(path, item) for path, item in paths.items() if item}


class _Operations:
    """Makes the operations of one kind, or of one of its subresources."""

    def __init__(
        self, resource: Resource, name: str, identity: tuple[str, str, str] | None = None
    ) -> None:
        self._resource = resource
        self._schema = reference(name)
        self._list_schema = reference(f"{name}List")
        self._identity = identity or (resource.group, resource.version, resource.kind)

    def item(self, verbs: Iterable[str], *, scope: str, suffix: str = "") -> JsonObject:
        """A path item with those verbs that the kind has; subresources have all of them."""
        served = (verb for verb in verbs if suffix or verb in self._resource.verbs)
        return {_OPERATIONS[verb][0]: self._operation(verb, scope, suffix) for verb in served}

    def _operation(self, verb: str, scope: str, suffix: str) -> JsonObject:
        _, action, begins, sentence, parameters = _OPERATIONS[verb]
        group, version, kind = self._identity
        title = _title(self._resource.group or "core") + _title(self._resource.version)
        operation: JsonObject = {
            "tags": [f"{title[0].lower()}{title[1:]}"],
            "description": sentence.format(kind),
            "operationId": f"{begins}{title}{scope}{self._resource.kind}{suffix}",
            "parameters": [query(name) for name in parameters],
            "responses": self._responses(verb),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {
                "group": group,
                "version": version,
                "kind": kind,
            },
        }
        body = self._body(verb)
        if body is not None:
            operation["requestBody"] = body
        return operation

    def _body(self, verb: str) -> JsonObject | None:
        match verb:
            case "create" | "update":
                return {"required": True, "content": _content(_BODIES, self._schema)}
            case "patch":
                kinds = _PATCHES if self._resource.is_custom else (*_PATCHES, _STRATEGIC)
                schema = reference(f"{_META}.Patch")
                return {"required": True, "content": _content(kinds, schema)}
            case "delete" | "deletecollection":
                return {"content": _content(_BODIES, reference(f"{_META}.DeleteOptions"))}
            case _:
                return None

    def _responses(self, verb: str) -> JsonObject:
        schema, codes = self._schema, {"200": "OK"}
        if verb == "list":
            schema = self._list_schema
        elif verb in ("delete", "deletecollection"):
            # A deletion returns the object or a Status, depending on its options.
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            codes["202"] = "Accepted"
        elif verb in ("create", "update", "patch"):
            codes["201"] = "Created"
        responses: JsonObject = {
            code: {"description": text, "content": _content(_BODIES, schema)}
            for code, text in codes.items()
        }
        if verb == "list":
            watch = {"schema": reference(f"{_META}.WatchEvent")}
            responses["200"]["content"]["application/json;stream=watch"] = watch
        responses["401"] = {"description": "Unauthorized"}
        responses["default"] = {
            "description": "Refused",
            "content": _content(_BODIES[:1], reference(f"{_META}.Status")),
        }
        return responses


def query(name: str) -> JsonObject:
    """One query parameter."""
    return {"name": name, "in": "query", "schema": {"type": _TYPES[name]}}


def _content(kinds: Iterable[str], schema: JsonObject) -> dict[str, Any]:
    return {kind: {"schema": schema} for kind in kinds}


def _with_path_parameters(path: str, item: JsonObject) -> JsonObject:
    named = re.findall(r"\{(\w+)\}", path)
    item["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in sorted(named)
    ] + [query("pretty")]
    return item


def _title(text: str) -> str:
    """`rbac.authorization.k8s.io` as `RbacAuthorization`."""
    parts = re.split(r"[^A-Za-z0-9]+", text.removesuffix(".k8s.io"))
    return "".join(part[:1].upper() + part[1:] for part in parts)
