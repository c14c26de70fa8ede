"""A form once or several times: the replicas of a service, the tasks of a sweep."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Form, PlacedPods


def times(form: Form, count: int) -> Form:
    """A form with `count` times the pods, all of them required."""
    if count == 1:
        return replace(
            form, pod_sets=tuple(replace(pod_set, least=pod_set.count) for pod_set in form.pod_sets)
        )
    return replace(
        form,
        pod_sets=tuple(
            replace(
                pod_set,
                count=pod_set.count * count,
                least=pod_set.count * count,
                topology=pod_set.topology.of_each(pod_set.count),
            )
            for pod_set in form.pod_sets
        ),
    )


def together(before: PlacedPods | None, after: PlacedPods) -> PlacedPods:
    """The pods of both; domains are known only if both have domains of the same level."""
    if before is None:
        return after
    domains: dict[str, int] = {}
    is_known = before.level == after.level and bool(before.domains and after.domains)
    for name, count in (*before.domains, *after.domains) if is_known else ():
        domains[name] = domains.get(name, 0) + count
    return replace(
        after,
        count=before.count + after.count,
        finished=before.finished + after.finished,
        level=after.level if is_known else "",
        domains=tuple(sorted(domains.items())),
    )
