"""Writes what the page's types are made of: schemas of the hub's OpenAPI document that it names.

python tools/page_types.py FILE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from fairway.api import crds
from fairway.api.costs import COSTS_GROUP
from fairway.api.meta import GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.resources.catalogue import Catalogue
from fairway.server.documents import openapi

_GROUPS = (GROUP, SERVING_GROUP, COSTS_GROUP)
_KINDS = Path(__file__).parents[1] / "web" / "src" / "api" / "kinds.ts"


def main() -> None:
    catalogue = Catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(dict(definition))
    served = [item for item in catalogue if item.group in _GROUPS]
    document = openapi.document(served)
    schemas = document["components"]["schemas"]
    named = re.findall(r'Schemas\["([^"]+)"\]', _KINDS.read_text())
    document["components"] = {"schemas": _with_parts(named, schemas)}
    document["paths"] = {}
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(document))


def _with_parts(names: list[str], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas of these names, and all that they are made of."""
    kept: dict[str, Any] = {}
    while names:
        name = names.pop()
        if name not in kept:
            kept[name] = schemas[name]
            text = msgspec.json.encode(schemas[name]).decode()
            names += re.findall(r"#/components/schemas/([^\"]+)", text)
    return {name: kept[name] for name in sorted(kept)}


if __name__ == "__main__":
    main()
