"""Custom resource definitions of our kinds, made from the types.

`python -m fairway.api.crds FOLDER` writes one file for each kind; a test keeps the committed files
equal to the types.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from fairway.api.kinds import CATEGORY, KINDS, Column, Kind
from fairway.api.meta import VERSION
from fairway.api.schemas import schema_of

CustomResourceDefinition = dict[str, Any]


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
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified},
        "spec": {
            "group": kind.struct.api_group,
            "names": names,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def definitions() -> list[CustomResourceDefinition]:
    """The custom resource definitions of all our kinds."""
    return [definition_of(kind) for kind in KINDS]


def _version(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(kind.struct)},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
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
    """The file that a kind's definition is committed as."""
    return f"{kind.plural}.yaml"


def as_yaml(definition: CustomResourceDefinition) -> str:
    """A definition as text, the same for the same types."""
    text: str = yaml.safe_dump(definition, sort_keys=False, width=100)
    return text


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / file_name(kind)).write_text(as_yaml(definition_of(kind)))


if __name__ == "__main__":
    main()
