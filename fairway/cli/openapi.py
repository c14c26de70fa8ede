"""Finds one field in a server's OpenAPI v3 document.

References are resolved as they are met, and remembered, because schemas may be recursive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairway.client.catalogue import Served
from fairway.client.wire import Object


@dataclass(frozen=True, slots=True)
class Document:
    """The schemas of one group version."""

    schemas: dict[str, Object]

    def of_kind(self, served: Served) -> Object | None:
        """The schema of a kind."""
        wanted = (served.group, served.version, served.kind)
        for schema in self.schemas.values():
            for item in schema.get("x-kubernetes-group-version-kind") or ():
                if (item.get("group", ""), item.get("version"), item.get("kind")) == wanted:
                    return schema
        return None

    def resolve(self, schema: Object) -> Object:
        """A schema with its reference resolved; its own description wins."""
        target = schema
        parts: list[Object] = schema.get("allOf") or []
        if len(parts) == 1:
            target = parts[0]
        name = str(target.get("$ref", "")).rpartition("/")[2]
        if not name:
            return {**target, **{key: schema[key] for key in schema if key != "allOf"}}
        result = self.resolve(self.schemas.get(name) or {})
        own = {key: schema[key] for key in ("description", "default") if schema.get(key)}
        return {**result, **own}

    def fields(self, schema: Object) -> dict[str, Object]:
        """The fields of an object, or of the objects in a list or a map."""
        inner = self.resolve(schema)
        while "properties" not in inner:
            nested: Any = inner.get("items") or inner.get("additionalProperties")
            if not isinstance(nested, dict):
                return {}
            inner = self.resolve(nested)
        properties: dict[str, Object] = inner["properties"]
        return properties

    def required_fields(self, schema: Object) -> Sequence[str]:
        inner = self.resolve(schema)
        while "properties" not in inner:
            nested: Any = inner.get("items") or inner.get("additionalProperties")
            if not isinstance(nested, dict):
                return ()
            inner = self.resolve(nested)
        return list(inner.get("required") or ())

    def type_name(self, schema: Object) -> str:
        """A type in readable form: string, []Container, map[string]string."""
        whole = self.resolve(schema)
        if "items" in whole:
            return f"[]{self.type_name(whole['items'])}"
        extra = whole.get("additionalProperties")
        if isinstance(extra, dict):
            return f"map[string]{self.type_name(extra)}"
        if whole.get("x-kubernetes-int-or-string"):
            return "IntOrString"
        if "properties" in whole:
            reference = schema if "$ref" in schema else (schema.get("allOf") or [{}])[0]
            name = str(reference.get("$ref", "")).rpartition("/")[2].rpartition(".")[2]
            return name or "Object"
        return str(whole.get("type") or "Object")
