"""What really runs: read from the simulated clusters themselves, not from any report.

A gang never has pods in two clusters, nor of two attempts in one. The hub is excused where it could
not know: with AllowDuplicate, or with StopAndMove while the agent that should stop the pods is
itself unhealthy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairway.agent.drivers.simulated.lives import LivePod
from fairway.api.names import ADOPTED, work_name
from fairway.api.work import Work
from fairway.sim.fleet import GPUS, NAMESPACE, NODES, Wish
from fairway.sim.log import Log
from fairway.sim.participants import ClusterAgent
from fairway.sim.time import Time

_ON_NODES = ("Bound", "Ready", "Terminating")
# How long after its own fault an agent may need to stop what it should have stopped.
_RECOVERY_SECONDS = 75.0
_AGAIN = "submitted again"


class Truth:
    """All clusters, as they really are."""

    def __init__(
        self, time: Time, log: Log, wishes: Mapping[str, Wish], agents: Sequence[ClusterAgent]
    ) -> None:
        self._time = time
        self._log = log
        self._wishes = wishes
        self._agents = {agent.cluster: agent for agent in agents}
        self._uids: dict[tuple[str, str], str] = {}  # of applied works, by cluster and work
        self._terms: dict[tuple[str, str], tuple[int, float]] = {}  # highest, and when
        self._resubmitted: set[str] = set()  # works whose workload a restored hub got once more
        self._restored_at = float("-inf")
        self._ended: dict[str, tuple[str, str]] = {}  # by work: uid, and the cluster that knows
        # Whether a workload's claim has a placement in a cluster.
        self.is_claimed: Callable[[str, str], bool] = lambda name, cluster: True
        for agent in agents:
            agent.on_act = self._act
            agent.on_keep = self._keep

    def pods(self, cluster: str, work: str) -> list[LivePod]:
        """Pods of a work that hold a node at this moment."""
        agent = self._agents[cluster]
        agent.world.advance(agent.clock.now())
        return _on_nodes(agent, work)

    def look(self) -> None:
        """Checks every gang that was submitted."""
        self._check([(name, wish) for name, wish in self._wishes.items() if wish.mode == "Gang"])

    def check(self, name: str) -> None:
        wish = self._wishes.get(name)
        if wish is not None and wish.mode == "Gang":
            self._check([(name, wish)])

    def _check(self, gangs: Sequence[tuple[str, Wish]]) -> None:
        for agent in self._agents.values() if gangs else ():
            agent.world.advance(agent.clock.now())
        for name, wish in gangs:
            self._check_gang(name, wish)

    def _check_gang(self, name: str, wish: Wish) -> None:
        """Checks one gang; the clusters are advanced to the current time."""
        work = work_name(NAMESPACE, name)
        where: dict[str, list[str]] = {}
        for cluster, agent in self._agents.items():
            pods = _on_nodes(agent, work)
            if pods:
                where.setdefault(self._uids.get((cluster, work), ""), []).append(cluster)
            if len({pod.attempt for pod in pods}) > 1:
                self._log.report(f"{name} runs in {cluster} as two attempts at once")
        for clusters in where.values():
            if len(clusters) > 1 and not self._is_excused(wish, clusters):
                self._log.report(f"{name} runs in {' and '.join(clusters)} at once")

    def _is_excused(self, wish: Wish, clusters: Sequence[str]) -> bool:
        if wish.is_duplicate_allowed:
            return True
        now = self._time.now()
        agents = [self._agents[cluster] for cluster in clusters]
        if any(self._is_unheard(agent) for agent in agents):
            return True
        return wish.is_moved_when_lost and any(
            not agent.is_up
            or agent.gate.is_shut
            or agent.slow_seconds
            or agent.failing
            or now - agent.hurt_at < _RECOVERY_SECONDS
            for agent in agents
        )

    # What agents do.

    def _act(self, cluster: str, what: str, name: str, work: Work | None) -> None:
        if work is not None:
            self._uids[cluster, name] = self._identity(name, work.spec.workload.uid)
            before = self._term_known(cluster, name)
            if work.spec.term < before:
                self._log.report(
                    f"{cluster} carries out {name} of term {work.spec.term} after {before}"
                )
            self._terms[cluster, name] = (max(before, work.spec.term), self._time.now())
        self.check(name.partition(".")[2])
        if what == "apply" and work is not None:
            self._check_ended(cluster, work)
            self._check_room(cluster, name)

    def _term_known(self, cluster: str, name: str) -> int:
        """The highest term of a work there; lost, if the hub was set back and the disk lost."""
        term, at = self._terms.get((cluster, name), (0, 0.0))
        is_lost = self._restored_at > float("-inf") and at < self._agents[cluster].lost_disk_at
        return 0 if is_lost else term

    def _check_room(self, cluster: str, applied: str) -> None:
        """Checks that an applied work fits in the cluster beside the pods that hold a node.

        Pods of works without a claim are not counted: their place may already be given to others.
        Nor is a pod that found no node because the cluster placed smaller pods differently.
        """
        world = self._agents[cluster].world
        needed = sum(
            wish.gpus
            for name, wish in self._wishes.items()
            if self.is_claimed(name, cluster)
            for pod in world.pods(work_name(NAMESPACE, name)) or ()
            if pod.is_live and (pod.node is not None or work_name(NAMESPACE, name) == applied)
        )
        if needed > NODES * GPUS:
            self._log.report(f"pods in {cluster} ask for {needed} devices")

    def _keep(self, cluster: str, work: Work, term: int) -> None:
        if work.spec.term < term and ADOPTED not in work.metadata.labels:
            self._log.report(
                f"{cluster} accepts {work.metadata.name} of term {work.spec.term} in term {term}"
            )

    # A hub that is set back to a backup.

    def restore(self, succeeded: Mapping[str, str]) -> None:
        """The hub was set back; `succeeded` has the uids of what it knew to have succeeded.

        An agent that remembers such an end tells the hub, which must not run it again.
        """
        self._restored_at = self._time.now()
        self._ended = {
            name: (uid, cluster)
            for cluster, agent in self._agents.items()
            for name, kept in (agent.memory.works if agent.memory is not None else {}).items()
            if kept.ended is not None
            and kept.ended.phase == "Succeeded"
            and (uid := kept.work.spec.workload.uid) == succeeded.get(name)
        }

    def resubmit(self, name: str) -> None:
        """A user submits a workload once more, which the restored hub does not know."""
        work = work_name(NAMESPACE, name)
        self._resubmitted.add(work)
        for place in [place for place in self._uids if place[1] == work]:
            self._uids[place] = _AGAIN

    def _identity(self, work: str, uid: str) -> str:
        return _AGAIN if work in self._resubmitted else uid

    def _check_ended(self, cluster: str, work: Work) -> None:
        """Checks that nothing runs again whose end an agent could tell the restored hub.

        Tasks of a sweep may run again: an agent remembers only those that it had last.
        """
        name = work.metadata.name
        uid, where = self._ended.get(name, ("", ""))
        if not where or work.spec.workload.uid != uid or work.spec.tasks:
            return
        agent = self._agents[where]
        if not self._is_unheard(agent) and agent.lost_disk_at < self._restored_at:
            self._log.report(f"{name} has succeeded in {where} and starts again in {cluster}")

    def _is_unheard(self, agent: ClusterAgent) -> bool:
        """Whether the hub was set back and could not hear from a cluster what runs there."""
        now = self._time.now()
        since = max(self._restored_at, agent.unwell_at)
        return agent.unwell_at >= self._restored_at and now - since < _RECOVERY_SECONDS

    # Removals from the hub.

    def workload_removed(self, name: str, uid: str, *, is_guarded: bool) -> None:
        """Checks that nothing runs of a removed workload.

        Without a finalizer it goes at once, and a hub that was set back to before its claim does
        not know that it runs. Nor can that hub wait for a cluster that it does not hear from.
        """
        wish, work = self._wishes.get(name), work_name(NAMESPACE, name)
        if wish is not None and (wish.is_duplicate_allowed or wish.is_moved_when_lost):
            return  # pods in a lost cluster are not waited for
        if not is_guarded and self._restored_at > float("-inf"):
            return
        for cluster, agent in self._agents.items():
            identity = self._identity(work, uid)
            if self._is_unheard(agent):
                continue
            if self.pods(cluster, work) and self._uids.get((cluster, work)) == identity:
                self._log.report(f"{name} is gone from the hub and runs in {cluster}")

    def work_removed(self, cluster: str, name: str, attempt: int) -> None:
        """Checks that nothing runs of a removed work; agents bring later attempts back."""
        if any(pod.attempt <= attempt for pod in self.pods(cluster, name)):
            self._log.report(f"the work {name} is gone from the hub and runs in {cluster}")

    def leftovers(self) -> list[str]:
        """Works in clusters that still have pods."""
        result: list[str] = []
        for cluster, agent in self._agents.items():
            seen = agent.world.observe(agent.clock.now())
            result.extend(f"{cluster}/{name}" for name in seen.works if self.pods(cluster, name))
        return result


def _on_nodes(agent: ClusterAgent, work: str) -> list[LivePod]:
    return [pod for pod in agent.world.pods(work) or () if pod.phase in _ON_NODES]
