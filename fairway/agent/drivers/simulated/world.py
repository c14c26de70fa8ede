"""A simulated cluster: what works made in it, and what happens to their pods.

It needs no task of its own: each caller passes the time, and the world catches up with everything
due by then. So it continues while no agent is connected, as a real cluster would.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from fairway.agent.drivers.interface import NodeSeen, Observation, WorkSeen
from fairway.agent.drivers.pod_replacement import digest_of, ended_next
from fairway.agent.drivers.simulated.lives import LivePod, Lives
from fairway.agent.drivers.simulated.made import Made
from fairway.agent.drivers.simulated.nodes import Node, Nodes, is_alike, need_of, node_seen
from fairway.agent.drivers.simulated.objects import FindKind, Objects, Refused, key_of
from fairway.agent.drivers.simulated.pools import ElasticPools, standing_nodes
from fairway.agent.drivers.simulated.timers import Timers
from fairway.api.cluster import Cluster, SimulatedDriver
from fairway.api.meta import JsonObject
from fairway.api.work import Stop, Work
from fairway.kinds.decision import PART, REVISION
from fairway.kinds.interface import Kind, Pod
from fairway.kinds.plain import maps_at, text
from fairway.kinds.pod_starts import controller_states, due, observe_pods

_DAY = 86_400.0
_NO_POSITION = -1
_NOT_LISTED = -2  # of a pod whose object is no longer listed
_FINISHED = ("Succeeded", "Failed")


class World:
    """One simulated cluster."""

    def __init__(self, cluster: Cluster, find_kind: FindKind, *, now: float) -> None:
        settings = _settings(cluster)
        self.timers = Timers()
        self.on_change: Callable[[], None] = lambda: None
        self._find_kind = find_kind
        self._nodes = Nodes(standing_nodes(settings.node_pools))
        self.objects = Objects(find_kind, settings.kinds, settings.faults.refused_images)
        self._pools = ElasticPools(
            cluster.spec,
            nodes=self._nodes,
            timers=self.timers,
            changed=self._nodes_changed,
            began=now,
        )
        self._lives = Lives(
            settings, nodes=self._nodes, timers=self.timers, changed=self._pod_changed
        )
        self._works: dict[str, Made] = {}
        self._seen_works: dict[str, WorkSeen] = {}
        self._dirty: dict[str, None] = {}
        self._ended: dict[tuple[str, int], None] = {}  # works and positions with pods ended now
        self._seen_nodes: tuple[NodeSeen, ...] | None = None
        self._doomed: dict[str, int] = {}  # how often each node's next failure was drawn
        self._now = now
        self._draw_failures(now)

    # Calls.

    def reshape(self, cluster: Cluster, now: float) -> None:
        """Takes changed settings: nodes come and go, and pods on removed nodes are lost."""
        self.advance(now)
        settings = _settings(cluster)
        wanted = {node.name: node for node in standing_nodes(settings.node_pools)}
        standing = {node.name: node for node in self._nodes if not node.pool}
        gone = [
            node
            for name, node in standing.items()
            if name not in wanted or not is_alike(node, wanted[name])
        ]
        for node in gone:
            self._lose_pods(node, now, "the node was removed")
        kept = standing.keys() - {node.name for node in gone}
        self._nodes.change(
            add=[node for name, node in wanted.items() if name not in kept],
            remove=[node.name for node in gone],
        )
        self._lives.settings = settings
        self.objects.served = frozenset(settings.kinds)
        self.objects.refused_images = frozenset(settings.faults.refused_images)
        self._pools.use(cluster.spec)
        self._nodes_changed()
        self._settle(now)

    def advance(self, now: float) -> None:
        """Runs everything that is due by now."""
        self._now = max(self._now, now)
        self.timers.run(self._now, self._end_moment)

    def apply(self, work: Work, now: float) -> None:
        self.advance(now)
        name = work.metadata.name
        made = self._works.get(name)
        if made is None:
            made = self._works[name] = Made(work=work)
        if made.is_removed or made.work.spec.attempt != work.spec.attempt:
            made.next = work
            self._end_pods(made, self._lives.settings.stop_seconds, now)
            self._go_on(made, now)
        else:
            self._carry_out(made, work, now)
        self._settle(now)

    def stop(self, name: str, how: Stop, now: float) -> None:
        self.advance(now)
        made = self._works.get(name)
        if made is None:
            return
        made.next = None
        needs = self._lives.settings.stop_seconds
        if how.signal and how.grace_seconds >= needs and self._is_running(made):
            made.checkpoints_by = now + needs
        self._end_pods(made, min(needs, how.grace_seconds), now)
        self._settle(now)

    def remove(self, name: str, now: float) -> None:
        self.advance(now)
        made = self._works.get(name)
        if made is None:
            return
        made.next, made.is_removed = None, True
        for position in made.objects:
            self.objects.remove(made.work.spec.manifests[position], owner=name)
        made.objects.clear()
        made.faults.clear()
        self._touch(made)
        self._pools.forget(name)
        self._end_pods(made, self._lives.settings.stop_seconds, now)
        self._go_on(made, now)
        self._settle(now)

    def release(self, nodes: Sequence[str], now: float) -> None:
        """Releases nodes of elastic pools, except those that have pods."""
        self.advance(now)
        self._pools.release(nodes)
        self._settle(now)

    def observe(self, now: float) -> Observation:
        """Everything there is; unchanged nodes and works are the identical values."""
        self.advance(now)
        for name in self._dirty:
            made = self._works.get(name)
            if made is None:
                self._seen_works.pop(name, None)
            else:
                self._seen_works[name] = self._look(made)
        self._dirty.clear()
        if self._seen_nodes is None:
            self._seen_nodes = tuple(node_seen(node) for node in self._nodes)
        return Observation(
            nodes=self._seen_nodes,
            works=dict(self._seen_works),
            pools=self._pools.observe(),
            namespaces=tuple(sorted(self._lives.settings.namespaces, key=lambda item: item.name)),
            kinds=self._lives.settings.kinds,
            version="simulated",
        )

    def lose(self, name: str, now: float) -> None:
        """Removes everything that was made for a work, without its agent."""
        self.advance(now)
        made = self._works[name]
        for position in list(made.objects):
            self.objects.remove(made.work.spec.manifests[position], owner=name)
        made.objects.clear()
        self._touch(made)
        self._end_pods(made, 0, now)
        self._settle(now)

    def fail_pod(self, pod: LivePod, now: float, *, reason: str = "Error", code: int = 1) -> None:
        """Fails a pod: its program ends with an exit code."""
        self.advance(now)
        message = f"the process ended with code {code}"
        self._lives.fail(pod, now, reason=reason, message=message, code=code)
        self._settle(now)

    def pods(self, work: str) -> list[LivePod] | None:
        """The pods of a work; None if the work is not known."""
        made = self._works.get(work)
        return list(made.pods.values()) if made is not None else None

    # Works.

    def _carry_out(self, made: Made, work: Work, now: float) -> None:
        """Makes what exists of a work match it; its attempt has not changed."""
        self._follow_objects(made, work, now)
        made.work = work
        self._touch(made)
        for pool_nodes in work.spec.provision:
            self._pools.ask(
                work.metadata.name,
                work.spec.attempt,
                pool=pool_nodes.pool,
                count=pool_nodes.count,
                now=now,
            )
        if work.spec.desired == "Reserve":
            self._reserve(made, now)
            return
        self._make_objects(made)
        places = [pod.node_name for pod in made.pods.values() if pod.position == _NO_POSITION]
        made.keep_ready(lambda pod: self._is_wanted(made, pod))
        for pod in list(made.pods.values()):
            if pod.position == _NO_POSITION:
                self._lives.drop(pod, now)
            elif pod.is_live and not self._is_wanted(made, pod):
                self._lives.end(pod, seconds=self._lives.settings.stop_seconds, now=now)
        for position in made.objects:
            self._replace(made, position, now)
            self._fill(made, position, now, places=places)

    def _replace(self, made: Made, position: int, now: float) -> None:
        """Ends pods of an earlier template, as many as the kind's controller would end now."""
        body = made.objects[position]
        kind = self._find_kind(body)
        if kind is None or kind.mode(body) != "Divided":
            return
        wanted = kind.pods(body)
        there = [pod for pod in wanted if pod.name in made.pods]
        parts = [made.pods[pod.name].part(digest_of(pod)) for pod in there]
        made.is_replacing = not all(part.is_current for part in parts)
        for name in ended_next(body, len(wanted), parts) if made.is_replacing else ():
            self._lives.end(made.pods[name], seconds=self._lives.settings.stop_seconds, now=now)

    def _follow_objects(self, made: Made, work: Work, now: float) -> None:
        """Keeps objects whose manifest moved to another position; removes those not listed."""
        before = {
            key_of(manifest.object): at for at, manifest in enumerate(made.work.spec.manifests)
        }
        after = {key_of(manifest.object): at for at, manifest in enumerate(work.spec.manifests)}
        if before == after:
            return
        moved = {at: after[key] for key, at in before.items() if key in after}
        for position in [object_ for object_ in made.objects if object_ not in moved]:
            self.objects.remove(made.work.spec.manifests[position], owner=work.metadata.name)
        made.objects = {moved[at]: object_ for at, object_ in made.objects.items() if at in moved}
        for pod in list(made.pods.values()):
            if pod.position in moved:
                pod.position = moved[pod.position]
            elif pod.position != _NO_POSITION:
                pod.position = _NOT_LISTED
                self._lives.end(pod, seconds=self._lives.settings.stop_seconds, now=now)

    def _reserve(self, made: Made, now: float) -> None:
        """Makes placeholder pods, one for each pod that would run first."""
        for position, manifest in enumerate(made.work.spec.manifests):
            kind = self._find_kind(manifest.object)
            if kind is None or kind.faults(manifest.object):
                continue
            for pod in due(kind, kind.release(manifest.object), (), now=now):
                name = f"placeholder-{position}-{pod.name}"
                if name not in made.pods:
                    made.pods[name] = self._pod(made, pod, _NO_POSITION, name=name, runs=None)
                    self._lives.begin(made.pods[name], now)

    def _is_wanted(self, made: Made, pod: LivePod) -> bool:
        body = made.objects.get(pod.position)
        kind = self._find_kind(body) if body is not None else None
        return (
            body is not None
            and kind is not None
            and pod.name in {other.name for other in kind.pods(body)}
        )

    def _fill(
        self, made: Made, position: int, now: float, *, places: list[str] | None = None
    ) -> None:
        """Starts the pods that the kind's controller would start now."""
        body = made.objects[position]
        kind = self._find_kind(body)
        is_looked_at = made.work.spec.manifests[position].update == "ReadOnly"
        if kind is None or is_looked_at or kind.is_held(body):
            return
        runs = self._run_seconds(made, kind, body)
        states = [pod.state() for pod in made.pods.values() if pod.position == position]
        for pod in due(kind, body, states, now=now):
            failed = made.pods.get(pod.name)
            if failed is not None:
                self._lives.restart(failed, now)
                continue
            new = self._pod(made, pod, position, name=pod.name, runs=runs)
            new.prefer = places.pop(0) if places else ""
            made.pods[pod.name] = new
            self._lives.begin(new, now)

    def _make_objects(self, made: Made) -> None:
        """Makes the objects of a work; none if any of them is refused."""
        name = made.work.metadata.name
        made.faults, made.refused = {}, set()
        for position, manifest in enumerate(made.work.spec.manifests):
            try:
                self.objects.check(manifest, owner=name)
            except Refused as refused:
                made.faults[position] = str(refused)
                if not refused.may_pass:
                    made.refused.add(position)
        if made.faults:
            return
        for position, manifest in enumerate(made.work.spec.manifests):
            body = self.objects.apply(manifest, owner=name)
            if body is None:
                made.objects.pop(position, None)
            else:
                made.objects[position] = body

    def _pod(
        self, made: Made, pod: Pod, position: int, *, name: str, runs: float | None
    ) -> LivePod:
        containers = maps_at(pod.spec, "containers")
        return LivePod(
            work=made.work.metadata.name,
            name=name,
            pod_set=pod.pod_set,
            index=pod.index,
            attempt=made.work.spec.attempt,
            position=position,
            need=need_of(pod.spec, made.devices_of(pod.pod_set, self._find_kind)),
            made_from=digest_of(pod) if runs is None else "",
            revision=pod.labels.get(REVISION, ""),
            is_beside=PART in pod.labels,
            images=tuple(text(container, "image") for container in containers),
            containers=tuple(text(container, "name") for container in containers),
            run_seconds=runs,
            restarts_in_place=text(pod.spec, "restartPolicy", default="Always") != "Never",
        )

    def _run_seconds(self, made: Made, kind: Kind, body: JsonObject) -> float | None:
        if kind.mode(body) == "Divided":
            return None
        estimate = made.work.spec.run_seconds_estimate
        seconds = self._lives.settings.run_seconds if estimate is None else estimate
        return float(seconds) or None

    def _is_running(self, made: Made) -> bool:
        return any(pod.phase == "Ready" and pod.position >= 0 for pod in made.pods.values())

    def _end_pods(self, made: Made, seconds: float, now: float) -> None:
        for pod in list(made.pods.values()):
            self._lives.end(pod, seconds=seconds, now=now)

    def _go_on(self, made: Made, now: float) -> None:
        """Continues with the next attempt or the removal, once the last pod is gone."""
        if made.pods:
            return
        if made.checkpoints_by is not None:
            made.checkpointed_at, made.checkpoints_by = made.checkpoints_by, None
        following = made.next
        if following is not None:
            made.next, made.is_removed = None, False
            self._carry_out(made, following, now)
        elif made.is_removed and self._works.get(made.work.metadata.name) is made:
            del self._works[made.work.metadata.name]
            self._touch(made)

    # Pods.

    def _pod_changed(self, pod: LivePod, now: float) -> None:
        made = self._works.get(pod.work)
        if made is None or made.pods.get(pod.name) is not pod:
            return
        self._touch(made)
        if pod.is_gone:
            del made.pods[pod.name]
            self._go_on(made, now)
        if pod.phase in _FINISHED or made.is_replacing:
            self._ended[pod.work, pod.position] = None

    def _after_end(self, made: Made, position: int, now: float) -> None:
        """Does what the kind's controller does once pods have ended."""
        pods = [pod for pod in made.pods.values() if pod.position == position]
        if position == _NO_POSITION:
            for pod in pods:
                if pod.phase == "Failed":
                    self._lives.restart(pod, now)
            return
        body = made.objects.get(position)
        kind = self._find_kind(body) if body is not None else None
        if body is None or kind is None:
            return
        states = [pod.state() for pod in pods]
        if observe_pods(kind, body, states, now=now).phase in _FINISHED:
            for pod in pods:
                if pod.is_live:
                    self._lives.end(pod, seconds=self._lives.settings.stop_seconds, now=now)
            return
        for pod in pods:
            # A failed container restarts in its pod; a pod whose node is lost does not.
            is_in_place = pod.restarts_in_place and pod.reason != "NodeLost"
            if pod.phase == "Failed" and is_in_place:
                self._lives.restart(pod, now)
        self._replace(made, position, now)
        self._fill(made, position, now)

    def _status(self, made: Made, position: int, kind: Kind) -> JsonObject:
        """The status that the kind's controller would write."""
        states = [pod.state() for pod in made.pods.values() if pod.position == position]
        body = made.objects[position]
        return kind.play(body, controller_states(kind, body, states, now=self._now), now=self._now)

    def _look(self, made: Made) -> WorkSeen:
        objects = {}
        for position, body in made.objects.items():
            kind = self._find_kind(body)
            objects[position] = (
                body if kind is None else {**body, "status": self._status(made, position, kind)}
            )
        return WorkSeen(
            name=made.work.metadata.name,
            attempt=made.work.spec.attempt,
            pods=tuple(pod.observe() for pod in made.pods.values()),
            objects=objects,
            faults=dict(made.faults),
            refused=frozenset(made.refused & set(made.faults)),
            checkpointed_at=made.checkpointed_at,
        )

    # Nodes.

    def _nodes_changed(self) -> None:
        self._seen_nodes = None
        self._lives.room()
        self._draw_failures(self._now)
        self.on_change()

    def _draw_failures(self, now: float) -> None:
        """Draws the next failure of each new node."""
        for node in self._nodes:
            if node.name not in self._doomed:
                self._doomed[node.name] = 0
                self._draw_failure(node, now)

    def _draw_failure(self, node: Node, now: float) -> None:
        settings = self._lives.settings
        per_day = settings.faults.node_failures_per_day.nanos / 1e9
        if per_day <= 0:
            return
        self._doomed[node.name] += 1
        seed = f"{settings.seed}/{node.name}/{self._doomed[node.name]}"
        chance = random.Random(seed)  # noqa: S311 - a simulation
        self.timers.at(
            now + chance.expovariate(per_day / _DAY), lambda moment: self.fail_node(node, moment)
        )

    def fail_node(self, node: Node, now: float) -> None:
        """Fails a node with everything on it; it comes back repaired."""
        if self._nodes.by_name.get(node.name) is not node or not node.is_ready:
            return
        self._nodes.set_ready(node, False)
        self._lose_pods(node, now, f"the node {node.name} failed")
        repair = self._lives.settings.faults.node_repair_seconds
        self.timers.at(now + repair, lambda moment: self._repair(node, moment))
        self._nodes_changed()

    def node(self, name: str) -> Node:
        return self._nodes.by_name[name]

    def _repair(self, node: Node, now: float) -> None:
        if self._nodes.by_name.get(node.name) is node:
            self._nodes.set_ready(node, True)
            self._draw_failure(node, now)
            self._nodes_changed()

    def _lose_pods(self, node: Node, now: float, message: str) -> None:
        for pod in list(self._lives.by_node.get(node.name, ())):
            if pod.phase == "Terminating":
                self._lives.drop(pod, now)
            else:
                self._lives.fail(pod, now, reason="NodeLost", message=message, code=None)

    # Keeping up.

    def _touch(self, made: Made) -> None:
        self._dirty[made.work.metadata.name] = None
        self.on_change()

    def _settle(self, now: float) -> None:
        """Runs everything that takes no time."""
        self._end_moment(now)
        self.timers.run(now, self._end_moment)

    def _end_moment(self, now: float) -> None:
        """Handles the effects of everything that happened at one moment, together."""
        while self._ended:
            ended, self._ended = self._ended, {}
            for name, position in ended:
                made = self._works.get(name)
                if made is not None and made.next is None and not made.is_removed:
                    self._after_end(made, position, now)
        self._lives.bind(now)


def _settings(cluster: Cluster) -> SimulatedDriver:
    return cluster.spec.simulated or SimulatedDriver()
