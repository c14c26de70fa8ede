"""Expressions that choose clusters: `cluster.labels['zone'] == 'a'`.

Tenants write them, and the planner evaluates each for every cluster, so they may cost little.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fairway.schema.cel.declared import Kind
from fairway.schema.cel.environment import CompileError, Program, compile

# What all expressions of one object may cost for one cluster: about a millisecond.
CLUSTER_UNITS = 10_000
_VARIABLES: Mapping[str, Kind] = {"cluster": "dyn"}
_ENTRIES = 24
_ENTRY = {f"example.com/label-{number:02}": "v" * 40 for number in range(_ENTRIES)}
_CLUSTER = {"cluster": {"name": "n" * 40, "labels": _ENTRY, "claims": _ENTRY}}


def cluster_program(text: str) -> Program:
    return compile(text, _VARIABLES)


def bindings(name: str, labels: Mapping[str, str], claims: Mapping[str, str]) -> dict[str, Any]:
    return {"cluster": {"name": name, "labels": dict(labels), "claims": dict(claims)}}


@lru_cache(maxsize=1_024)
def cluster_fault(text: str) -> str:
    """What is wrong with an expression, with its line and column; empty if nothing is."""
    try:
        program = cluster_program(text)
    except CompileError as fault:
        return str(fault)
    if program.cost(_CLUSTER, CLUSTER_UNITS) > CLUSTER_UNITS:
        return f"costs too much for a cluster with {_ENTRIES} labels and {_ENTRIES} claims"
    return ""
