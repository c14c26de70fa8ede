"""Why manifests are not sent to a cluster; its agent would refuse them too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairway.api.cluster import Cluster
from fairway.api.meta import JsonObject
from fairway.api.reasons import violation_sentence
from fairway.api.work import Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.works import generated
from fairway.controllers.works.manifests import devices_at
from fairway.governance.works import refusals
from fairway.kinds import permitted
from fairway.kinds.device_claims import NO_DEVICES, chosen_way, requests_of
from fairway.kinds.registry import KnownKinds


def refused_there(
    workload: Workload,
    manifests: Sequence[JsonObject],
    beside: Sequence[JsonObject],
    clusters: Sequence[Cluster],
    works: Mapping[str, Work],
    *,
    kinds: KnownKinds,
) -> tuple[list[str], frozenset[str]]:
    """Faults of a workload's manifests that clusters do not permit, and those clusters.

    `beside` is what goes along with them, `works` are those that clusters have already.
    """
    refusing: set[str] = set()
    faults = generated.faults(workload, clusters)
    if faults:
        refusing.update(item.metadata.name for item in clusters if item.spec.simulated is None)
    for cluster in clusters:
        if cluster.spec.kubernetes is None:
            continue
        permits, name = cluster.spec.kubernetes.permits, cluster.metadata.name
        for position, several in permitted.faults_in(
            [*manifests, *beside], permits, kinds.of
        ).items():
            if position < len(manifests):
                refusing.add(name)
                where = f"spec.template.manifests[{position}]"
                faults += [f"{where}.{fault} (in {name})" for fault in several]
    return faults + _changed_devices(workload, beside, works, kinds), frozenset(refusing)


def _changed_devices(
    workload: Workload,
    objects: Sequence[JsonObject],
    works: Mapping[str, Work],
    kinds: KnownKinds,
) -> list[str]:
    """Devices that the pods of a claim would ask for now, if not those that the claim counts.

    A claim or template on the hub may have been replaced since. What was sent already stays.
    """
    claim = workload.status.claim
    if claim is None:
        return []
    counted = devices_at(workload, objects, kinds)
    if counted is NO_DEVICES:
        return []
    devices = chosen_way(counted, claim.alternative).devices
    faults = list(counted.faults)
    for placement in claim.placements:
        before = works.get(placement.cluster)
        if before is not None and before.spec.attempt == placement.attempt:
            return []
        for pods in placement.pod_sets:
            needed = requests_of(devices.get(pods.name, {}))
            if any(pods.requests.get(name) != amount for name, amount in needed.items()):
                faults.append(
                    f"pod set {pods.name}: its resource claims changed since it was claimed"
                )
    return list(dict.fromkeys(faults))


def new_violations(spec: WorkSpec, before: Work | None) -> list[str]:
    """What a change of a running work adds that fleet policies forbid: the work stays as it is.

    A new work is sent: the core allowed it, and its agent checks it again.
    """
    if before is None or before.spec.attempt != spec.attempt:
        return []
    return [violation_sentence(item) for item in refusals(spec, before.spec, None)]
