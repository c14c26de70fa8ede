"""Clusters that get nothing new of a workload, as its queue, its policy or the cluster's
acceptance does not allow it there now.

A workload takes over what an agent brought back wherever that runs, since it must not run twice.
But an agent may bring back what the hub decided long ago. Such a work goes on with what its agent
has: the objects of the workload, Secrets among them, are sent only where it may run.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairway.api.cluster import Cluster
from fairway.api.work import Work
from fairway.api.workload import Workload
from fairway.controllers.adoption import is_adopted
from fairway.controllers.cache import Cache
from fairway.controllers.lifecycle import inputs

CLOSED_SECONDS = 10.0  # after which to look again: what opens a place is not followed


def closed_places(cache: Cache, workload: Workload, works: Mapping[str, Work]) -> frozenset[str]:
    """The clusters of a claim to which the hub has sent nothing yet, and may send nothing."""
    claim = workload.status.claim
    unsent = {
        placement.cluster
        for placement in (claim.placements if claim is not None else ())
        if (work := works.get(placement.cluster)) is None or is_adopted(work)
    }
    clusters = [cache.get(Cluster, name) for name in unsent]
    refused = {each.metadata.name for each in clusters if each and not each.spec.accepted}
    return inputs.outside(cache, workload, cache.fleet().spec, unsent) | refused
