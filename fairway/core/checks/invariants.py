"""Invariants of plans: checked in tests, after every plan of a simulation, and sometimes by a hub.

Each check returns sentences, none if everything holds. Checks do not know how a plan is made:
`broken` makes its own snapshot, walks the steps in order and checks whether each is allowed. Room
on nodes is proved by a packing of all pods that a step adds. Totals of nodes are compared as well,
so that a packing that counts wrongly does not prove itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fairway.core.checks.proof import Proof
from fairway.core.checks.wholeness import partly_placed
from fairway.core.clusters.candidates import candidates
from fairway.core.handover import Leaving, queue_of
from fairway.core.model import Form, Placed, PlacedPods, Workload, usage_of
from fairway.core.modes.forms import times
from fairway.core.plan import Admit, Move, Plan, Preempt, Provision, Step
from fairway.core.preemption.holders import take_away
from fairway.core.provisioning.new_nodes import grown_cluster
from fairway.core.quota.limits import total_of
from fairway.core.snapshot import Facts, Snapshot, wants_more
from fairway.core.transitions import after


def broken(facts: Facts, plan: Plan, *, proves_room: bool = True) -> list[str]:
    """Everything that a plan does and may not do, given the facts it was made from.

    Room on nodes can be proved only of a plan that was made from these facts alone. A hub's
    snapshot also remembers where it expects pods that no report has seen yet.
    """
    walk = _Walk(facts, proves_room=proves_room)
    for step in plan.steps:
        walk.done.append(step)
        match step:
            case Admit():
                walk.admit(step)
            case Preempt():
                walk.preempt(step)
            case Provision():
                walk.provision(step)
            case Move():
                walk.move(step)
    walk.finish()
    return walk.faults


def forgotten_workloads(facts: Facts, plan: Plan) -> list[str]:
    """Workloads that a complete plan forgets: neither started, nor listed as waiting."""
    answered = {step.workload for step in plan.steps} | {
        waiting_workload.workload for waiting_workload in plan.waiting
    }
    return [
        f"{key} waits, and the plan says nothing of it"
        for key, workload in sorted(facts.workloads.items())
        if workload.is_waiting and key not in answered
    ]


def overfull(facts: Facts, growing: Collection[str] = ()) -> list[str]:
    """Clusters whose claims exceed their nodes, except those that get new nodes (`growing`)."""
    return Proof(Snapshot(facts)).overfull(growing)


def same(plan: Plan, other: Plan) -> bool:
    """Whether two plans are equal, byte for byte."""
    return render(plan) == render(other)


def render(plan: Plan) -> str:
    return json.dumps(plan.render())


class _Walk:
    """Walks the steps of a plan on its own snapshot."""

    def __init__(self, facts: Facts, *, proves_room: bool) -> None:
        self.facts = facts
        self._proves_room = proves_room
        self.snapshot = Snapshot(facts)
        self.proof = Proof(self.snapshot)
        self.claims = self.snapshot.claims.copy()
        self.faults: list[str] = []
        self.done: list[Step] = []
        self.admitted: dict[str, Admit] = {}
        self.victims_of: dict[str, list[str]] = {}
        self.preempted: dict[str, str] = {}
        self.provisions: dict[str, list[Provision]] = {}
        self._is_let_go = False
        self.moved: dict[str, tuple[Placed, ...]] = {}  # what services that move hold by now
        self._left = {
            (name, pool.name): pool.left
            for name, cluster in facts.clusters.items()
            for pool in cluster.pools
        }

    def say(self, workload: str, sentence: str) -> None:
        self.faults.append(f"{workload}: {sentence}")

    # Preempt.

    def preempt(self, step: Preempt) -> None:
        victim = self.facts.workloads.get(step.workload)
        if victim is None or victim.held is None:
            self.say(step.workload, "is preempted but holds nothing")
            return
        if step.workload in self.preempted:
            self.say(step.workload, f"is preempted for {step.for_} and for another")
            return
        if not victim.preemptible:
            self.say(step.workload, "is preempted but not preemptible")
        if step.workload in self.admitted or step.workload == step.for_:
            self.say(step.workload, "is preempted by the plan that starts it")
        self.preempted[step.workload] = step.for_
        self.victims_of.setdefault(step.for_, []).append(step.workload)
        take_away(self.snapshot, self.snapshot.ledger, victim)
        queue = queue_of(victim)
        self.claims.count(queue, victim.user, -1)
        for placed in victim.held.placed:
            self.claims.add(queue, victim.user, usage_of(placed), -1)
            self.proof.leave(placed)

    # Provision.

    def provision(self, step: Provision) -> None:
        place = (step.cluster, step.pool)
        if place not in self._left:
            self.say(step.workload, f"asks for nodes of {step.pool}, which {step.cluster} lacks")
            return
        pool = next(
            pool for pool in self.facts.clusters[step.cluster].pools if pool.name == step.pool
        )
        if step.count <= 0 or step.count % pool.unit:
            self.say(step.workload, f"asks for {step.count} nodes, not whole units of {pool.unit}")
        self._left[place] -= step.count
        if self._left[place] < 0:
            self.say(step.workload, f"asks {step.pool} for {-self._left[place]} nodes too many")
        self.provisions.setdefault(step.workload, []).append(step)

    # Admit.

    def admit(self, step: Admit) -> None:
        workload = self.facts.workloads.get(step.workload)
        if workload is None:
            self.say(step.workload, "is started but does not exist")
            return
        if step.workload in self.admitted:
            self.say(step.workload, "is started twice")
            return
        if step.workload in self.preempted:
            self.say(step.workload, "is started by the plan that preempts it")
        self.admitted[step.workload] = step
        self._let_go(step)
        policy = self.snapshot.policy(workload)
        parts = partly_placed(workload, step, self.facts.now, policy)
        added = _add(workload.held.placed if workload.held else (), step.placed)
        # Nothing keeps a service from giving up replicas.
        obstacles = self._obstacles(workload) if added or workload.held is None else []
        for sentence in (*obstacles, *parts):
            self.say(step.workload, sentence)
        self._charge(workload, step)
        if self.facts.clusters:
            self._check_where(workload, added)
            for placed in added:
                self._check_nodes(workload, step, placed)

    def _let_go(self, step: Admit) -> None:
        """Takes away what was being released before the plan, once an admission counts on it."""
        earlier = [
            key
            for key in step.waits_for
            if key not in self.preempted and self.facts.workloads[key].releasing
        ]
        if not earlier or self._is_let_go:
            return
        self._is_let_go = True
        leaving, clusters = Leaving(self.snapshot), self.facts.clusters
        answering = [name for name in sorted(clusters) if clusters[name].answers]
        leaving.let_go(self.snapshot.ledger, answering)
        for key in leaving.earlier:
            for placed in self.facts.workloads[key].releasing:
                self.proof.leave(placed)

    def _obstacles(self, workload: Workload) -> list[str]:
        """Why a workload may not be started now, whatever is free."""
        result = []
        queue = self.facts.queues.get(workload.queue)
        if queue is None or not self.snapshot.tree.is_usable(workload.queue):
            return [f"is started in queue {workload.queue}, which cannot be used"]
        if self.facts.settings.is_paused or queue.is_held or workload.is_held:
            result.append("is started though it is held")
        if workload.refused_by:
            result.append(f"is started though queue {workload.refused_by} does not take it")
        if (violation := workload.enforced_violation) is not None:
            result.append(f"is started though fleet policy {violation.policy} does not allow it")
        if workload.not_before > self.facts.now:
            result.append("is started before its back-off ends")
        if workload.held is None and workload.releasing:
            result.append("is started while its last attempt still ends")
        if workload.held is None and workload.runs_in:
            result.append("is started though pods of it run")
        if workload.held is None:
            full = self.claims.full_queue(workload)
            if full is not None:
                result.append(f"is one claim too many in queue {full[0]}")
            if self.claims.full_for_user(workload):
                result.append(f"is one claim too many for user {workload.user}")
        elif not wants_more(workload, self.snapshot.policy(workload), queue):
            result.append("is started though it has all that it asked for")
        return result

    def _charge(self, workload: Workload, step: Admit) -> None:
        """Checks quota and limits: what is added must fit, with the victims gone."""
        change = usage_of(*step.placed)
        for pair, amount in usage_of(*(workload.held.placed if workload.held else ())).items():
            change[pair] = change.get(pair, 0) - amount
        if not workload.preemptible:
            self._check_flavors(workload, step)
        self._check_quota(workload, {pair: amount for pair, amount in change.items() if amount > 0})
        self._add_usage(workload, change)
        if workload.held is None:
            self.claims.count(workload.queue, workload.user, 1)

    def _check_flavors(self, workload: Workload, step: Admit) -> None:
        held = usage_of(*(workload.held.placed if workload.held else ()))
        for (flavor, resource), amount in usage_of(*step.placed).items():
            known = self.facts.flavors.get(flavor)
            is_more = amount > held.get((flavor, resource), 0)
            if known is not None and known.is_interruptible and is_more:
                self.say(workload.key, f"is not preemptible, and gets {flavor}, which may be lost")

    def _check_quota(self, workload: Workload, more: Mapping[tuple[str, str], int]) -> None:
        tree = self.snapshot.tree
        for (flavor, resource), short in tree.shortfall(workload.queue, more).items():
            self.say(workload.key, f"takes {short} of {resource} ({flavor}) beyond its quota")
        if not workload.preemptible and tree.borrow_level(workload.queue, more) > 0:
            self.say(workload.key, "borrows but could not be made to give back")
        left = self.claims.left_for_user(workload)
        for resource, amount in total_of(more).items():
            if resource in left and amount > left[resource][0]:
                self.say(workload.key, f"takes more {resource} than its user may have")

    def _add_usage(self, workload: Workload, change: Mapping[tuple[str, str], int]) -> None:
        self.snapshot.ledger.charge(workload.queue, change)
        self.claims.add(workload.queue, workload.user, change)

    def _check_where(self, workload: Workload, added: tuple[Placed, ...]) -> None:
        queue = self.facts.queues.get(workload.queue)
        policy = self.snapshot.policy(workload)
        allowed = candidates(workload, policy, queue, self.facts.clusters, self.facts.now)
        for placed in added:
            if placed.cluster not in allowed.allowed:
                self.say(workload.key, f"is put into {placed.cluster}, where it may not be")

    def _check_nodes(self, workload: Workload, step: Admit, placed: Placed) -> None:
        if placed.cluster not in self.facts.clusters:
            self.say(workload.key, f"is put into {placed.cluster}, which does not exist")
            return
        new = [
            provision
            for provision in self.provisions.get(workload.key, ())
            if provision.cluster == placed.cluster
        ]
        form = next((form for form in workload.forms if form.name == step.form), workload.forms[0])
        self._check_room(workload, form, placed, new)

    def _check_room(
        self, workload: Workload, form: Form, placed: Placed, new: Sequence[Provision]
    ) -> None:
        if not self._proves_room:
            return
        if workload.mode != "Gang":
            pods = {pod.name: pod.count for pod in placed.pods}
            first = form.pod_sets[0]
            form = times(form, max(1, pods.get(first.name, 0) // max(1, first.count)))
        result = self.proof.enter(workload, form, placed, new)
        if result and not self._has_room_together(placed.cluster):
            self.faults.extend(f"{workload.key}: {sentence}" for sentence in result)

    def _has_room_together(self, cluster: str) -> bool:
        """Whether all claims so far fit in a cluster if they are packed again from scratch.

        Which nodes the plan chose is not known; only that such nodes exist is checked, among those
        that are there and those that the plan asks for.
        """
        done = Plan(now=self.facts.now, steps=tuple(self.done))
        facts = after(self.facts, done)
        grown = facts.clusters[cluster]
        for provision in (step for steps in self.provisions.values() for step in steps):
            if provision.cluster == cluster:
                pool = next(pool for pool in grown.pools if pool.name == provision.pool)
                grown = grown_cluster(grown, pool, provision.count)
        others = facts.clusters.keys() - {cluster}
        facts = replace(facts, clusters={**facts.clusters, cluster: grown})
        return not overfull(facts, others)

    # Move.

    def move(self, step: Move) -> None:
        workload = self.facts.workloads.get(step.workload)
        held = workload.held.placed if workload is not None and workload.held else ()
        source = next((placement for placement in held if placement.cluster == step.source), None)
        if source is None or workload is None:
            self.say(step.workload, f"is moved from {step.source}, where it is not")
            return
        if not 0 < step.count <= source.replicas:
            self.say(step.workload, f"moves {step.count} replicas of {source.replicas}")
            return
        if step.workload in self.admitted or step.workload in self.preempted:
            self.say(step.workload, "is moved by the plan that starts or preempts it")
        now = self.moved.get(step.workload, held)
        before = sum(
            placement.replicas for placement in now if placement.cluster == step.placed.cluster
        )
        if step.placed.replicas != before + step.count:
            self.say(step.workload, f"moves {step.count}, and has {step.placed.replicas} there")
        added = _add(now, (step.placed,))
        self._charge_move(workload, step, source, added)
        self._check_where(workload, added)
        for placed in added:
            self._check_room(workload, workload.forms[0], placed, ())
        others = (placement for placement in now if placement.cluster != step.placed.cluster)
        self.moved[step.workload] = (*others, step.placed)

    def _charge_move(
        self, workload: Workload, step: Move, source: Placed, added: tuple[Placed, ...]
    ) -> None:
        """Checks quota for both clusters at once, unless the old replicas stop first."""
        if step.stops_first:
            leaving = {
                pair: -amount * step.count // source.replicas
                for pair, amount in usage_of(source).items()
            }
            self._add_usage(workload, leaving)
        more = usage_of(*added)
        self._check_quota(workload, more)
        self._add_usage(workload, more)

    # At the end.

    def finish(self) -> None:
        for victim, other in self.preempted.items():
            if other not in self.admitted:
                self.say(victim, f"is preempted for {other}, which does not start")
        for key, step in self.admitted.items():
            self._check_waits(key, step)
        for key in self.provisions:
            if key not in self.admitted:
                self.say(key, "asks for nodes but does not start")

    def _check_waits(self, key: str, step: Admit) -> None:
        """Checks that a workload waits for its victims, and for nothing that stays."""
        if not set(self.victims_of.get(key, ())) <= set(step.waits_for):
            self.say(key, "does not wait for its victims")
        for other in step.waits_for:
            workload = self.facts.workloads.get(other)
            if other not in self.preempted and (workload is None or not workload.releasing):
                self.say(key, f"waits for {other}, which stays")


def _add(before: tuple[Placed, ...], after: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """What a step adds in each cluster to what was held there."""
    earlier = {(placed.cluster, pods.name): pods for placed in before for pods in placed.pods}
    placements = []
    for placed in after:
        more = tuple(_more(earlier.get((placed.cluster, pods.name)), pods) for pods in placed.pods)
        if any(pods.count > 0 for pods in more):
            placements.append(replace(placed, pods=tuple(pods for pods in more if pods.count > 0)))
    return tuple(placements)


def _more(before: PlacedPods | None, after: PlacedPods) -> PlacedPods:
    """The pods that were added, in the domains that have more than before, if these are known."""
    if before is None:
        return after
    count = after.count - before.count
    had = dict(before.domains) if before.level == after.level else {}
    grown = tuple(
        (name, pods - had.get(name, 0)) for name, pods in after.domains if pods > had.get(name, 0)
    )
    is_known = sum(pods for _, pods in grown) == count
    return replace(
        after,
        count=count,
        level=after.level if is_known else "",
        domains=grown if is_known else (),
    )
