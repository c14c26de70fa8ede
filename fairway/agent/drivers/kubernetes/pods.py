"""What is kept of a pod: for pods of works, what an agent reports; for others, what they use.

A cluster may have very many other pods, so nothing else of them is kept, and pods that use the same
amounts share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.agent.drivers.interface import PodPhase, PodSeen
from fairway.agent.drivers.kubernetes.marks import CLUSTER, PLACEHOLDER
from fairway.api.amounts import NANO
from fairway.api.meta import JsonObject
from fairway.clock import parse_timestamp
from fairway.kinds.conditions import find_condition as condition
from fairway.kinds.decision import ATTEMPT, PART, POD_SET, REVISION, WORK
from fairway.kinds.failures import failure_of
from fairway.kinds.plain import child, maps_at, number, text
from fairway.kinds.pods import pod_requests

_OVER = ("Succeeded", "Failed")
_SPECS_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a pod uses on its node; nothing if it has no node, or has ended."""

    node: str = ""
    amounts: Mapping[str, int] = msgspec.field(default_factory=dict)


NO_USE = Use(amounts={})


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPod:
    """A pod of a work."""

    seen: PodSeen
    work: str  # as in its label
    namespace: str
    uid: str
    use: Use
    containers: tuple[str, ...]
    is_placeholder: bool = False
    is_controlled: bool = False  # a controller replaces it, and deletes it with itself
    counted: bytes = b""  # the part of its spec that quotas of its namespace count, until it ends


class _Owner(msgspec.Struct):
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: list[_Owner] = []


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: dict[str, Any] = {}
    restart_policy: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    resources: dict[str, Any] = {}
    overhead: dict[str, Any] = {}
    priority_class_name: str = ""
    active_deadline_seconds: int | None = None
    affinity: msgspec.Raw = msgspec.Raw(b"null")


class _Phase(msgspec.Struct, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: msgspec.Raw = msgspec.Raw(b"{}")


_decode = msgspec.json.Decoder(_Pod).decode
_decode_phase = msgspec.json.Decoder(_Phase).decode
_decode_plain = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="deterministic").encode


class ReadPod:
    """Reads pods for one cluster of a fleet."""

    def __init__(self, cluster: str) -> None:
        """`cluster` is the value of the label that marks pods of works."""
        self._cluster = cluster
        self._amounts: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
        self._specs: dict[bytes, bytes] = {}

    def __call__(self, raw: bytes) -> Use | OwnPod:
        pod = _decode(raw)
        status = _decode_phase(pod.status)
        use = NO_USE
        # A pod that has preempted others has its node already, though it is not bound yet.
        node = pod.spec.node_name or status.nominated_node_name
        if node and status.phase not in _OVER:
            use = Use(node=node, amounts=self._take(pod.spec))
        labels = pod.metadata.labels
        if labels.get(CLUSTER) != self._cluster or WORK not in labels:
            return use
        counted = b"" if status.phase in _OVER else self._count(pod.spec)
        return _own(pod, use, _decode_plain(pod.status), counted)

    def _count(self, spec: _Spec) -> bytes:
        """What quotas of a namespace look at; equal pods share one value."""
        plain = _resources(spec)
        plain["priorityClassName"] = spec.priority_class_name
        plain["activeDeadlineSeconds"] = spec.active_deadline_seconds
        plain["affinity"] = spec.affinity
        encoded = _encode(plain)
        if len(self._specs) >= _SPECS_MOST:
            self._specs.clear()
        return self._specs.setdefault(encoded, encoded)

    def _take(self, spec: _Spec) -> Mapping[str, int]:
        amounts = {name: amount.nanos for name, amount in pod_requests(_resources(spec)).items()}
        key = (*sorted(amounts.items()), ("pods", NANO))
        return self._amounts.setdefault(key, dict(key))


def _resources(spec: _Spec) -> JsonObject:
    """The resources of a pod, as they stand in its spec."""
    return {
        "containers": [{"resources": container.resources} for container in spec.containers],
        "initContainers": [
            {"resources": container.resources, "restartPolicy": container.restart_policy}
            for container in spec.init_containers
        ],
        "resources": spec.resources,
        "overhead": spec.overhead,
    }


def _own(pod: _Pod, use: Use, status: JsonObject, counted: bytes) -> OwnPod:
    labels = pod.metadata.labels
    phase = _phase(pod, status)
    failure = None
    if phase not in ("Ready", "Succeeded"):
        failure = failure_of({"spec": {"nodeName": pod.spec.node_name}, "status": status})
    started, finished, code = _life(status)
    if phase in _OVER and finished is None:
        finished = _since(pod, status, phase)
    attempt = labels.get(ATTEMPT, "0")
    seen = PodSeen(
        name=pod.metadata.name,
        pod_set=labels.get(POD_SET, "pod"),
        attempt=int(attempt) if attempt.isdecimal() else 0,
        phase=phase,
        node=pod.spec.node_name,
        since=_since(pod, status, phase),
        started_at=started,
        finished_at=finished if phase in _OVER else None,
        restarts=sum(
            number(entry, "restartCount") for entry in maps_at(status, "containerStatuses")
        ),
        exit_code=code if phase in _OVER else None,
        reason=failure.reason if failure is not None else "",
        message=failure.message if failure is not None else "",
        revision=labels.get(REVISION, ""),
        is_beside=PART in labels,
        containers=tuple(container.name for container in pod.spec.containers),
    )
    return OwnPod(
        seen=seen,
        work=labels[WORK],
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
        use=use,
        containers=seen.containers,
        is_placeholder=PLACEHOLDER in labels,
        is_controlled=any(owner.controller for owner in pod.metadata.owner_references),
        counted=counted,
    )


def _phase(pod: _Pod, status: JsonObject) -> PodPhase:
    phase = text(status, "phase")
    if phase == "Succeeded":
        return "Succeeded"
    if phase == "Failed":
        return "Failed"
    if pod.metadata.deletion_timestamp:
        return "Terminating"
    if not pod.spec.node_name:
        return "Pending"
    return "Ready" if condition(status, "Ready").get("status") == "True" else "Bound"


def _since(pod: _Pod, status: JsonObject, phase: PodPhase) -> float:
    """When the pod entered its phase, as precisely as its status says."""
    match phase:
        case "Pending":
            moment = ""
        case "Bound":  # since it got its node, or since it was last ready
            moment = max(
                text(condition(status, name), "lastTransitionTime")
                for name in ("PodScheduled", "Ready")
            )
        case "Terminating":
            moment = pod.metadata.deletion_timestamp
        case _:
            moment = text(condition(status, "Ready"), "lastTransitionTime")
    return _moment(moment) or _moment(pod.metadata.creation_timestamp) or 0.0


def _life(status: JsonObject) -> tuple[float | None, float | None, int | None]:
    """When the containers started and ended, and the exit code: of a failed one, if any."""
    states = [child(entry, "state") for entry in maps_at(status, "containerStatuses")]
    earlier = [child(entry, "lastState") for entry in maps_at(status, "containerStatuses")]
    started = [
        _moment(text(state, kind, "startedAt"))
        for state in (*states, *earlier)
        for kind in ("running", "terminated")
    ]
    ended = [child(state, "terminated") for state in states]
    finished = [_moment(text(entry, "finishedAt")) for entry in ended]
    codes = [entry["exitCode"] for entry in ended if isinstance(entry.get("exitCode"), int)]
    return _least(started), _most(finished), next((code for code in codes if code), _first(codes))


def _first(codes: Sequence[int]) -> int | None:
    return codes[0] if codes else None


def _least(moments: Sequence[float | None]) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _most(moments: Sequence[float | None]) -> float | None:
    return max((moment for moment in moments if moment is not None), default=None)


def _moment(text: str) -> float | None:
    return parse_timestamp(text) if text else None
