"""A form as a whole, or many times over: the replicas of a service, the tasks of a sweep."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import FlavorResource, Form
from fairway.core.turns.flavors import Assignment


def times(form: Form, count: int) -> Form:
    """A form whose pod sets are so many times as large, all of it needed."""
    return replace(
        form,
        pod_sets=tuple(
            replace(one, count=one.count * count, least=one.count * count) for one in form.pod_sets
        ),
    )


def full_usage(form: Form, option: Assignment) -> dict[FlavorResource, int]:
    """What all pods of a form are charged to quota on some flavors."""
    counts = {one.name: one.count for one in form.pod_sets}
    return option.usage(counts, {one.name: one.shape for one in form.pod_sets})
