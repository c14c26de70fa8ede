"""A form many times over: the replicas of a service, or the tasks of a sweep, taken together."""

from __future__ import annotations

from dataclasses import replace

from fairway.core.model import Form


def times(form: Form, count: int) -> Form:
    """A form whose pod sets are so many times as large, all of it needed."""
    return replace(
        form,
        pod_sets=tuple(
            replace(one, count=one.count * count, least=one.count * count) for one in form.pod_sets
        ),
    )
