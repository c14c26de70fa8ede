"""The pods that a gang which grows while it runs still lacks."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Form, PlacedPods, Topology, Workload

_ANYWHERE = Topology()


def missing_of(workload: Workload) -> Form | None:
    """The missing pods as a form of their own; None if there are none, or they cannot be added.

    They cannot be added if they have a topology requirement, or if a pod set has another shape than
    its pods that run.
    """
    held = workload.held
    if not workload.grows or held is None or len(held.placed) != 1 or workload.domain:
        return None
    form = next((form for form in workload.forms if form.name == held.form), None)
    running = {pods.name: pods for pods in held.placed[0].pods}
    if form is None or any(
        pod_set.name not in running or pod_set.shape != running[pod_set.name].shape
        for pod_set in form.pod_sets
    ):
        return None
    lacking = tuple(
        replace(pod_set, count=count, least=count)
        for pod_set in form.pod_sets
        if (count := pod_set.count - _begun(running[pod_set.name])) > 0
    )
    if not lacking or any(pod_set.topology != _ANYWHERE for pod_set in lacking):
        return None
    return replace(form, pod_sets=lacking)


def _begun(pods: PlacedPods) -> int:
    """Pods that run or have finished: a pod that finished is not missing."""
    return pods.count + pods.finished
