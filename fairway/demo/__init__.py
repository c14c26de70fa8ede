"""The demo fleet: what `fairway up --demo` puts into a new hub.

Plain manifests in this folder, as a user would write them: a site of our own and two cloud regions,
three GPU models, three teams with queues, and workloads of theirs.
"""

from __future__ import annotations

from importlib.resources import files

from fairway.api.documents import Document, read_documents

# In this order: what later files name, earlier ones hold.
_FILES = ("fleet.yaml", "queues.yaml", "workloads.yaml")


def documents() -> list[Document]:
    """Every object of the demo, in the order in which they can be created."""
    folder = files(__name__)
    return [
        document
        for name in _FILES
        for document in read_documents((folder / name).read_bytes(), name)
    ]
