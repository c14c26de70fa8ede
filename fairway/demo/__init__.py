"""The demo: a small fleet, and a day in its life told in two minutes, over and over.

The fleet is plain manifests in this folder. `story` says who submits what and when, `player` does
it as a user would, and `narrator` says what became of it. It knows the API, a store and the time;
nothing of the hub knows it.
"""

from __future__ import annotations

from importlib.resources import files

from fairway.api.documents import Document, read_documents

# In this order: what later files name, earlier ones hold.
_FILES = ("fleet.yaml", "queues.yaml")


def documents() -> list[Document]:
    """Every object that the demo begins with, in the order in which they can be created."""
    folder = files(__name__)
    return [
        document
        for name in _FILES
        for document in read_documents((folder / name).read_bytes(), name)
    ]
