"""Every kind that a hub serves, by group, version and plural.

Built-in kinds are always served; custom ones come and go with their definitions. Two versions of a
kind are two Resources over the same stored objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fairway.api.errors import FieldError, NotFound
from fairway.resources.builtin import builtin_resources
from fairway.resources.custom import custom_resources, schema_faults
from fairway.resources.nested_schemas import nested_faults
from fairway.resources.resource import Check, Resource
from fairway.schema.node import JsonObject

Served = tuple[str, str, str]  # group, version, plural


class Catalogue:
    """The kinds served now. `revision` increases whenever they change."""

    def __init__(self, builtin: Iterable[Resource] = ()) -> None:
        self._served: dict[Served, Resource] = {}
        self._custom: dict[str, list[Served]] = {}
        self.revision = 0
        for resource in builtin:
            self._served[resource.group, resource.version, resource.plural] = resource

    def find(self, group: str, version: str, plural: str) -> Resource:
        resource = self._served.get((group, version, plural))
        if resource is None:
            raise NotFound("the server could not find the requested resource", details={})
        return resource

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource of an object's apiVersion and kind."""
        for resource in self._served.values():
            if (resource.group, resource.version, resource.kind) == (group, version, kind):
                return resource
        return None

    def stored_version(self, group: str, plural: str) -> Resource | None:
        """The version in which objects of a kind are stored, if it is served."""
        versions = [
            resource
            for resource in self._served.values()
            if (resource.group, resource.plural) == (group, plural)
        ]
        for version in versions:
            if version.version == version.storage_version:
                return version
        return versions[0] if versions else None

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def put_definition(self, definition: JsonObject) -> None:
        """Serves the kinds of a custom resource definition, and replaces its previous ones."""
        name = definition["metadata"]["name"]
        resources = custom_resources(definition)
        for served in self._custom.pop(name, ()):
            self._served.pop(served, None)
        mine = [(resource.group, resource.version, resource.plural) for resource in resources]
        for served, resource in zip(mine, resources, strict=True):
            self._served[served] = resource
        self._custom[name] = mine
        self.revision += 1

    def remove_definition(self, name: str) -> None:
        for served in self._custom.pop(name, ()):
            self._served.pop(served, None)
        self.revision += 1


def standard_catalogue() -> Catalogue:
    """The built-in kinds; definitions whose schemas cannot be served are refused."""
    return Catalogue(
        replace(resource, check=_checking_schemas(resource))
        if resource.kind == "CustomResourceDefinition"
        else resource
        for resource in builtin_resources()
    )


def _checking_schemas(resource: Resource) -> Check:
    own = resource.check

    def check(body: JsonObject, old: JsonObject | None) -> Sequence[FieldError]:
        faults = nested_faults(body)
        if not faults and own is not None:
            faults = list(own(body, old))
        return faults or schema_faults(body)

    return check
