"""Discovery: groups, versions and resources, in the old and the aggregated form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fairway.api.errors import NotFound
from fairway.api.meta import GROUP
from fairway.resources.catalogue import Catalogue
from fairway.resources.resource import Resource
from fairway.schema.node import JsonObject
from fairway.server.questions.questions import SUBRESOURCES, verb_of
from fairway.server.wire.exchange import Request

_AGGREGATED = re.compile(
    r"application/json;\s*g=apidiscovery\.k8s\.io;\s*v=(v2|v2beta1);\s*as=APIGroupDiscoveryList"
)
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}
# Kinds of subresources that differ from the kind of their resource.
_TOKEN = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
_SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def answer(request: Request, catalogue: Catalogue) -> JsonObject | None:
    """The discovery document of a path; None for other paths."""
    parts = [part for part in request.path.split("/") if part]
    match parts:
        case ["api"]:
            return _roots(request, catalogue, core=True)
        case ["apis"]:
            return _roots(request, catalogue, core=False)
        case ["api", version]:
            return _version_document(catalogue, "", version)
        case ["apis", group]:
            return _group_document(catalogue, group)
        case ["apis", group, version]:
            return _version_document(catalogue, group, version)
        case _:
            return None


def aggregated_version(request: Request) -> str:
    """The version of aggregated discovery that the client accepts, if any."""
    match = _AGGREGATED.search(request.header("accept"))
    return match[1] if match else ""


def _roots(request: Request, catalogue: Catalogue, *, core: bool) -> JsonObject:
    groups = [group for group in group_names(catalogue) if (group == "") == core]
    aggregated = aggregated_version(request)
    if aggregated:
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{aggregated}",
            "metadata": {},
            "items": [_aggregated_group(catalogue, group) for group in groups],
        }
    if core:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(catalogue, group) for group in groups],
    }


def group_names(catalogue: Catalogue) -> list[str]:
    """All groups, the core group first."""
    return sorted({resource.group for resource in catalogue})


def versions_of(catalogue: Catalogue, group: str) -> list[str]:
    """The versions of a group, the preferred one first."""
    versions = {resource.version for resource in catalogue if resource.group == group}
    return sorted(versions, key=_preference, reverse=True)


def _preference(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if not match:
        return (-1, 0, 0, version)
    return (_STAGES[match[2]], int(match[1]), int(match[3] or 0), version)


def _group(catalogue: Catalogue, group: str) -> JsonObject:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in versions_of(catalogue, group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _group_document(catalogue: Catalogue, group: str) -> JsonObject:
    if group not in group_names(catalogue):
        raise NotFound("the server could not find the requested resource", details={})
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(catalogue, group)}


def _version_document(catalogue: Catalogue, group: str, version: str) -> JsonObject:
    resources = _resources(catalogue, group, version)
    if not resources:
        raise NotFound("the server could not find the requested resource", details={})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for resource in resources for entry in _entries(resource)],
    }


def _resources(catalogue: Catalogue, group: str, version: str) -> list[Resource]:
    resources = [
        resource for resource in catalogue if (resource.group, resource.version) == (group, version)
    ]
    return sorted(resources, key=lambda resource: resource.plural)


def _entries(resource: Resource) -> Iterable[JsonObject]:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    yield entry
    for name, kind, verbs in _subresources(resource):
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **kind,
            "verbs": verbs,
        }


def _subresources(resource: Resource) -> Iterable[tuple[str, dict[str, Any], list[str]]]:
    if resource.has_status:
        yield "status", {"kind": resource.kind}, ["get", "patch", "update"]
    if resource.scale is not None:
        yield "scale", dict(_SCALE), ["get", "patch", "update"]
    if resource.kind == "ServiceAccount":
        yield "token", dict(_TOKEN), ["create"]
    if resource.group == GROUP:
        for name in SUBRESOURCES.get(resource.plural, ()):
            yield name, {"kind": resource.kind}, [verb_of(name)]


def _aggregated_group(catalogue: Catalogue, group: str) -> JsonObject:
    return {
        "metadata": {"name": group, "creationTimestamp": None}
        if group
        else {"creationTimestamp": None},
        "versions": [
            {
                "version": version,
                "freshness": "Current",
                "resources": [
                    _aggregate(resource) for resource in _resources(catalogue, group, version)
                ],
            }
            for version in versions_of(catalogue, group)
        ],
    }


def _aggregate(resource: Resource) -> JsonObject:
    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = [
        {
            "subresource": name,
            "responseKind": {
                "group": kind.get("group", resource.group),
                "version": kind.get("version", resource.version),
                "kind": kind["kind"],
            },
            "verbs": verbs,
        }
        for name, kind, verbs in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry
