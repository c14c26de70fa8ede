"""Writes the OpenAPI document that the page's types are made of, as a hub serves it.

python tools/page_types.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from fairway.api import crds
from fairway.api.costs import COSTS_GROUP
from fairway.api.meta import GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.resources.catalogue import Catalogue
from fairway.server.documents import openapi

_GROUPS = (GROUP, SERVING_GROUP, COSTS_GROUP)


def main() -> None:
    catalogue = Catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(dict(definition))
    served = [item for item in catalogue if item.group in _GROUPS]
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(openapi.document(served)))


if __name__ == "__main__":
    main()
