"""The bugs: small changes that a tired reader might let pass, each with what it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patch:
    """One bug. `old` occurs exactly once in the file."""

    sentence: str
    file: str  # in fairway/core
    old: str
    new: str
    first: str = ""  # the test that is likely to notice it, run first


PATCHES = (
    Patch(
        "quota that a queue keeps to itself is forgotten when it borrows",
        "quota/tree.py",
        "            if rest > 0:\n                free += rest\n",
        "            free += rest\n",
        "test_quota.py",
    ),
    Patch(
        "the borrowing limit is added twice",
        "quota/tree.py",
        "bound = free + rest + cell.lent + cell.limit\n",
        "bound = free + rest + cell.lent + 2 * cell.limit\n",
        "test_quota.py",
    ),
    Patch(
        "one unit more than is available fits",
        "quota/tree.py",
        "            if amount > available(queue, pair):\n",
        "            if amount > available(queue, pair) + 1000:\n",
        "test_quota.py",
    ),
    Patch(
        "what is missing of quota is not told when it is a little",
        "quota/tree.py",
        "return {pair: amount for pair, amount in missing.items() if amount > 0}",
        "return {pair: amount for pair, amount in missing.items() if amount > 1000}",
        "test_quota.py",
    ),
    Patch(
        "an undone trial leaves its first change behind",
        "ledger.py",
        "        while len(self._undo) > mark:\n",
        "        while len(self._undo) > mark + 1:\n",
        "../properties",
    ),
    Patch(
        "pods put on nodes take no room there",
        "ledger.py",
        "        self._undo.append(devices.take(self.rooms[cluster], packing, requests))\n",
        "        del cluster, packing, requests\n",
        "../properties",
    ),
    Patch(
        "nodes that are not ready get pods",
        "packing/eligibility.py",
        "mask: Mask = nodes.ready & _tolerate(",
        "mask: Mask = _tolerate(",
        "test_fit_eligibility.py",
    ),
    Patch(
        "a victim's quota is given back, but not its nodes",
        "preemption/holders.py",
        "    for cluster in clusters:\n        free_nodes(snapshot, ledger, workload, cluster)\n",
        "",
        "test_preemption.py",
    ),
    Patch(
        "what is charged to a queue is not charged to the plan",
        "planning_round.py",
        "        self.ledger.charge(workload.queue, usage)\n",
        "",
        "../properties",
    ),
    Patch(
        "a queue may have one claim more than it may",
        "quota/limits.py",
        "self._of_queue.get(name, 0) >= most:\n                return name, most",
        "self._of_queue.get(name, 0) > most:\n                return name, most",
        "test_limits.py",
    ),
    Patch(
        "limits of the queues above are not looked at",
        "quota/limits.py",
        "return (queue, *self._tree.ancestors(queue)) if queue in self._queues else ()",
        "return (queue,) if queue in self._queues else ()",
        "test_limits.py",
    ),
    Patch(
        "a gang that may shrink shrinks below its least",
        "packing/pack.py",
        "replace(want, count=want.count - some * step // total)",
        "replace(want, count=want.count - (some + 1) * step // total)",
        "test_fit.py",
    ),
    Patch(
        "pods of sets that compete are put on the same room",
        "packing/pack.py",
        "            trial.take(want.shape.needs, spot.counts)\n",
        "            pass\n",
        "test_fit_oracle.py",
    ),
    Patch(
        "a pod more than fits is counted in a domain",
        "packing/pack.py",
        "        if ratio >= 1.0:\n",
        "        if ratio > 1.0:\n",
        "test_fit_topology.py",
    ),
    Patch(
        "a service that lost its replicas in this plan grows beside them",
        "cycle.py",
        "            if workload.key in self.planning.preempted:",
        "            if workload.key in self.seen:",
        "test_cycle.py",
    ),
    Patch(
        "the newest comes first within a queue",
        "snapshot.py",
        "    return (-workload.priority, workload.queued_at, workload.key)\n",
        "    return (-workload.priority, -workload.queued_at, workload.key)\n",
        "test_cycle.py",
    ),
    Patch(
        "pods that no report has seen take no room",
        "occupancy.py",
        "        self._ledger.take(self._name, packing, needs_of(seat.placed))\n"
        "        self._ledger.take(self._name, *kept_free(spilled))\n"
        "        seat.assumed, seat.spilled = packing, spilled\n",
        "        seat.assumed = {}\n",
        "../properties",
    ),
    Patch(
        "tasks that run already are placed again",
        "modes/sweep.py",
        "    passed = running | set(numbers_of(workload.tasks_over))\n",
        "    passed = set(numbers_of(workload.tasks_over))\n",
        "../properties",
    ),
    Patch(
        "a sweep runs more tasks at a time than it may",
        "modes/sweep.py",
        "    return list(islice(left, max(0, workload.concurrency - len(running))))\n",
        "    return list(islice(left, workload.concurrency))\n",
        "../properties",
    ),
    Patch(
        "a service gets replicas beyond its quota",
        "modes/service_growth.py",
        "more = min(more, usable.get(name, 0), quota)",
        "more = min(more, usable.get(name, 0))",
        "../properties",
    ),
    Patch(
        "a preemptor may take from its equals",
        "preemption/rules.py",
        "                return other.priority < self.workload.priority\n",
        "                return other.priority <= self.workload.priority\n",
        "test_preemption.py",
    ),
    Patch(
        "somebody is a victim twice",
        "modes/allocation.py",
        "        planning.preempted.add(victim.key)\n",
        "",
        "../properties",
    ),
    Patch(
        "shares are compared as if equal were less",
        "quota/shares.py",
        "    return of.preemptor_with < of.target_before\n",
        "    return of.preemptor_with <= of.target_before\n",
        "test_fairness.py",
    ),
    Patch(
        "nodes are asked of a pool that has none left",
        "ledger.py",
        "        self._pools[cluster, pool] -= count\n",
        "        self._pools[cluster, pool] -= 0\n",
        "../properties",
    ),
    Patch(
        "the fence of a queue keeps nobody out",
        "clusters/candidates.py",
        "    if queue is not None and not _chooses(queue.fence, name):\n",
        "    if queue is None and not _chooses(None, name):\n",
        "test_where.py",
    ),
    Patch(
        "clusters are looked at in the order of the input",
        "clusters/candidates.py",
        "    for name in sorted(clusters):\n",
        "    for name in clusters:\n",
        "test_where.py",
    ),
    Patch(
        "what runs takes nothing of the quota of its namespace",
        "snapshot.py",
        "            self.ledger.spend(placement.cluster, taken, sign)\n",
        "            self.ledger.spend(placement.cluster, {}, sign)\n",
        "test_namespace_quotas.py",
    ),
    Patch(
        "a victim gives nothing back of the quota of its namespace",
        "preemption/holders.py",
        "    ledger.spend(cluster, allowance_of(workload, cluster), -1)\n",
        "    ledger.spend(cluster, {}, -1)\n",
        "test_namespace_quotas.py",
    ),
    Patch(
        "a namespace may have one pod more than its quota allows",
        "admission.py",
        "        if left is not None and asked[key] > left:\n",
        "        if left is not None and asked[key] > left + 1000:\n",
        "test_namespace_quotas.py",
    ),
)
