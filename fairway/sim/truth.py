"""What really runs: read from the simulated clusters themselves, not from any report.

A gang never has pods in two clusters, nor of two attempts in one. The hub is excused where it could
not know: with AllowDuplicate, or with StopAndMove while the agent that should stop the pods is
itself unhealthy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairway.agent.drivers.simulated.lives import LivePod
from fairway.api.names import work_name
from fairway.api.work import Work
from fairway.sim.fleet import GPUS, NAMESPACE, NODES, Wish
from fairway.sim.log import Log
from fairway.sim.participants import ClusterAgent
from fairway.sim.time import Time

_ON_NODES = ("Bound", "Ready", "Terminating")
# How long after its own fault an agent may need to stop what it should have stopped.
_RECOVERY_SECONDS = 75.0


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
        self._terms: dict[tuple[str, str], int] = {}
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
            self._uids[cluster, name] = work.spec.workload.uid
            before = self._terms.get((cluster, name), 0)
            if work.spec.term < before:
                self._log.report(
                    f"{cluster} carries out {name} of term {work.spec.term} after {before}"
                )
            self._terms[cluster, name] = max(before, work.spec.term)
        self.check(name.partition(".")[2])
        if what == "apply":
            self._check_room(cluster, name)

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
        if work.spec.term < term:
            self._log.report(
                f"{cluster} accepts {work.metadata.name} of term {work.spec.term} in term {term}"
            )

    # Removals from the hub.

    def workload_removed(self, name: str, uid: str) -> None:
        wish, work = self._wishes.get(name), work_name(NAMESPACE, name)
        if wish is not None and (wish.is_duplicate_allowed or wish.is_moved_when_lost):
            return  # pods in a lost cluster are not waited for
        for cluster in self._agents:
            if self.pods(cluster, work) and self._uids.get((cluster, work)) == uid:
                self._log.report(f"{name} is gone from the hub and runs in {cluster}")

    def work_removed(self, cluster: str, name: str) -> None:
        if self.pods(cluster, name):
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
