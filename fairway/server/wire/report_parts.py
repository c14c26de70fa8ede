"""Reports without the names of works, for those who may see the nodes of the fleet and no more.

What is taken on each node stays, so that anybody can see what is free and how it is scattered. The
name of a work says whose it is and what it does; of namespaces into which the reader may not look
it gives way to a word that tells nothing. That word is the same in every report, since a difference
says by name which works of a whole report it replaces.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

from fairway.api.discretion import MayLook
from fairway.schema.node import JsonObject

# Pods are counted; what they say of themselves is for those who may look.
_COUNTED = ("requests", "bound", "terminating", "pending")
_LENGTH = 16

Alias = Callable[[str], str]


def aliases(secret: bytes) -> Alias:
    """Words for works that nobody can trace back who does not know the secret."""

    def alias(work: str) -> str:
        return "work-" + hmac.new(secret, work.encode(), hashlib.sha256).hexdigest()[:_LENGTH]

    return alias


def nodes_alone(report: JsonObject, may: MayLook, alias: Alias) -> JsonObject:
    """A report with its nodes and what is taken on them."""
    metadata = {key: value for key, value in report["metadata"].items() if key != "managedFields"}
    made = {**report, "metadata": metadata}
    spec = report.get("spec")
    if not spec:  # a bookmark of a watch
        return made

    def told(work: str) -> str:
        return work if may(_namespace(work)) else alias(work)

    changed: JsonObject = {
        "works": [_work(work, may, alias) for work in spec.get("works") or ()],
        "removedWorks": [told(removed_work) for removed_work in spec.get("removedWorks") or ()],
        "states": [state for state in spec.get("states") or () if may(_namespace(state["work"]))],
    }
    kept = {field: value for field, value in spec.items() if field not in changed}
    return {**made, "spec": kept | {field: value for field, value in changed.items() if value}}


def _work(pods: Any, may: MayLook, alias: Alias) -> Any:
    if may(_namespace(pods["work"])):
        return pods
    pod_set = alias(f"{pods['work']} {pods.get('podSet', '')}")
    counted = {field: pods[field] for field in _COUNTED if field in pods}
    return {"work": alias(pods["work"]), "podSet": pod_set, **counted}


def _namespace(work: str) -> str:
    """A work is called by the namespace of its workload, which has no dot, and its name."""
    return work.partition(".")[0]
