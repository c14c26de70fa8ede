"""Reports without the names of works, for callers that may see only the nodes of the fleet.

Usage on each node is kept, so that every caller sees what is free and how fragmented it is. The
name of a work says whose it is and what it does; in namespaces that the caller may not see, a
meaningless alias replaces it. The alias is the same in every report, since a delta names the works
of a whole report that it replaces.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

from fairway.api.discretion import MayLook
from fairway.schema.node import JsonObject

# Pods are shown as numbers; their details are only for callers that may see the namespace.
_COUNTED = ("requests", "bound", "terminating", "pending")
_LENGTH = 16

Alias = Callable[[str], str]


def aliases(secret: bytes) -> Alias:
    """Aliases of works that cannot be traced back without the secret."""

    def alias(work: str) -> str:
        return "work-" + hmac.new(secret, work.encode(), hashlib.sha256).hexdigest()[:_LENGTH]

    return alias


def nodes_alone(report: JsonObject, may: MayLook, alias: Alias) -> JsonObject:
    """A report with its nodes and the usage on them."""
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
    """A work is named by its workload's namespace, which has no dot, a dot, and a name."""
    return work.partition(".")[0]
