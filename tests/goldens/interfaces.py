"""The API as OpenAPI says it, the names of metrics, and answers to every question."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairway.api import crds
from fairway.api.costs import COSTS_GROUP
from fairway.api.meta import GROUP
from fairway.api.serving import SERVING_GROUP
from fairway.clock import VirtualClock
from fairway.controllers.history.answers import Asked
from fairway.controllers.timeline.picture import Wanted
from fairway.controllers.whatif.edits import read_change
from fairway.controllers.whatif.whatif import WhatIf
from fairway.resources.catalogue import Catalogue
from fairway.server.documents import openapi
from fairway.server.metrics import Metrics
from tests.controllers.fleets import Fleet
from tests.upgrade.story import hub, play

Plain = dict[str, Any]

GROUPS = (GROUP, SERVING_GROUP, COSTS_GROUP)
_NOT_FACTS = ("properties", "items", "additionalProperties", "description")


def api() -> str:
    """Each path with its verbs and parameters, and each field with its type."""
    catalogue = Catalogue()
    for definition in crds.definitions():
        catalogue.put_definition(dict(definition))
    document = openapi.document([item for item in catalogue if item.group in GROUPS])
    return "\n".join((*_paths(document["paths"]), *_schemas(document["components"]))) + "\n"


def _paths(paths: Plain) -> Iterator[str]:
    for path, verbs in sorted(paths.items()):
        shared = [
            parameter["name"] for parameter in verbs.get("parameters", ()) if "name" in parameter
        ]
        for verb, operation in sorted(verbs.items()):
            if verb != "parameters":
                own = [
                    parameter["name"]
                    for parameter in operation.get("parameters", ())
                    if "name" in parameter
                ]
                yield " ".join((verb.upper(), path, *sorted({*shared, *own})))


def _schemas(components: Plain) -> Iterator[str]:
    for name, schema in sorted(components["schemas"].items()):
        yield from _fields(name.rpartition(".")[2], schema)


def _fields(path: str, schema: Plain) -> Iterator[str]:
    """What a schema asks of each field below it."""
    facts = {key: value for key, value in schema.items() if key not in _NOT_FACTS}
    yield f"{path} {json.dumps(facts, sort_keys=True, ensure_ascii=False)}"
    for name, part in sorted(schema.get("properties", {}).items()):
        yield from _fields(f"{path}.{name}", part)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from _fields(path + mark, schema[key])


def metrics() -> str:
    """Each metric with its type and its labels."""
    found = [
        f"{name} {kind} {' '.join(sorted(labels))}".rstrip()
        for name, kind, labels, _ in Metrics().definitions()
    ]
    return "\n".join(found) + "\n"


async def questions() -> str:
    """What a hub answers amid a story, which is the same each time that it is played."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        async with hub(data, VirtualClock()) as fleet:
            await play(fleet)
            answers = await _answers(fleet)
    return _json(answers)


async def _answers(fleet: Fleet) -> Plain:
    plane = fleet.plane
    snapshot = await plane.snapshot()
    now = float(snapshot["metadata"]["annotations"]["fairway.dev/now"])
    change = read_change({"lose": ["hangzhou"]})
    whole = Wanted(by="cluster", start=now - 3600, end=now + 3600)
    return {
        "explain": await plane.explain("default", "waits", lambda _: True),
        "decisions": await plane.decisions("", 100),
        "standing": await plane.standing(),
        "traffic": await plane.share("default", "chat"),
        "timeline": await plane.timeline.answer(whole, lambda _: True),
        "snapshot": sorted(
            f"{object_['kind']} {object_['metadata']['name']}" for object_ in _objects(snapshot)
        ),
        "whatif": await WhatIf().answer(snapshot["items"], now, change),
        "history": {
            series: plane.history.answer(Asked(series=series, names=names, since=600, points=5))
            for series, names in (
                ("queues", ("research",)),
                ("clusters", ("hangzhou",)),
                ("services", ("default/chat",)),
            )
        },
    }


def _objects(snapshot: Plain) -> list[Plain]:
    return [json.loads(bytes(item)) for item in snapshot["items"]]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
