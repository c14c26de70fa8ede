"""Whether an admission is complete: all pods of a gang, each replica and each task once."""

from __future__ import annotations

from fairway.core.model import Form, Placed, Policy, Workload
from fairway.core.plan import Admit
from fairway.core.task_numbers import numbers_of


def partly_placed(workload: Workload, step: Admit, now: float, policy: Policy) -> list[str]:
    """What an admission lacks, or places twice."""
    clusters = [placement.cluster for placement in step.placed]
    if not clusters:
        is_over = bool(workload.copies_over) and step.missing_copies == 0
        return [] if workload.held or is_over else ["is started nowhere"]
    if len(set(clusters)) < len(clusters):
        return ["is placed in a cluster twice"]
    match workload.mode:
        case "Gang":
            return _gang(workload, step, now)
        case "Divided":
            return _service(workload, step, policy)
        case _:
            return _sweep(workload, step)


def _gang(workload: Workload, step: Admit, now: float) -> list[str]:
    form = next((form for form in workload.forms if form.name == step.form), None)
    if form is None:
        return [f"is started in a form that it does not have: {step.form}"]
    result = []
    if form.after_seconds > max(0.0, now - workload.queued_at):
        result.append(f"is started as {form.name} before it gave up earlier forms")
    if len(step.placed) > max(1, workload.clusters_max):
        result.append(f"is one gang in {len(step.placed)} clusters")
    for pod_set in form.pod_sets:
        counts = [
            pods.count + pods.finished
            for placed in step.placed
            for pods in placed.pods
            if pods.name == pod_set.name
        ]
        if not pod_set.least <= sum(counts) <= pod_set.count:
            result.append(
                f"has {sum(counts)} pods of {pod_set.name}, not {pod_set.least} to {pod_set.count}"
            )
        if len(counts) > 1 and any(count % max(1, pod_set.member_size) for count in counts):
            result.append(f"has a member of {pod_set.name} in two clusters")
    return [*result, *_strangers(form, step.placed), *_domains(workload, form, step.placed)]


def _strangers(form: Form, placed: tuple[Placed, ...]) -> list[str]:
    shapes = {pod_set.name: pod_set.shape for pod_set in form.pod_sets}
    return [
        f"has pods that are not its own: {pods.name}"
        for placement in placed
        for pods in placement.pods
        if shapes.get(pods.name) != pods.shape
    ]


def _domains(workload: Workload, form: Form, placed: tuple[Placed, ...]) -> list[str]:
    """Violations of topology: pods that must be in one domain are in several, or name none."""
    domains = []
    topology_of = {pod_set.name: pod_set.topology for pod_set in form.pod_sets}
    for placement in placed:
        for pods in placement.pods:
            topology = topology_of.get(pods.name)
            if topology is None or not pods.count:
                continue
            total = sum(count for _, count in pods.domains)
            if pods.domains and total != pods.count:
                domains.append(f"names domains for {total} of {pods.count} pods of {pods.name}")
            if topology.required and not pods.domains:
                domains.append(f"must be in one {topology.required}, and names none")
            if topology.required and pods.level == topology.required and len(pods.domains) > 1:
                domains.append(f"must be in one {topology.required}, not {len(pods.domains)}")
    return domains


def _service(workload: Workload, step: Admit, policy: Policy) -> list[str]:
    strangers = _strangers(workload.forms[0], step.placed)
    for placed in step.placed:
        counts = {pods.name: pods.count for pods in placed.pods}
        for pod_set in workload.forms[0].pod_sets:
            if counts.get(pod_set.name, 0) != pod_set.count * placed.replicas:
                strangers.append(
                    f"has {counts.get(pod_set.name, 0)} pods of {pod_set.name} in {placed.cluster}"
                )
        # If replicas count by speed, a slow flavor needs more of them.
        most = placed.replicas if policy.division.counts_speed else workload.replicas
        if not 0 < placed.replicas <= most:
            strangers.append(f"has {placed.replicas} replicas in {placed.cluster}")
        if placed.cluster in workload.copies_over:
            strangers.append(f"runs a copy again in {placed.cluster}, where one has succeeded")
    return strangers


def _sweep(workload: Workload, step: Admit) -> list[str]:
    strangers = _strangers(workload.forms[0], step.placed)
    seen: dict[int, str] = {}
    for placed in step.placed:
        numbers = list(numbers_of(placed.tasks))
        counts = {pods.name: pods.count for pods in placed.pods}
        for pod_set in workload.forms[0].pod_sets:
            if counts.get(pod_set.name, 0) != pod_set.count * len(numbers):
                strangers.append(f"has {counts.get(pod_set.name, 0)} pods for {len(numbers)} tasks")
        for number in numbers:
            if number in seen:
                strangers.append(f"runs task {number} in {seen[number]} and in {placed.cluster}")
            seen[number] = placed.cluster
    before = {
        number
        for placed in (workload.held.placed if workload.held else ())
        for number in numbers_of(placed.tasks)
    }
    known = range(workload.first_task, workload.first_task + workload.tasks)
    strange = [number for number in seen if number not in known and number not in before]
    if strange:
        strangers.append(f"runs tasks that it does not have: {strange}")
    again = [number for number in numbers_of(workload.tasks_over) if number in seen]
    if again:
        strangers.append(f"runs tasks again that are over: {again}")
    if any(number not in seen for number in before):
        strangers.append("loses tasks that run")
    if workload.concurrency and len(seen) > max(workload.concurrency, len(before)):
        strangers.append(f"runs {len(seen)} tasks at a time, not {workload.concurrency}")
    return strangers
