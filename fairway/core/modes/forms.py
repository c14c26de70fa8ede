"""A form as a whole, or many times over: the replicas of a service, the tasks of a sweep."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Form, PlacedPods


def times(form: Form, count: int) -> Form:
    """A form whose pod sets are so many times as large, all of it needed."""
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
    """Pods of both; their domains are known where both have some of one level."""
    if before is None:
        return after
    domains: dict[str, int] = {}
    is_known = before.level == after.level and bool(before.domains and after.domains)
    for name, count in (*before.domains, *after.domains) if is_known else ():
        domains[name] = domains.get(name, 0) + count
    return replace(
        after,
        count=before.count + after.count,
        level=after.level if is_known else "",
        domains=tuple(sorted(domains.items())),
    )
