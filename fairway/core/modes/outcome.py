"""The outcome of a decision on a workload: steps, or the reasons why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.core.plan import Step
from fairway.core.provisioning.pools import NoNodes
from fairway.core.reasons import Reasons


@dataclass(slots=True)
class Outcome:
    """Steps and reasons, collected while a workload is decided."""

    steps: list[Step] = field(default_factory=list)
    reasons: Reasons = field(default_factory=Reasons)
    has_passed_over: bool = False  # a pool was not asked, since it may be out of stock

    def refuse_nodes(self, refusal: NoNodes) -> None:
        """Notes why a pool provides no nodes."""
        self.reasons.append(refusal.reason)
        self.has_passed_over |= refusal.has_passed_over

    @property
    def is_decided(self) -> bool:
        return bool(self.steps)
