"""The proof that pods fit: a packing of what is added, and the totals of nodes.

The packing is found by the same `pack` that planning uses, in the room after all earlier steps. The
totals are counted independently: of each resource, over the nodes of each flavor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairway.core.admission import taken_in
from fairway.core.model import Flavor, Form, Placed, PlacedPods, Pool, Topology, Workload
from fairway.core.nodes import Cluster, Mask, Room
from fairway.core.packing import pack
from fairway.core.packing.eligibility import pool_takes
from fairway.core.packing.topology import level_index, levels_of
from fairway.core.plan import Provision
from fairway.core.provisioning.new_nodes import grown_cluster, grown_room
from fairway.core.snapshot import Snapshot

# (cluster, flavor or nothing, resource)
_Total = tuple[str, str, str]


class Proof:
    """The room on nodes while the steps of a plan are walked."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._left: dict[_Total, int] = {}
        for name, cluster in snapshot.facts.clusters.items():
            for resource, column in cluster.nodes.capacity.items():
                self._left[name, "", resource] = int(column.sum())
                for flavor in snapshot.facts.flavors.values():
                    mask = cluster.flavor_nodes(flavor)
                    self._left[name, flavor.name, resource] = int(column[mask].sum())
        for workload in snapshot.facts.workloads.values():
            held = workload.held.placed if workload.held else ()
            for placed in (*held, *workload.releasing):
                self._add(placed, -1)
        # Clusters with claims that wait for new nodes, or for other workloads to leave: totals
        # prove nothing there.
        self._awaiting = {cluster for _, cluster, _ in self._without_nodes()}
        for name, room in snapshot.ledger.rooms.items():
            if any((column < 0).any() for column in room.free.values()):
                self._awaiting.add(name)

    def overfull(self, growing: Collection[str]) -> list[str]:
        """Clusters where claims exceed capacity, in total or on a node."""
        result = [
            f"{cluster}: {-left} of {resource} {flavor} claimed beyond what there is"
            for (cluster, flavor, resource), left in sorted(self._left.items())
            if left < 0 and cluster not in growing
        ]
        for name, room in sorted(self._snapshot.ledger.rooms.items()):
            for resource, column in sorted(room.free.items()):
                short = [] if name in growing else np.flatnonzero(column < 0).tolist()
                for position in short:
                    node = room.cluster.nodes.names[position]
                    result.append(f"{name}: node {node} lacks {-int(column[position])} {resource}")
        result.extend(
            f"{key}: {missing} pods have no node in {cluster}"
            for key, cluster, missing in self._without_nodes()
            if cluster not in growing
        )
        return result

    def _without_nodes(self) -> Iterator[tuple[str, str, int]]:
        """Workloads with pods that have no node: key, cluster, how many."""
        for key, workload in sorted(self._snapshot.facts.workloads.items()):
            for placed in workload.held.placed if workload.held else ():
                wanted = sum(pods.count for pods in placed.pods)
                packing = self._snapshot.packings.get((key, placed.cluster), {})
                packed = sum(sum(counts.values()) for counts in packing.values())
                if placed.cluster in self._snapshot.ledger.rooms and packed < wanted:
                    yield key, placed.cluster, wanted - packed

    def leave(self, placed: Placed) -> None:
        """Removes pods from the totals."""
        self._add(placed, 1)

    def enter(
        self, workload: Workload, form: Form, placed: Placed, new: Sequence[Provision]
    ) -> list[str]:
        """Adds pods, on existing and on new nodes; returns sentences on what does not fit."""
        result = self._check_totals(placed, new)
        room = self._snapshot.ledger.rooms[placed.cluster]
        masks = {pods.name: self._mask(room, pods) for pods in placed.pods}
        grown = room
        for provision in new:
            grown, masks = self._grow(grown, provision, placed, masks)
        topology = {pod_set.name: pod_set.topology for pod_set in form.pod_sets}
        wants: list[pack.Want] = []
        set_of: dict[str, str] = {}
        for pods in placed.pods:
            for want in _wants(grown, pods, masks[pods.name], topology[pods.name]):
                wants.append(want)
                set_of[want.name] = pods.name
        domain = "" if any(pods.domains for pods in placed.pods) else workload.domain
        wants = [pack.as_admitted(want, placed.cluster) for want in wants]
        packed = pack.pack(grown, wants, domain)
        if isinstance(packed, pack.Shortage):
            short = ", ".join(f"{short.missing} of {set_of[short.name]}" for short in packed.short)
            return [*result, f"has no room in {placed.cluster}: {short}"]
        here = len(room.cluster.nodes)
        existing = {
            name: {position: count for position, count in counts.items() if position < here}
            for name, counts in packed.packing.items()
        }
        requests = {want.name: want.shape.needs for want in wants}
        self._snapshot.ledger.take(placed.cluster, existing, requests)
        self._snapshot.ledger.spend(placed.cluster, taken_in(placed.cluster, [placed]))
        return result

    # Totals.

    def _add(self, placed: Placed, sign: int) -> None:
        for pods in placed.pods:
            flavor_of = dict(pods.flavors)
            for resource, amount in pods.shape.requests:
                for flavor in sorted({"", flavor_of.get(resource, "")}):
                    key = (placed.cluster, flavor, resource)
                    self._left[key] = self._left.get(key, 0) + sign * amount * pods.count

    def _check_totals(self, placed: Placed, new: Sequence[Provision]) -> list[str]:
        cluster = self._snapshot.facts.clusters[placed.cluster]
        for provision in new:
            pool = next(pool for pool in cluster.pools if pool.name == provision.pool)
            flavors = self._flavors_of_new(cluster, pool)
            for resource, amount in pool.shape:
                for flavor in flavors:
                    key = (cluster.name, flavor, resource)
                    self._left[key] = self._left.get(key, 0) + amount * provision.count
        before = dict(self._left)
        self._add(placed, -1)
        return [
            f"takes {-left} of {resource} {flavor} more than {name} has"
            for (name, flavor, resource), left in sorted(self._left.items())
            if left < min(0, before.get((name, flavor, resource), 0)) and name not in self._awaiting
        ]

    def _flavors_of_new(self, cluster: Cluster, pool: Pool) -> list[str]:
        """The flavors in whose totals a new node of a pool counts; "": the total of all nodes."""
        grown = grown_cluster(cluster, pool, 1)
        flavors = self._snapshot.facts.flavors.values()
        return ["", *(flavor.name for flavor in flavors if grown.flavor_nodes(flavor)[-1])]

    # Wants.

    def _flavors(self, pods: PlacedPods) -> list[Flavor]:
        names = sorted({flavor for _, flavor in pods.flavors})
        return [self._snapshot.facts.flavors[name] for name in names if name]

    def _mask(self, room: Room, pods: PlacedPods) -> Mask:
        return self._snapshot.eligibility.of(room.cluster, pods.shape, self._flavors(pods))

    def _grow(
        self, room: Room, step: Provision, placed: Placed, masks: dict[str, Mask]
    ) -> tuple[Room, dict[str, Mask]]:
        cluster = self._snapshot.facts.clusters[placed.cluster]
        pool = next(pool for pool in cluster.pools if pool.name == step.pool)
        rivals = self._snapshot.eligibility.rivals
        takes = {
            pods.name: pool_takes(cluster, pool, pods.shape, self._flavors(pods), rivals)
            for pods in placed.pods
        }
        longer: dict[str, Mask] = {
            name: np.concatenate((mask, np.full(step.count, takes[name])))
            for name, mask in masks.items()
        }
        return grown_room(room, pool, step.count), longer


def _wants(room: Room, pods: PlacedPods, mask: Mask, topology: Topology) -> Iterator[pack.Want]:
    """The pods of a set; one want per domain if the placement names domains."""
    want = pack.Want(name=pods.name, shape=pods.shape, count=pods.count, mask=mask)
    index = level_index(room, pods.level) if pods.domains else None
    if index is None:
        yield replace(want, topology=topology)
        return
    level = levels_of(room)[index]
    for domain, count in pods.domains:
        inside = mask & np.array(
            [code >= 0 and level.names[code] == domain for code in level.codes.tolist()]
        )
        yield replace(want, name=f"{pods.name}@{domain}", count=count, mask=inside)
