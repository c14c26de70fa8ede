"""The last known state of the cluster: nodes and their use, and pods and objects of works.

Each event changes only what it is about. Between two changes, callers get the identical value, so
an agent sees cheaply that nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairway.agent.drivers.interface import NodeSeen
from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.device_classes import DeviceClass
from fairway.agent.drivers.kubernetes.devices import Allocation, Devices, ObjectName, Slice
from fairway.agent.drivers.kubernetes.keys import ObjectKey
from fairway.agent.drivers.kubernetes.namespaces import Namespaces
from fairway.agent.drivers.kubernetes.nodepools import INSTANCE_TYPE, Found, find_pools
from fairway.agent.drivers.kubernetes.nodes import Node
from fairway.agent.drivers.kubernetes.pods import NO_USE, OwnPod, Use
from fairway.api.meta import JsonObject
from fairway.api.pools import InstanceType
from fairway.kinds.plain import child, text
from fairway.store.interface import ResourceKey

_TROUBLES_MOST = 4096
_NO_POOLS = Found()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A warning event about an object."""

    reason: str
    message: str


class Picture:
    """Everything known about one cluster."""

    def __init__(self, *, changed: Callable[[], None], touched: Callable[[str], None]) -> None:
        """`changed` is called on any change, `touched` with the label of the changed work."""
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, dict[ObjectName, OwnPod]] = {}  # of works, by label of the work
        self.objects: dict[str, dict[ObjectKey, JsonObject]] = {}  # likewise
        self._changed = changed
        self._touched = touched
        self._known: dict[ObjectName, Use | OwnPod] = {}
        self._owner: dict[ObjectKey, str] = {}
        self._others: dict[str, dict[str, int]] = {}
        self._troubles: dict[str, Trouble] = {}  # by the uid of the object
        self._uids: dict[str, str] = {}  # label of the work, by the uid of its pods and objects
        self._stale: set[str] = set()
        self._seen: dict[str, NodeSeen] = {}
        self._listed: tuple[NodeSeen, ...] = ()
        self.devices = Devices()
        self.namespaces = Namespaces(changed)
        self._own_pods: dict[ObjectName, OwnPod] = {}  # of works
        self._node_pools: dict[tuple[ResourceKey, ObjectName], JsonObject] = {}
        self._found: tuple[frozenset[str], Found] | None = None

    # Nodes.

    def take_node(self, name: str, node: Node | None) -> None:
        if self.nodes.get(name) == node:
            return
        if node is None:
            del self.nodes[name]
        else:
            self.nodes[name] = node
        self._stale.add(name)
        self._changed()

    def nodes_seen(self) -> tuple[NodeSeen, ...]:
        """All nodes, sorted by name; unchanged nodes are the identical values."""
        if self._stale:
            before = len(self._seen)
            for name in self._stale:
                node = self.nodes.get(name)
                if node is None:
                    self._seen.pop(name, None)
                    before = -1  # another node may have replaced it
                else:
                    self._seen[name] = self._look(name, node)
            self._stale.clear()
            if before != len(self._seen):
                self._seen = {name: self._seen[name] for name in sorted(self._seen)}
            self._listed = tuple(self._seen.values())
        return self._listed

    def _look(self, name: str, node: Node) -> NodeSeen:
        has, used = self.devices.on(name, self._own_pods)
        if has:  # a kubelet that offers a resource itself knows best
            has = {key: nanos for key, nanos in has.items() if not node.allocatable.get(key)}
            used = {key: used[key] for key in has}
        labels = self._found[1].labels_of(node) if self._found is not None else {}
        return NodeSeen(
            name=name,
            allocatable={**node.allocatable, **has} if has else node.allocatable,
            others={**self._others.get(name, {}), **used},
            labels={**node.labels, **labels} if labels else node.labels,
            taints=node.taints,
            is_ready=node.is_ready,
        )

    def take_slice(self, name: str, slice_: Slice | None) -> None:
        self._take_devices(self.devices.take_slice(name, slice_))

    def take_device_class(self, name: str, device_class: DeviceClass | None) -> None:
        self._take_devices(self.devices.take_class(name, device_class))

    def take_claim(self, place: ObjectName, claim: Allocation | None) -> None:
        self._take_devices(self.devices.take_claim(place, claim))

    def _take_devices(self, nodes: set[str]) -> None:
        changed = nodes & self.nodes.keys()
        if changed:
            self._stale |= changed
            self._changed()

    # Node pools.

    def take_node_pool(self, kind: ResourceKey, name: ObjectName, body: JsonObject | None) -> None:
        """Takes a node pool of an autoscaler, or its deletion."""
        self._node_pools.pop((kind, name), None)
        if body is not None:
            self._node_pools[kind, name] = body
        self._found = None
        self._stale.update(self.nodes)
        self._changed()

    def found_pools(self, types: Sequence[InstanceType]) -> Found:
        """What autoscalers offer; recomputed when they, or the instance types of nodes, change."""
        if not self._node_pools:
            return _NO_POOLS
        seen = frozenset(node.labels.get(INSTANCE_TYPE, "") for node in self.nodes.values())
        if self._found is None or self._found[0] != seen:
            self._found = (seen, find_pools(self._node_pools, types, self.nodes.values()))
            self._stale.update(self.nodes)
        return self._found[1]

    # Pods.

    def take_pod(self, place: ObjectName, pod: Use | OwnPod | None) -> None:
        before = self._known.pop(place, None)
        if pod is not None and pod is not NO_USE:
            self._known[place] = pod
        if before == pod:
            return
        self._count(before, -1)
        self._count(pod, +1)
        for item in (before, pod):
            if isinstance(item, OwnPod):
                self.namespaces.take_pod(item, 1 if item is pod else -1)
                self._place(place, item, is_there=item is pod)
                self._touched(item.work)
                self._changed()

    def _place(self, place: ObjectName, pod: OwnPod, *, is_there: bool) -> None:
        self._own_pods.pop(place, None)
        if is_there:
            self._own_pods[place] = pod
        self._take_devices(self.devices.nodes_of_pod(place))
        if is_there:
            self.pods.setdefault(pod.work, {})[place] = pod
            self._uids[pod.uid] = pod.work
            return
        several = self.pods.get(pod.work, {})
        several.pop(place, None)
        self._forget(pod.uid)
        if not several:
            self.pods.pop(pod.work, None)

    def _count(self, pod: Use | OwnPod | None, sign: int) -> None:
        """Adds or subtracts what a pod of no work uses."""
        if not isinstance(pod, Use) or not pod.node:
            return
        used = self._others.setdefault(pod.node, {})
        for name, nanos in pod.amounts.items():
            used[name] = used.get(name, 0) + sign * nanos
            if not used[name]:
                del used[name]
        if not used:
            del self._others[pod.node]
        if pod.node in self.nodes:
            self._stale.add(pod.node)
            self._changed()

    # Objects.

    def take_object(self, key: ObjectKey, body: JsonObject | None) -> None:
        label = marks.label(marks.work_of(body)) if body is not None else ""
        before = self._owner.pop(key, "")
        if before and before != label:
            gone = self.objects[before].pop(key)
            self._forget(text(gone, "metadata", "uid"))
            if not self.objects[before]:
                del self.objects[before]
            self._touched(before)
            self._changed()
        if body is None or not label:
            return
        self._owner[key] = label
        mine = self.objects.setdefault(label, {})
        known = mine.get(key)
        if known is not None and _version(known) >= _version(body) and _uid(known) == _uid(body):
            return  # older than what the answer to a write has already brought
        mine[key] = body
        self._uids[_uid(body)] = label
        self._touched(label)
        self._changed()

    def object(self, key: ObjectKey) -> JsonObject | None:
        return self.objects.get(self._owner.get(key, ""), {}).get(key)

    # Warnings.

    def take_trouble(self, uid: str, trouble: Trouble) -> None:
        """Takes a warning; warnings about anything but works are dropped."""
        label = self._uids.get(uid)
        if label is None or self._troubles.get(uid) == trouble:
            return
        if len(self._troubles) >= _TROUBLES_MOST:
            self._troubles.pop(next(iter(self._troubles)))
        self._troubles[uid] = trouble
        self._touched(label)
        self._changed()

    def trouble(self, uid: str) -> Trouble | None:
        return self._troubles.get(uid)

    # Summaries.

    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """What all running pods use, by node."""
        total = {name: dict(several) for name, several in self._others.items()}
        for pods in self.pods.values():
            for pod in pods.values():
                mine = total.setdefault(pod.use.node, {})
                for name, nanos in pod.use.amounts.items():
                    mine[name] = mine.get(name, 0) + nanos
        return total

    def labels(self) -> Iterator[str]:
        """Labels of works that have pods or objects."""
        yield from dict.fromkeys((*self.objects, *self.pods))

    def _forget(self, uid: str) -> None:
        self._uids.pop(uid, None)
        self._troubles.pop(uid, None)


def _version(body: JsonObject) -> int:
    version = text(body, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0


def _uid(body: JsonObject) -> str:
    return str(child(body, "metadata").get("uid", ""))
