"""A served kind: its names, its schema, and its specifics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairway.api.errors import FieldError
from fairway.resources.conversion import Convert
from fairway.schema.deprecation import DeprecatedField
from fairway.schema.node import ANY, JsonObject, Node

# Changes an object in place before it is validated; `old` is None when it is created.
Prepare = Callable[[JsonObject, "JsonObject | None"], None]
# Finds faults beyond the schema; `old` is None when it is created.
Check = Callable[[JsonObject, "JsonObject | None"], Sequence[FieldError]]
# The cells of one object in a table, in the order of the columns; `now` in epoch seconds.
Cells = Callable[[JsonObject, float], list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a kind's table. Priority 0 is always shown, 1 with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    path: str = ""  # JSONPath, for custom resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """The fields of the scale subresource, as dotted JSON paths."""

    replicas: str
    status_replicas: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One served version of a kind."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    verbs: tuple[str, ...] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )
    schema: Node = ANY
    openapi: JsonObject = field(default_factory=dict)  # the schema as served in /openapi/v3
    columns: tuple[Column, ...] = ()
    cells: Cells | None = None  # None: by the columns' JSONPaths
    has_status: bool = False
    scale: ScalePaths | None = None
    is_custom: bool = False  # from a custom resource definition
    is_strict: bool = False  # unknown fields are refused, unless the request ignores them
    counts_generations: bool = True  # metadata.generation rises when anything but status changes
    defined_at: int = 0  # objects with a later resourceVersion were written with this schema
    storage_version: str = ""
    to_this: Convert | None = None  # from any version; None: all versions have one shape
    to_stored: Convert | None = None
    selectable_fields: tuple[str, ...] = ()  # dotted, besides metadata.name and .namespace
    prepare: Prepare | None = None
    check: Check | None = None
    deprecation: str = ""  # warning for each use of this version
    deprecated_fields: tuple[DeprecatedField, ...] = ()  # a write of one gets a warning
    name_rule: str = "subdomain"  # subdomain, label or path
    allows_blind_update: bool = False  # a PUT without resourceVersion overwrites
    is_stored: bool = True  # False: answered and not stored, as reviews are

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`plural.group`, as Kubernetes names a resource in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
