"""Works that a member makes up: its agent may create any work in the namespace of its cluster."""

from __future__ import annotations

import random

from fairway.api.meta import JsonObject
from fairway.api.names import ADOPTED, ENDED, work_namespace

FORGED = "sim/forged"  # the label of a forged work, for the checks alone
_ATTEMPT = 10_000  # that no workload reaches


def forged(known: JsonObject, cluster: str, chance: random.Random) -> JsonObject:
    """A work for a member's own cluster, made from one that the hub decided for another."""
    metadata, spec = known["metadata"], known["spec"]
    lies = {"cluster": cluster} if chance.random() < 0.7 else {}  # otherwise room of others
    return {
        **known,
        "metadata": {
            "name": metadata["name"],
            "namespace": work_namespace(cluster),
            "labels": {ADOPTED: chance.choice(("true", ENDED)), FORGED: "true"},
            "annotations": metadata.get("annotations", {}),
        },
        "spec": {
            **spec,
            **lies,
            "attempt": _ATTEMPT + spec["attempt"],
            "desired": "Run",
            "tombstone": False,
        },
        "status": {},
    }


def is_forged(attempt: int) -> bool:
    return attempt >= _ATTEMPT
