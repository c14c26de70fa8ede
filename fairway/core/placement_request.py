"""What is asked of quota and of a cluster: a workload in one form, on some flavors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairway.core.model import Form, Usage, Workload
from fairway.core.quota.flavors import Assignment


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """All pods of a form; fewer or more of them are another request."""

    workload: Workload
    form: Form
    assignment: Assignment

    @property
    def usage(self) -> Usage:
        """What its pods are charged to quota; not to be written to."""
        return self.assignment.full_usage(self.form)

    @property
    def flavor(self) -> str:
        """Its flavors as reasons name them."""
        return ",".join(self.assignment.names)

    def of(self, form: Form) -> PlacementRequest:
        """The same for other pods."""
        return replace(self, form=form)
