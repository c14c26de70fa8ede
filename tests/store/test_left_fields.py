"""Fields that are on disk and in no schema, of an object younger than the definition of its kind.

Such an object was written in the moment between a definition's own write and its taking effect.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from fairway.clock import VirtualClock
from fairway.resources.catalogue import standard_catalogue
from fairway.store.embedded.journal import SqliteJournal
from fairway.store.embedded.store import EmbeddedStore
from fairway.store.interface import Patch, Write
from tests.contracts.conftest import (
    DEFINITIONS,
    NAMESPACES,
    WIDGET_DEFINITION,
    WIDGETS,
    widget,
)


def opened(path: Path) -> EmbeddedStore:
    journal = SqliteJournal(path, is_inline=True)
    store = EmbeddedStore(journal, standard_catalogue(), clock=VirtualClock())
    store.start()
    return store


async def test_an_object_written_while_its_kind_changed_refuses_no_write(tmp_path: Path) -> None:
    path = tmp_path / "fairway.db"
    store = opened(path)
    await store.create(NAMESPACES, {"metadata": {"name": "default"}}, write=Write())
    await store.create(DEFINITIONS, json.loads(json.dumps(WIDGET_DEFINITION)), write=Write())
    await store.create(WIDGETS, widget("one", size=1), namespace="default", write=Write())
    await store.close()
    with closing(sqlite3.connect(path)) as journal, journal:
        journal.execute(
            "UPDATE log SET value = CAST(replace(CAST(value AS TEXT), '\"size\":1',"
            " '\"size\":1,\"former\":2') AS BLOB) WHERE plural = 'widgets'"
        )
    store = opened(path)
    assert "former" in (await store.get(WIDGETS, "one", "default")).object()["spec"]
    patch = Patch(type="merge", body={"spec": {"size": 2}})
    after, _ = await store.patch(WIDGETS, "one", patch, namespace="default", write=Write())
    assert after.object()["spec"] == {"size": 2}
    await store.close()
