"""The demo: a small fleet, and a day in its life in two minutes, repeated.

The fleet is plain manifests in this folder. `story` lists what is submitted and when, `player`
submits it as a user would, and `narrator` describes what happened. It knows the API, a store and
the time; nothing in the hub knows the demo.
"""

from __future__ import annotations

from importlib.resources import files

from fairway.api.documents import Document, read_documents

# In dependency order: later files refer to objects in earlier ones.
_FILES = ("fleet.yaml", "queues.yaml")


def documents() -> list[Document]:
    """All initial objects of the demo, in the order in which they can be created."""
    folder = files(__name__)
    return [
        document
        for name in _FILES
        for document in read_documents((folder / name).read_bytes(), name)
    ]
