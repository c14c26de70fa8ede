"""The plain values that calls take and return.

Objects are plain JSON here, so that any kind of any server can be handled; `typed` adds the kinds
of `fairway.api` on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Object = dict[str, Any]
# Query parameters of a request; a tuple repeats a parameter.
Query = Mapping[str, str | tuple[str, ...]]

JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


class PatchType(Enum):
    """The kind of a patch, by its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, relative to the server's address."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    headers: tuple[tuple[str, str], ...] = ()  # in addition to those of every request
    read_timeout_seconds: float | None = None
    answer_bytes_max: int | None = None  # a longer answer is an error; None: no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole HTTP response."""

    status: int
    body: bytes
    retry_after_seconds: float | None = None
    warnings: tuple[str, ...] = ()  # from the response's Warning headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which objects of a kind: by namespace (None: all namespaces) and selectors."""

    namespace: str | None = None
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        query = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in query.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects as of one resource version."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One change seen by a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object

    @property
    def resource_version(self) -> str:
        """The resource version after this change; empty when the event has none."""
        version = self.object.get("metadata", {}).get("resourceVersion", "")
        if not version and self.object.get("kind") == "Table":
            for row in self.object.get("rows") or ():
                inner = row.get("object") or {}
                version = inner.get("metadata", {}).get("resourceVersion", "") or version
        return str(version)
