"""Custom resource definitions of our kinds, generated from the types.

`python -m fairway.api.crds FOLDER` writes one file for each kind; a test keeps the committed files
equal to the types.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from fairway.api.kinds import CATEGORY, KINDS, Column, Kind
from fairway.api.meta import VERSION, Object
from fairway.api.schemas import schema_of

CustomResourceDefinition = dict[str, Any]

# Path of the hub's webhook that converts objects between versions.
CONVERSION_PATH = "/convert"
_PORT = 443  # of the hub's Service
SERVICE = {"namespace": "fairway-system", "name": "fairway-hub"}


def definition_of(kind: Kind) -> CustomResourceDefinition:
    """The custom resource definition of one kind."""
    names = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.singular,
        "shortNames": list(kind.short_names),
        "categories": [CATEGORY],
    }
    older = _version(kind, VERSION, kind.struct, kind.columns)
    newer = [
        _version(kind, version.name, version.struct, version.columns) for version in kind.further
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified},
        "spec": {
            "group": kind.struct.api_group,
            "names": names,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "versions": [older, *newer],
        },
    }


def conversion(client: dict[str, Any], path: str = CONVERSION_PATH) -> dict[str, Any]:
    """How a server converts: by asking a hub. The leader tells the server the hub's certificate and
    the whole path; until then the server refuses what it cannot convert, and loses nothing."""
    webhook = {
        "conversionReviewVersions": ["v1"],
        "clientConfig": at_path(client, path),
    }
    return {"strategy": "Webhook", "webhook": webhook}


def at_path(client: dict[str, Any], path: str) -> dict[str, Any]:
    """How a server reaches one of the hub's webhooks, given how it reaches the hub."""
    if "service" in client:
        return {**client, "service": {**client["service"], "path": path, "port": _PORT}}
    return {**client, "url": f"{client['url']}{path}"}


def definitions(kinds: Iterable[Kind] = KINDS) -> list[CustomResourceDefinition]:
    """The custom resource definitions of all kinds, for a store that converts by itself."""
    return [definition_of(kind) for kind in kinds]


def for_kubernetes(
    kinds: Iterable[Kind] = KINDS, *, client: dict[str, Any] | None = None
) -> list[CustomResourceDefinition]:
    """The same for a server that asks a hub to convert, by default the installed hub."""
    result = definitions(kinds)
    for definition in result:
        if len(definition["spec"]["versions"]) > 1:
            definition["spec"]["conversion"] = conversion(client or {"service": dict(SERVICE)})
    return result


def _version(
    kind: Kind, name: str, struct: type[Object], columns: Iterable[Column]
) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": name,
        "served": True,
        "storage": name == kind.stored,
        "schema": {"openAPIV3Schema": schema_of(struct)},
        "additionalPrinterColumns": [_column(column) for column in columns],
    }
    subresources: dict[str, Any] = {}
    if kind.has_status:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.replicas,
            "statusReplicasPath": kind.scale.status_replicas,
            "labelSelectorPath": kind.scale.selector,
        }
    if subresources:
        version["subresources"] = subresources
    if kind.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    return version


def _column(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        shown["description"] = column.description
    if column.is_wide:
        shown["priority"] = 1
    return shown


def file_name(kind: Kind) -> str:
    """The name of the committed file with a kind's definition."""
    return f"{kind.plural}.yaml"


def as_yaml(definition: CustomResourceDefinition) -> str:
    """A definition as text; the same types give the same text."""
    text: str = yaml.safe_dump(definition, sort_keys=False, width=100)
    return text


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind, definition in zip(KINDS, for_kubernetes(), strict=True):
        (folder / file_name(kind)).write_text(as_yaml(definition))


if __name__ == "__main__":
    main()
