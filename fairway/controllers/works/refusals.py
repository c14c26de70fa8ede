"""Why manifests are not sent to a cluster; its agent would refuse them too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

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
from fairway.kinds.native import clean_manifest
from fairway.kinds.plain import name_of, text
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
    objects = [clean_manifest(body) for body in (*manifests, *beside)]  # as they are sent
    for cluster in clusters:
        sent = _sent(workload, works.get(cluster.metadata.name))
        refused = _not_permitted(cluster, objects, sent, kinds)
        if refused:
            refusing.add(cluster.metadata.name)
        for position, fault in refused:
            where = f"spec.template.manifests[{position}]"
            if position >= len(manifests):
                where = _title(objects[position])
            faults.append(f"{where}.{fault} (in {cluster.metadata.name})")
    return faults + _changed_devices(workload, beside, works, kinds), frozenset(refusing)


def _sent(workload: Workload, work: Work | None) -> list[JsonObject]:
    """The objects of the current attempt that a cluster has already."""
    claim = workload.status.claim
    placements = claim.placements if claim is not None else ()
    if work is None or work.spec.tombstone:
        return []
    is_current = any(
        (item.cluster, item.attempt) == (work.spec.cluster, work.spec.attempt)
        for item in placements
    )
    return [manifest.object for manifest in work.spec.manifests] if is_current else []


def _not_permitted(
    cluster: Cluster,
    objects: Sequence[JsonObject],
    sent: Sequence[JsonObject],
    kinds: KnownKinds,
) -> list[tuple[int, str]]:
    """Positions of objects that a cluster does not permit, and why; what it runs already stays."""
    if cluster.spec.kubernetes is None:
        return []
    permits = cluster.spec.kubernetes.permits
    refused = permitted.faults_in(objects, permits, kinds.of)
    known = set(chain(*permitted.faults_in(sent, permits, kinds.of).values())) if refused else ()
    return [
        (position, fault)
        for position, several in refused.items()
        for fault in several
        if fault not in known
    ]


def _title(body: JsonObject) -> str:
    return f"{text(body, 'kind')} {name_of(body)}"


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
