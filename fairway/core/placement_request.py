"""A request to quota and to a cluster: a workload in one form, on some flavors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairway.core.model import Form, Usage, Workload
from fairway.core.quota.flavors import Assignment


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """All pods of a form; fewer or more pods are another request."""

    workload: Workload
    form: Form
    assignment: Assignment

    @property
    def usage(self) -> Usage:
        """What its pods charge to quota; read-only."""
        return self.assignment.full_usage(self.form)

    @property
    def flavor(self) -> str:
        """Its flavors, as named in reasons."""
        return ",".join(self.assignment.names)

    def of(self, form: Form) -> PlacementRequest:
        """The same request for other pods."""
        return replace(self, form=form)
