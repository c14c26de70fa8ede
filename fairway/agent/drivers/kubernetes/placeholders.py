"""Placeholder pods: they hold places for the pods of a work until it may run.

A placeholder pod requests what the real pod will request, on the nodes it may use, and sleeps. It
uses the image of that pod, so that the image is on the node when the real pod comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from fairway.agent.drivers.kubernetes import marks
from fairway.agent.drivers.kubernetes.object_ends import Ending
from fairway.agent.drivers.kubernetes.picture import Picture
from fairway.agent.drivers.kubernetes.works import Kept
from fairway.agent.drivers.kubernetes.writes import Hands, Refused
from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.kinds.decision import ATTEMPT, POD_SET, WORK
from fairway.kinds.interface import Pod
from fairway.kinds.permitted import FindKind
from fairway.kinds.plain import child, maps_at, namespace_of, text
from fairway.kinds.pod_starts import due
from fairway.kinds.pods import pod_requests
from fairway.store.keys import PODS

# The fields that decide on which node a pod may run.
_PLACING = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "priorityClassName",
    "runtimeClassName",
    "imagePullSecrets",
)


class Reserving:
    """Holds places with placeholder pods."""

    def __init__(
        self, *, cluster: str, hands: Hands, ending: Ending, picture: Picture, find_kind: FindKind
    ) -> None:
        self._cluster = cluster
        self._hands = hands
        self._ending = ending
        self._picture = picture
        self._find_kind = find_kind

    async def hold(self, kept: Kept, work: Work, now: float) -> dict[int, str]:
        """Creates missing placeholder pods; returns what was refused, by position."""
        there = {name for _, name in self._picture.pods.get(kept.label, {})}
        faults: dict[int, str] = {}
        for position, pod in self._placeholders(work, now):
            name = text(pod, "metadata", "name")
            if name in there or position in faults:
                continue
            try:
                await self._hands.create(PODS, pod, text(pod, "metadata", "namespace"), work)
            except Refused as refused:
                if "already exists" not in str(refused):
                    faults[position] = str(refused)
        return faults

    async def give_up(self, kept: Kept) -> tuple[str, ...]:
        """Ends the placeholder pods at once; returns the nodes that they held."""
        held = [
            pod for pod in self._picture.pods.get(kept.label, {}).values() if pod.is_placeholder
        ]
        await self._ending.end_pods(kept, grace_seconds=0, which=lambda pod: pod.is_placeholder)
        return tuple(sorted({pod.seen.node for pod in held if pod.seen.node}))

    def _placeholders(self, work: Work, now: float) -> Iterator[tuple[int, JsonObject]]:
        for position, manifest in enumerate(work.spec.manifests):
            kind = self._find_kind(manifest.object)
            if kind is None or kind.faults(manifest.object):
                continue
            namespace = namespace_of(manifest.object)
            pods = due(kind, kind.release(manifest.object), (), now=now)
            for index, pod in enumerate(pods):
                name = f"{_digest(work)}-{position}-{index}"
                yield position, self._placeholder(work, pod, f"placeholder-{name}", namespace)

    def _placeholder(self, work: Work, pod: Pod, name: str, namespace: str) -> JsonObject:
        amounts = {resource: str(amount) for resource, amount in pod_requests(pod.spec).items()}
        # Extended resources need limits that equal their requests.
        limits = {resource: amount for resource, amount in amounts.items() if "/" in resource}
        first = maps_at(pod.spec, "containers")[0]
        container = {
            "name": "placeholder",
            "image": text(first, "image"),
            "command": ["sleep", "infinity"],
            "resources": {"requests": amounts, **({"limits": limits} if limits else {})},
        }
        labels = {
            marks.CLUSTER: marks.label(self._cluster),
            WORK: marks.label(work.metadata.name),
            ATTEMPT: str(work.spec.attempt),
            POD_SET: pod.pod_set,
            marks.PLACEHOLDER: "true",
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                **{key: pod.spec[key] for key in _PLACING if key in pod.spec},
                "containers": [container],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                **_security(pod.spec),
            },
        }


def _digest(work: Work) -> str:
    text = f"{work.metadata.name}/{work.spec.attempt}"
    return sha256(text.encode()).hexdigest()[:12]


def _security(spec: JsonObject) -> JsonObject:
    """The security context of the pod, if it has one at pod level."""
    return {"securityContext": child(spec, "securityContext")} if "securityContext" in spec else {}
