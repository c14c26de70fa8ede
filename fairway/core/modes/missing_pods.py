"""What a gang that grows while it runs has not got yet."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Form, Topology, Workload

_ANYWHERE = Topology()


def missing_of(workload: Workload) -> Form | None:
    """The pods that are missing, as a form of their own; None where there are none.

    Pods that must be near each other are left alone, and so are those of another size than the
    pods that run.
    """
    held = workload.held
    if not workload.grows or held is None or len(held.placed) != 1 or workload.domain:
        return None
    form = next((one for one in workload.forms if one.name == held.form), None)
    running = {pods.name: pods for pods in held.placed[0].pods}
    if form is None or any(
        one.name not in running or one.shape != running[one.name].shape for one in form.pod_sets
    ):
        return None
    lacking = tuple(
        replace(one, count=count, least=count)
        for one in form.pod_sets
        if (count := one.count - running[one.name].count) > 0
    )
    if not lacking or any(one.topology != _ANYWHERE for one in lacking):
        return None
    return replace(form, pod_sets=lacking)
