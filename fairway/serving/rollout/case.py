"""What the next step of a rollout depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.api.rollout import RolloutSpec, RolloutStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Replicas of one revision in one cluster."""

    total: int = 0
    ready: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """A cluster with a part of the service, as last seen."""

    cluster: str
    replicas: int  # that it is to have
    group: str = ""
    rank: int = 0  # of the group, in the policy's order
    by_mark: Mapping[str, Counted] = field(default_factory=dict)
    beside: int = 0  # replicas that a second object has
    is_heard: bool = True  # whether its agent is not silent

    @property
    def ready(self) -> int:
        """Ready replicas of any revision, as far as they can be relied on."""
        if not self.is_heard:
            return 0
        return min(self.replicas, sum(count.ready for count in self.by_mark.values()))

    def of(self, mark: str) -> Counted:
        return self.by_mark.get(mark, Counted())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a gate; no number is an answer too."""

    gate: str
    value: float | None
    at: float
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCase:
    """One rollout, and all that its next status depends on."""

    spec: RolloutSpec
    status: RolloutStatus
    now: float
    target: str  # mark of the service's present template
    replicas: int  # that the service asks for
    places: tuple[ClusterPart, ...] = ()
    is_divisible: bool = False  # whether some replicas of one cluster may have another revision
    has_second: bool = False  # whether those have a second object, since its kind has no partition
    step_most: int | None = None  # replicas that its kind replaces at a time; None: as configured
    approved: str = ""  # the last approval, see `api.rollout`
    resumed: str = ""  # the forgiven failure, see `api.rollout`
    answers: tuple[Answer, ...] = ()  # of gates, since the last look
